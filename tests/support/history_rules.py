"""Strict judges of request bodies: what each vendor's documentation and error messages demand.

Each rule has a test in tests/unit/llm/schemes/test_history_rules.py that shows it can fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from support.rules import anthropic, gemini, ollama, openai_chat, openai_responses
from support.rules.common import Body

_JUDGES: dict[str, Callable[[Body], Iterator[str]]] = {
    "anthropic": anthropic.judge,
    "gemini": gemini.judge,
    "ollama": ollama.judge,
    "openai_chat": openai_chat.judge,
    "openai_responses": openai_responses.judge,
}


def problems(wire: str, body: Body) -> list[str]:
    """Why the provider of a wire format would refuse a request; empty when it would not."""
    try:
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        return [f"not JSON: {error}"]
    found = list(_JUDGES[wire](body))
    if wire != "gemini" and not body.get("model"):
        found.append("no model")
    return found
