"""Building blocks of readers: prose as it streams, and the calls of one reply.

Shared by the schemes. Owns the order start, deltas, stop or abort. Which call a fragment belongs to
is the scheme's to say.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from agentls.core.events import BlockAbort, BlockDelta, BlockStart, BlockStop, Event
from agentls.core.messages import Item, Message, Reasoning, ToolCall
from agentls.llm.wire.halves import Mender

ProseKind = Literal["text", "thinking"]

BROKE_OFF = "the reply broke off"
"""Why a block ended with the stream it came in."""


def new_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{uuid.uuid4().hex}"


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

    @property
    def kind(self) -> ProseKind | None:
        """What the open block is; None when none is open."""
        return self._kind

    def add(self, kind: ProseKind, text: str) -> Iterator[Event]:
        """Grow the block, after stopping one of the other kind."""
        if not text:
            return
        if kind != self._kind:
            yield from self.stop()
            yield from self._start(kind)
        yield from self._delta(self._mender.feed(text))

    def stop(
        self, *, signature: str | None = None, encrypted: str | None = None, item_id: str = ""
    ) -> Iterator[Event]:
        """The block is complete. What is given belongs to thinking."""
        if self._kind is None:
            return
        yield from self._delta(self._mender.close())
        text = "".join(self._pieces)
        item: Item = (
            Message.of("assistant", text)
            if self._kind == "text"
            else Reasoning(
                text=text,
                signature=signature,
                encrypted=encrypted,
                item_id=item_id,
                provider=self._provider,
            )
        )
        self._kind = None
        self._pieces = []
        yield BlockStop(index=self._index, item=item)

    def sealed(
        self, *, signature: str | None = None, encrypted: str | None = None, item_id: str = ""
    ) -> Iterator[Event]:
        """A whole block of thinking without a word that can be read."""
        yield from self.stop()
        yield from self._start("thinking")
        yield from self.stop(signature=signature, encrypted=encrypted, item_id=item_id)

    def abort(self, reason: str) -> Iterator[Event]:
        """The block will never be complete."""
        if self._kind is not None:
            self._kind = None
            yield BlockAbort(index=self._index, reason=reason)

    def _start(self, kind: ProseKind) -> Iterator[Event]:
        self._kind = kind
        self._index = self._numbers.take()
        yield BlockStart(index=self._index, block=kind)

    def _delta(self, text: str) -> Iterator[Event]:
        if text:
            self._pieces.append(text)
            yield BlockDelta(index=self._index, text=text)


@dataclass(slots=True)
class _Call:
    index: int
    call_id: str
    name: str
    signature: str | None = None
    pieces: list[str] = field(default_factory=list)
    mender: Mender = field(default_factory=Mender)


class CallBlocks:
    """The calls of one reply. All stay open to the end: only then is it known that none was cut.

    The scheme names each by a key of its own.
    """

    def __init__(self, numbers: Numbers, new_id: Callable[[], str]) -> None:
        """`new_id` makes ids for calls that have none, or another call's."""
        self._numbers = numbers
        self._new_id = new_id
        self._calls: dict[Hashable, _Call] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Whether a call was begun under this key."""
        return key in self._calls

    @property
    def any(self) -> bool:
        """Whether a call was begun."""
        return bool(self._calls)

    def has_named(self) -> bool:
        """Whether there is a call that could run."""
        return any(call.name.strip() for call in self._calls.values())

    def start(self, key: Hashable, call_id: str, name: str) -> Iterator[Event]:
        """Begin a call; its id is replaced if it is empty or taken."""
        taken = {call.call_id for call in self._calls.values()}
        while not call_id or call_id in taken:
            call_id = self._new_id()
        call = self._calls[key] = _Call(self._numbers.take(), call_id, name)
        yield BlockStart(index=call.index, block="tool_call", call_id=call_id, name=name)

    def add(self, key: Hashable, fragment: str) -> Iterator[Event]:
        """Grow the arguments of a call."""
        call = self._calls[key]
        yield from _delta(call, call.mender.feed(fragment))

    def set(
        self,
        key: Hashable,
        *,
        name: str | None = None,
        arguments: str | None = None,
        signature: str | None = None,
    ) -> None:
        """Put something in the place of what came before; deltas that were given stay given."""
        call = self._calls[key]
        if name is not None:
            call.name = name
        if arguments is not None:
            call.pieces, call.mender = [arguments], Mender()
        if signature is not None:
            call.signature = signature

    def arguments(self, key: Hashable) -> str:
        """The arguments of a call so far."""
        return "".join(self._calls[key].pieces)

    def sort(self, keys: Iterable[Hashable]) -> None:
        """End the calls in this order; without it they end as they began."""
        self._calls = {key: self._calls[key] for key in keys}

    def finish(self, cut: str | None) -> Iterator[Event]:
        """End every call: complete, or aborted when the reply was cut, for the reason `cut`."""
        calls, self._calls = self._calls, {}
        for call in calls.values():
            yield from _delta(call, call.mender.close())
            name = call.name.strip()
            if cut is not None or not name:
                reason = cut or "the call names no tool"
                yield BlockAbort(index=call.index, reason=reason)
            else:
                raw = "".join(call.pieces)
                item = ToolCall.parse(call.call_id, name, raw, signature=call.signature)
                yield BlockStop(index=call.index, item=item)

    def abort(self, reason: str) -> Iterator[Event]:
        """Abort every call."""
        calls, self._calls = self._calls, {}
        for call in calls.values():
            yield BlockAbort(index=call.index, reason=reason)


def _delta(call: _Call, text: str) -> Iterator[Event]:
    if text:
        call.pieces.append(text)
        yield BlockDelta(index=call.index, text=text)
