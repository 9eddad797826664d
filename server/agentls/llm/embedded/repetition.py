"""Ends a reply that does nothing but repeat itself, as those of small models do without end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Status,
    Usage,
)
from agentls.core.messages import Message

_SHORTEST_UNIT = 12
_LONGEST_UNIT = 600
_TIMES = 6
_REPEATED_CHARS = 400
_LOOK_EVERY_CHARS = 64


class Repetition:
    """Watches the text of one reply.

    A unit of 12 to 600 characters that stands at the end at least six times in a row, and over at
    least 400 characters, is a loop; tables and code repeat less, or in shorter units.
    """

    def __init__(self) -> None:
        """Starts with no text."""
        self._tail = ""
        self._unseen = 0

    def feed(self, text: str) -> bool:
        """Take more text; whether the reply has become a loop. Looks every 64 characters."""
        self._tail = (self._tail + text)[-_LONGEST_UNIT * _TIMES :]
        self._unseen += len(text)
        if self._unseen < _LOOK_EVERY_CHARS:
            return False
        self._unseen = 0
        longest = min(_LONGEST_UNIT, len(self._tail) // _TIMES)
        return any(map(self._is_loop_of, range(_SHORTEST_UNIT, longest + 1)))

    def _is_loop_of(self, length: int) -> bool:
        unit = self._tail[-length:]
        if not self._tail.endswith(unit + unit):
            return False
        times = max(_TIMES, -(-_REPEATED_CHARS // length))
        return self._tail.endswith(unit * times)


async def without_loops(events: AsyncGenerator[Event, None]) -> AsyncGenerator[Event, None]:
    """The events of one reply; one that becomes a loop ends as if the token limit had been reached.

    The stream it comes from is closed then, so that the model stops.
    """
    watch = Repetition()
    open_block, text = BlockStart(index=0, block="text"), ""
    async with aclosing(events):
        async for event in events:
            yield event
            if isinstance(event, BlockStart):
                open_block, text, watch = event, "", Repetition()
            elif isinstance(event, BlockDelta):
                text += event.text
                if watch.feed(event.text):
                    break
        else:
            return
    for ending in _ended(open_block, text):
        yield ending


def _ended(block: BlockStart, text: str) -> list[Event]:
    """What closes a reply in the middle of a block; thinking and calls are never complete."""
    complete = block.block == "text"
    message = Message.of("assistant", text)
    return [
        BlockStop(index=block.index, item=message)
        if complete
        else BlockAbort(index=block.index, reason="repeated itself"),
        Usage(),
        Status(state="warning", message="The model only repeated itself, so its reply was ended."),
        Status(state="finished", stop_reason="max_tokens"),
    ]
