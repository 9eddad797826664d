"""The events of replies, written short: what a test expects a model to stream."""

from __future__ import annotations

from agentls.core.events import BlockAbort, BlockDelta, BlockStart, BlockStop, Event, Status
from agentls.core.messages import Message, Reasoning

FINISHED = Status(state="finished", stop_reason="end_turn")
BROKE_OFF = "the reply broke off"


def text(index: int, *pieces: str) -> list[Event]:
    """A whole block of text."""
    return [
        BlockStart(index=index, block="text"),
        *(BlockDelta(index=index, text=piece) for piece in pieces),
        BlockStop(index=index, item=Message.of("assistant", "".join(pieces))),
    ]


def thinking(index: int, *pieces: str) -> list[Event]:
    """A whole block of thinking, of the provider "fake"."""
    return [
        BlockStart(index=index, block="thinking"),
        *(BlockDelta(index=index, text=piece) for piece in pieces),
        BlockStop(index=index, item=Reasoning(text="".join(pieces), provider="fake")),
    ]


def cut_text(*pieces: str) -> list[Event]:
    """A first block of text that broke off."""
    return [*text(0, *pieces)[:-1], BlockAbort(index=0, reason=BROKE_OFF)]
