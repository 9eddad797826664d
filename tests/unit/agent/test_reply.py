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


def texts(reply: Reply, *events: Event) -> tuple[str, list[str]]:
    """What the deltas add up to, and the text of each complete block."""
    out = [taken for event in events for taken in reply.take(event)]
    deltas = "".join(event.text for event in out if isinstance(event, BlockDelta))
    items = [event.item for event in out if isinstance(event, BlockStop)]
    return deltas, [item.text for item in items if isinstance(item, Message)]


def text_block(index: int, text: str) -> list[Event]:
    return [
        BlockStart(index=index, block="text"),
        BlockDelta(index=index, text=text),
        BlockStop(index=index, item=Message.of("assistant", text)),
    ]


def thought(index: int) -> list[Event]:
    return [
        BlockStart(index=index, block="thinking"),
        BlockStop(index=index, item=Reasoning(text="hm")),
    ]


def test_a_complete_block_holds_its_own_text_and_no_other_s() -> None:
    reply = Reply(itertools.count().__next__, ())
    told = texts(reply, *text_block(0, "Hello "), *thought(1), *text_block(2, "world"))
    assert told == ("Hello world", ["Hello ", "world"])
    assert reply.items() == [Reasoning(text="hm"), Message.of("assistant", "Hello world")]


def test_text_of_a_complete_block_is_not_told_again_by_the_next_attempt() -> None:
    first = Reply(itertools.count().__next__, ())
    texts(first, *text_block(0, "I look."), BlockStart(index=1, block="text"))
    texts(first, BlockDelta(index=1, text=" Now"), BlockAbort(index=1))
    again = Reply(itertools.count().__next__, (), first.text, first.stopped)
    assert texts(again, *text_block(0, "I look. Now then.")) == (" then.", [" Now then."])
    assert again.items() == [Message.of("assistant", "I look. Now then.")]
