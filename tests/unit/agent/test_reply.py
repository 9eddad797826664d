from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agentls.agent.reply import Overlap, Reply
from agentls.core.events import BlockAbort, BlockDelta, BlockStart, BlockStop, Event
from agentls.core.messages import Message, Reasoning, ToolCall

SLICES = st.lists(st.text(min_size=1, max_size=5), max_size=8)


@given(st.text(max_size=20), SLICES)
def test_a_reply_that_starts_over_shows_only_what_is_new(shown: str, rest: list[str]) -> None:
    overlap = Overlap(shown)
    repeated = [*shown, *rest]
    assert "".join(map(overlap.feed, repeated)) + overlap.close() == "".join(rest)


@given(st.text(min_size=1, max_size=20), SLICES)
def test_a_reply_that_goes_on_is_shown_whole(shown: str, rest: list[str]) -> None:
    whole = "".join(rest)
    overlap = Overlap(shown)
    out = "".join(map(overlap.feed, rest)) + overlap.close()
    # Only a reply that repeats everything is a repetition; a shorter one may be meant.
    assert out == whole.removeprefix(shown)


def test_blocks_are_renumbered_and_items_ordered() -> None:
    indices = itertools.count(5)
    reply = Reply(lambda: next(indices), {"c"})
    events: list[Event] = [
        BlockStart(index=0, block="tool_call", call_id="c", name="t"),
        BlockStop(index=0, item=ToolCall(call_id="c", name="t")),
        BlockStart(index=1, block="text"),
        BlockDelta(index=1, text="hello"),
        BlockStop(index=1, item=Message.of("assistant", "hello")),
        BlockStart(index=2, block="thinking"),
        BlockStop(index=2, item=Reasoning(text="hm")),
        BlockStart(index=3, block="tool_call", call_id="", name="t"),
        BlockAbort(index=3, reason="cut"),
    ]
    out = [taken for event in events for taken in reply.take(event)]
    call = ToolCall(call_id="c_1", name="t")
    assert out == [
        BlockStart(index=5, block="tool_call", call_id="c_1", name="t"),
        BlockStop(index=5, item=call),
        BlockStart(index=6, block="text"),
        BlockDelta(index=6, text="hello"),
        BlockStop(index=6, item=Message.of("assistant", "hello")),
        BlockStart(index=7, block="thinking"),
        BlockStop(index=7, item=Reasoning(text="hm")),
        BlockStart(index=8, block="tool_call", call_id="call_1", name="t"),
        BlockAbort(index=8, reason="cut"),
    ]
    assert reply.items() == [Reasoning(text="hm"), Message.of("assistant", "hello"), call]
    assert reply.aborted_calls == 1
