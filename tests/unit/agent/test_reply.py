from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agentls.agent.reply import Overlap, Reply
from agentls.core.events import BlockAbort, BlockDelta, BlockKind, BlockStart, BlockStop, Event
from agentls.core.messages import Item, Message, Reasoning, ToolCall

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
    assert reply.items() == [Message.of("assistant", "hello"), call, Reasoning(text="hm")]
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
    assert reply.items() == [
        Message.of("assistant", "Hello "),
        Reasoning(text="hm"),
        Message.of("assistant", "world"),
    ]


def test_text_of_a_complete_block_is_not_told_again_by_the_next_attempt() -> None:
    first = Reply(itertools.count().__next__, ())
    texts(first, *text_block(0, "I look."), BlockStart(index=1, block="text"))
    texts(first, BlockDelta(index=1, text=" Now"), BlockAbort(index=1))
    again = Reply(itertools.count().__next__, (), first.text, first.stopped)
    assert texts(again, *text_block(0, "I look. Now then.")) == (" then.", [" Now then."])
    assert again.items() == [Message.of("assistant", "I look. Now then.")]


def test_the_order_of_thinking_and_calls_is_kept() -> None:
    first, second = Reasoning(text="1", signature="a"), Reasoning(text="2", signature="b")
    one = ToolCall(call_id="x", name="f")
    other = ToolCall(call_id="y", name="g")
    said = ["Look: ", "both.", " Done."]
    blocks: list[Item] = [
        first,
        Message.of("assistant", said[0]),
        Message.of("assistant", said[1]),
        one,
        second,
        ToolCall(call_id="z", name=" "),
        Message.of("assistant", said[2]),
        other,
    ]
    reply = Reply(itertools.count().__next__, frozenset())
    for index, item in enumerate(blocks):
        kind: BlockKind = (
            "thinking"
            if isinstance(item, Reasoning)
            else "tool_call"
            if isinstance(item, ToolCall)
            else "text"
        )
        call_id = item.call_id if isinstance(item, ToolCall) else ""
        reply.take(BlockStart(index=index, block=kind, call_id=call_id))
        if isinstance(item, Message):
            reply.take(BlockDelta(index=index, text=item.text))
        reply.take(BlockStop(index=index, item=item))
    assert reply.items() == [first, Message.of("assistant", "".join(said)), one, second, other]
