"""Tool calls out of chat-completion deltas.

Owns one question: which call does a fragment belong to? The format says `index`; servers leave it
out, set it to 0 for every call, repeat or omit ids, cut names in pieces or repeat them. Knows
nothing of the rest of a chunk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from agentls.core.events import Event
from agentls.llm.wire.blocks import CallBlocks


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
    begun: bool = False  # its BlockStart was given
    last: str = ""


class Calls:
    """The calls of one reply, told apart."""

    def __init__(self, blocks: CallBlocks) -> None:
        """`blocks` takes what belongs to each call."""
        self._blocks = blocks
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

    def finish(self) -> Iterator[Event]:
        """Announce what was not announced yet: calls without arguments. Order all as they came."""
        for call in self._calls:
            yield from self._start(call)
        self._blocks.sort(self._calls)

    @property
    def any(self) -> bool:
        """Whether a call was begun."""
        return bool(self._calls)

    def _find(self, fragment: Fragment, touched: list[_Call]) -> _Call | None:
        """The call a fragment continues; None when it begins a new one."""
        call = self._candidate(fragment)
        if call is None or not self._fits(call, fragment):
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
            if call.begun:
                self._blocks.set(call, name=call.name)
        if fragment.whole:
            if self._says_again(call, fragment):
                return
            if call.begun:
                self._blocks.set(call, arguments="")
        if fragment.arguments:
            yield from self._start(call)
            if self._blocks.arguments(call) == "{}" and fragment.arguments.lstrip()[:1] == "{":
                self._blocks.set(call, arguments="")  # it only promised some
            call.last = fragment.arguments
            yield from self._blocks.add(call, fragment.arguments)

    def _start(self, call: _Call) -> Iterator[Event]:
        """Announce a call, as late as its name may still grow."""
        if not call.begun:
            call.begun = True
            yield from self._blocks.start(call, call.server_id, call.name)

    def _fits(self, call: _Call, fragment: Fragment) -> bool:
        """Whether a fragment can belong to a call at its place."""
        if fragment.call_id and call.server_id and fragment.call_id != call.server_id:
            return False
        late_id = bool(fragment.call_id) and not call.server_id
        if not call.begun:
            renamed = bool(call.name) and not fragment.name.startswith(call.name)
            return not (late_id and fragment.name and renamed)
        if fragment.whole and fragment.call_id and self._says_again(call, fragment):
            return True  # the same call once more
        if fragment.name and fragment.name != call.name:
            return False
        if late_id or (fragment.name and fragment.arguments.strip()):
            return not self._is_complete(call)
        return True

    def _says_again(self, call: _Call, fragment: Fragment) -> bool:
        return call.begun and fragment.arguments == self._blocks.arguments(call)

    def _is_complete(self, call: _Call) -> bool:
        """Whether the arguments are an object already: then nothing more can belong to it."""
        if call.last.strip() and not call.last.strip().endswith("}"):
            return False
        try:
            return isinstance(json.loads(self._blocks.arguments(call)), dict)
        except (ValueError, RecursionError):
            return False
