"""Building blocks of readers: prose as it streams, and text whose characters were cut in half.

Shared by the schemes. Owns the order start, deltas, stop or abort of text and thinking; tool calls
differ too much between wire formats.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from typing import Literal

from agentls.core.events import BlockAbort, BlockDelta, BlockStart, BlockStop, Event
from agentls.core.messages import Item, Message, Reasoning

ProseKind = Literal["text", "thinking"]

_SURROGATE = re.compile("[\ud800-\udfff]")


def new_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{uuid.uuid4().hex}"


def without_halves(text: str) -> str:
    """The text with U+FFFD for each lone surrogate: no UTF-8 can carry one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Numbers:
    """Block indices of one reply, counted from 0 in the order of `BlockStart`."""

    def __init__(self) -> None:
        """Start at 0."""
        self._next = 0

    @property
    def taken(self) -> bool:
        """Whether a block was begun."""
        return self._next > 0

    def take(self) -> int:
        """The next index."""
        self._next += 1
        return self._next - 1


class Mender:
    r"""Joins characters that a server cut in half.

    Servers that escape JSON as ASCII may send 😀 as `"\ud83d"` in one chunk and `"\ude00"` in the
    next. A half that stays alone becomes U+FFFD: no UTF-8 can carry it.
    """

    def __init__(self) -> None:
        """Nothing is held."""
        self._half = ""

    def feed(self, text: str) -> str:
        """Text to pass on now; a first half at the end waits for the second."""
        if not self._half and (text.isascii() or not _SURROGATE.search(text)):
            return text
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return without_halves(text)

    def close(self) -> str:
        """What is left at the end."""
        half, self._half = self._half, ""
        return "\ufffd" if half else ""


class Prose:
    """The text or thinking block that is open, if any."""

    def __init__(self, numbers: Numbers, provider: str) -> None:
        """`provider` signs reasoning items."""
        self._numbers = numbers
        self._provider = provider
        self._kind: ProseKind | None = None
        self._index = 0
        self._pieces: list[str] = []
        self._mender = Mender()

    def add(self, kind: ProseKind, text: str) -> Iterator[Event]:
        """Grow the block, after stopping one of the other kind."""
        if not text:
            return
        if kind != self._kind:
            yield from self.stop()
            self._kind = kind
            self._index = self._numbers.take()
            yield BlockStart(index=self._index, block=kind)
        yield from self._delta(self._mender.feed(text))

    def stop(self) -> Iterator[Event]:
        """The block is complete."""
        if self._kind is None:
            return
        yield from self._delta(self._mender.close())
        text = "".join(self._pieces)
        item: Item = (
            Message.of("assistant", text)
            if self._kind == "text"
            else Reasoning(text=text, provider=self._provider)
        )
        self._kind = None
        self._pieces = []
        yield BlockStop(index=self._index, item=item)

    def abort(self, reason: str) -> Iterator[Event]:
        """The block will never be complete."""
        if self._kind is not None:
            self._kind = None
            yield BlockAbort(index=self._index, reason=reason)

    def _delta(self, text: str) -> Iterator[Event]:
        if text:
            self._pieces.append(text)
            yield BlockDelta(index=self._index, text=text)
