"""Tool calls out of chat-completion deltas.

Owns one question: which call does a fragment belong to? The format says `index`; servers leave it
out, set it to 0 for every call, repeat or omit ids, cut names in pieces or repeat them. Knows
nothing of the rest of a chunk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agentls.core.events import BlockAbort, BlockDelta, BlockStart, BlockStop, Event
from agentls.core.messages import ToolCall
from agentls.llm.blocks import Mender, Numbers


@dataclass(slots=True)
class Fragment:
    """One entry of `delta.tool_calls`; empty where the server said nothing.

    `whole` marks arguments that came as an object instead of a piece of text.
    """

    index: int | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    whole: bool = False


@dataclass(slots=True, eq=False)
class _Call:
    position: int | None
    server_id: str
    name: str = ""
    call_id: str = ""
    block: int | None = None  # set once its BlockStart was given
    pieces: list[str] = field(default_factory=list)
    mender: Mender = field(default_factory=Mender)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def is_complete(self) -> bool:
        """Whether the arguments are an object already: then nothing more can belong to it."""
        last = self.pieces[-1].strip() if self.pieces else ""
        if last and not last.endswith("}"):
            return False
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False


class Calls:
    """The calls of one reply. All stay open to the end: only then is it known that none was cut."""

    def __init__(self, numbers: Numbers, new_id: Callable[[], str]) -> None:
        """`new_id` makes ids for calls that have none, or another call's."""
        self._numbers = numbers
        self._new_id = new_id
        self._calls: list[_Call] = []

    def add(self, fragments: list[Fragment]) -> Iterator[Event]:
        """Take the fragments of one chunk."""
        touched: list[_Call] = []
        for fragment in fragments:
            call = self._find(fragment, touched)
            if call is None:
                call = _Call(fragment.index, fragment.call_id)
                self._calls.append(call)
            touched.append(call)
            yield from self._grow(call, fragment)

    def finish(self, cut: str | None) -> Iterator[Event]:
        """End every call: complete, or aborted when the reply was cut, for the reason `cut`."""
        for call in self._calls:
            yield from self._start(call)
            yield from self._delta(call, call.mender.close())
            block = call.block or 0
            if cut is not None:
                yield BlockAbort(index=block, reason=cut)
            elif not call.name.strip():
                yield BlockAbort(index=block, reason="the call names no tool")
            else:
                item = ToolCall.parse(call.call_id, call.name.strip(), call.arguments)
                yield BlockStop(index=block, item=item)
        self._calls = []

    def abort(self, reason: str) -> Iterator[Event]:
        """Abort what was started."""
        for call in self._calls:
            if call.block is not None:
                yield BlockAbort(index=call.block, reason=reason)
        self._calls = []

    @property
    def any(self) -> bool:
        """Whether a call was begun."""
        return bool(self._calls)

    def has_named(self) -> bool:
        """Whether there is a call that could run."""
        return any(call.name.strip() for call in self._calls)

    def _find(self, fragment: Fragment, touched: list[_Call]) -> _Call | None:
        """The call a fragment continues; None when it begins a new one."""
        call = self._candidate(fragment)
        if call is None or not _fits(call, fragment):
            return None
        if call in touched and fragment.name:
            return None  # one chunk names a call once
        return call

    def _candidate(self, fragment: Fragment) -> _Call | None:
        calls = self._calls
        if fragment.index is not None:
            calls = [call for call in calls if call.position in (fragment.index, None)]
        if fragment.call_id:
            known = [call for call in calls if call.server_id == fragment.call_id]
            calls = known or calls
        return calls[-1] if calls else None

    def _grow(self, call: _Call, fragment: Fragment) -> Iterator[Event]:
        if call.position is None:
            call.position = fragment.index
        if fragment.call_id and not call.server_id:
            call.server_id = fragment.call_id
        if fragment.name and fragment.name != call.name:
            # A name comes whole, in pieces, or longer each time.
            longer = fragment.name.startswith(call.name)
            call.name = fragment.name if longer else call.name + fragment.name
        if fragment.whole:
            if fragment.arguments == call.arguments:
                return
            call.pieces = []
        if fragment.arguments:
            yield from self._start(call)
            yield from self._delta(call, call.mender.feed(fragment.arguments))

    def _start(self, call: _Call) -> Iterator[Event]:
        """Announce a call, as late as its name may still grow."""
        if call.block is None:
            taken = {other.call_id for other in self._calls}
            call.call_id = call.server_id
            while not call.call_id or call.call_id in taken:
                call.call_id = self._new_id()
            call.block = self._numbers.take()
            yield BlockStart(
                index=call.block, block="tool_call", call_id=call.call_id, name=call.name
            )

    @staticmethod
    def _delta(call: _Call, text: str) -> Iterator[Event]:
        if text and call.block is not None:
            call.pieces.append(text)
            yield BlockDelta(index=call.block, text=text)


def _fits(call: _Call, fragment: Fragment) -> bool:
    """Whether a fragment can belong to a call at its place."""
    if fragment.call_id and call.server_id and fragment.call_id != call.server_id:
        return False
    late_id = bool(fragment.call_id) and not call.server_id
    if not call.pieces:
        renamed = bool(call.name) and not fragment.name.startswith(call.name)
        return not (late_id and fragment.name and renamed)
    if fragment.whole and fragment.call_id and fragment.arguments == call.arguments:
        return True  # the same call once more
    if fragment.name and fragment.name != call.name:
        return False
    if late_id or (fragment.name and fragment.arguments.strip()):
        return not call.is_complete()
    return True
