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

Proof = Reasoning | str
"""Thinking, or the signature of a call."""


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


def proofs(request: ModelRequest) -> frozenset[Proof]:
    """The thinking and the signatures of calls in a request."""
    return frozenset(proof for item in request.items if (proof := _proof(item)) is not None)


def without_proofs(request: ModelRequest, rejected: Container[Proof]) -> ModelRequest:
    """The request without the thinking and signatures that were rejected before."""
    items = (
        _unsigned(item) if _proof(item) in rejected else item
        for item in request.items
        if not (isinstance(item, Reasoning) and item in rejected)
    )
    return request.model_copy(update={"items": tuple(items)})


def _proof(item: Item) -> Proof | None:
    if isinstance(item, Reasoning):
        return item
    return item.signature if isinstance(item, ToolCall) else None


def _unsigned(item: Item) -> Item:
    if isinstance(item, ToolCall) and item.signature is not None:
        return item.model_copy(update={"signature": None})
    return item
