"""Names of the methods beyond LSP's own. A leaf, so that start-up can register them cheaply."""

from __future__ import annotations

SESSION_NEW = "agent/session/new"
SESSION_PROMPT = "agent/session/prompt"
SESSION_CANCEL = "agent/session/cancel"
SESSION_SET_MODE = "agent/session/setMode"
MODELS = "agent/models"

SESSION_UPDATE = "agent/session/update"
"""Notification to the client."""

REQUEST_PERMISSION = "agent/session/requestPermission"
"""Request to the client."""

FROM_CLIENT = (SESSION_NEW, SESSION_PROMPT, SESSION_CANCEL, SESSION_SET_MODE, MODELS)
PREFIX = "agent/"
