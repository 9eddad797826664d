"""Thinking that a provider does not take back, and the history without it. Pure.

Signatures are bound to a model, an account, a time; a provider that rejects one refuses the whole
conversation with it.
"""

from __future__ import annotations

import re
from collections.abc import Container

from agentls.core.errors import BadRequest, ModelError
from agentls.core.messages import Item, Reasoning, ToolCall
from agentls.core.requests import ModelRequest

_ABOUT_THINKING = re.compile(r"signature|thinking|thought|reasoning|encrypted", re.IGNORECASE)


def is_rejected(error: ModelError, request: ModelRequest, provider: str) -> bool:
    """Whether an error is about thinking of this provider that the request sent back to it."""
    if not isinstance(error, BadRequest) or not _ABOUT_THINKING.search(error.message):
        return False
    return any(
        item.provider == provider
        if isinstance(item, Reasoning)
        else isinstance(item, ToolCall) and item.signature is not None
        for item in request.items
    )


def without_thinking(request: ModelRequest) -> ModelRequest:
    """The request without any thinking or signature; the model is not asked to think either.

    Providers that demand thinking before a call do so only while it is switched on.
    """
    items = tuple(_unsigned(item) for item in request.items if not isinstance(item, Reasoning))
    return request.model_copy(update={"items": items, "effort": "none"})


def proofs(request: ModelRequest) -> frozenset[str]:
    """What vouches for the thinking and the calls of a request, each once."""
    return frozenset(filter(None, map(_proof, request.items)))


def without_proofs(request: ModelRequest, rejected: Container[str]) -> ModelRequest:
    """The request without the thinking and signatures that were rejected before."""
    kept = (item for item in request.items if not _is_thought_in(item, rejected))
    items = tuple(_unsigned(item) if _proof(item) in rejected else item for item in kept)
    return request.model_copy(update={"items": items})


def _is_thought_in(item: Item, rejected: Container[str]) -> bool:
    return isinstance(item, Reasoning) and _proof(item) in rejected


def _proof(item: Item) -> str:
    if isinstance(item, Reasoning):
        return item.signature or item.encrypted or item.text
    return (item.signature or "") if isinstance(item, ToolCall) else ""


def _unsigned(item: Item) -> Item:
    if isinstance(item, ToolCall) and item.signature is not None:
        return item.model_copy(update={"signature": None})
    return item
