"""Items and events that a user's function gives: whole blocks, in order, or a clear error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.errors import ModelError, StreamBroken
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockKind,
    BlockStart,
    BlockStop,
    Event,
    Failure,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import (
    ImageBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.llm.function.reply import CallableReply
from support.proofs import proving
from support.reply_events import BROKE_OFF, FINISHED, text

FINISHED_CALLS = Status(state="finished", stop_reason="tool_use")


def read(*pieces: object) -> tuple[list[Event], ModelError | None]:
    """What comes of the pieces, and how it ended."""
    reply = CallableReply("fake", "f")
    events: list[Event] = []
    try:
        for piece in pieces:
            events.extend(_each(reply.take(piece), events))
        events.extend(_each(reply.close(), events))
    except ModelError as error:
        return [*events, *reply.abort()], error
    return events, None


def _each(given_events: Iterator[Event], events: list[Event]) -> Iterable[Event]:
    """One by one, so that those before an error are kept."""
    for event in given_events:
        events.append(event)
    return ()


def call(
    index: int, item: ToolCall, *, raw: str | None = None, stop: bool = True
) -> tuple[list[Event], Event]:
    """The opening events of a call, and its end."""
    opening: list[Event] = [
        BlockStart(index=index, block="tool_call", call_id=item.call_id, name=item.name),
        BlockDelta(index=index, text=json.dumps(item.arguments) if raw is None else raw),
    ]
    return opening, BlockStop(index=index, item=item)


A = ToolCall(call_id="a", name="read", arguments={"path": "x"})
B = ToolCall(call_id="b", name="grep", arguments={}, signature="sig")
THOUGHT = Reasoning(text="hm", signature="s", provider="fake")


# --- items -----------------------------------------------------------------------------------


@proving("custom", "thinking", "parallel tools", peer="in process")
def test_items_become_whole_blocks_and_calls_end_with_the_reply() -> None:
    (a_open, a_stop), (b_open, b_stop) = call(2, A), call(4, B)
    usage = Usage(input_tokens=1)
    pieces = [
        Reasoning(text="hm", signature="s"), "one ", "two", A, Message.of("assistant", "three"),
        B, Ping(), usage,
    ]  # fmt: skip
    assert read(*pieces) == (
        [
            BlockStart(index=0, block="thinking"),
            BlockDelta(index=0, text="hm"),
            BlockStop(index=0, item=THOUGHT),
            *text(1, "one ", "two"),
            *a_open,
            *text(3, "three"),
            *b_open,
            Ping(),
            usage,
            a_stop,
            b_stop,
            FINISHED_CALLS,
        ],
        None,
    )


def test_calls_keep_apart_and_what_is_no_json_is_fed_back() -> None:
    nan = ToolCall.model_construct(call_id="a", name="read", arguments={"x": math.nan})
    invalid = ToolCall(call_id="c", name="read", invalid="{oops")
    events, error = read(A, nan, invalid)
    assert error is None
    stopped = [e.item for e in events if isinstance(e, BlockStop)]
    assert [item.invalid for item in stopped if isinstance(item, ToolCall)] == [
        None,
        '{"x": NaN}',
        "{oops",
    ]
    ids = [item.call_id for item in stopped if isinstance(item, ToolCall)]
    assert (ids[0], ids[2], len(set(ids))) == ("a", "c", 3)


def test_halves_of_characters_are_mended() -> None:
    assert read("a\ud83d", "\ude00b\ud83d") == ([*text(0, "a", "😀b", "\ufffd"), FINISHED], None)
    assert read(Message.of("assistant", "\ud83d")) == ([*text(0, "\ufffd"), FINISHED], None)
    streamed = [*text(5, "a\ud83d", "\ude00")[:-1], BlockStop(index=5, item=THOUGHT)]
    assert isinstance(read(*streamed)[1], StreamBroken)
    whole = BlockStop(index=5, item=Message.of("assistant", "a\ud83d\ude00"))
    assert read(*streamed[:-1], whole) == ([*text(0, "a", "😀"), FINISHED], None)


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_a_reply_that_was_cut_runs_no_call(reason: Any) -> None:
    finished = Status(state="finished", stop_reason=reason)
    events, error = read(A, finished)
    assert error is None
    assert [type(e) for e in events[2:]] == [BlockAbort, Status]
    assert events[-1] == finished


@pytest.mark.parametrize("claimed", [None, "end_turn", "tool_use", "max_turn_requests"])
def test_whether_there_are_calls_is_seen_and_not_believed(claimed: Any) -> None:
    finished = Status(state="finished", stop_reason=claimed)
    assert read("hi", finished)[0][-1] == FINISHED
    assert read(A, finished)[0][-1] == FINISHED_CALLS
    nameless = ToolCall(call_id="a", name=" ")
    assert read(nameless, finished)[0][-1] == FINISHED


# --- events ----------------------------------------------------------------------------------


def test_events_are_numbered_anew_and_fit_among_other_pieces() -> None:
    opening, stop = call(2, A)
    given_call = [opening[0], opening[1].model_copy(), stop]
    shifted = [e.model_copy(update={"index": 9}) for e in given_call]
    warning = Status(state="warning", message="mind")
    assert read("one", *text(7, "t", "wo"), warning, *shifted, FINISHED) == (
        [*text(0, "one"), *text(1, "t", "wo"), warning, *opening, stop, FINISHED_CALLS],
        None,
    )


def test_a_block_that_streams_nothing_is_given_by_its_item() -> None:
    whole: list[Event] = [
        BlockStart(index=0, block="text"),
        BlockStop(index=0, item=Message.of("assistant", "hi")),
    ]
    assert read(*whole) == ([*text(0, "hi"), FINISHED], None)


def test_a_block_may_be_aborted() -> None:
    events: list[Event] = [
        BlockStart(index=0, block="thinking"),
        BlockAbort(index=0, reason="never mind"),
    ]
    assert read(*events) == ([*events, FINISHED], None)


def test_ids_of_calls_are_made_and_kept_unique() -> None:
    start = BlockStart(index=0, block="tool_call", name="read")
    stop = BlockStop(index=0, item=A)
    events, error = read(A, start, stop)
    assert error is None
    begun = [e.call_id for e in events if isinstance(e, BlockStart)]
    ended = [e.item.call_id for e in events if isinstance(e, BlockStop)]  # type: ignore[union-attr]  # calls only
    assert begun[0] == "a" and begun[1] not in ("", "a")
    assert sorted(begun) == sorted(ended)


def test_a_failure_is_raised() -> None:
    failure = Failure(message="no.", provider="theirs", status=503, retryable=True)
    events, error = read("hi", failure)
    assert events == [*text(0, "hi")[:-1], BlockAbort(index=0, reason=BROKE_OFF)]
    assert type(error) is ModelError
    assert (error.message, error.provider, error.status, error.retryable) == (
        "no.",
        "theirs",
        503,
        True,
    )


IMAGE = ImageBlock(mime_type="image/png", data="aGk=")
START = BlockStart(index=3, block="text")
RESULT = ToolResult(call_id="c", name="t", content="x")


@pytest.mark.parametrize(
    ("pieces", "wrong"),
    [
        ([7], "gave something of type int, which is no part of a reply"),
        ([b"hi"], "gave something of type bytes, which is no part of a reply"),
        ([{"role": "assistant"}], "gave something of type dict, which is no part of a reply"),
        ([None], "gave something of type NoneType, which is no part of a reply"),
        ([["hi"]], "gave something of type list, which is no part of a reply"),
        ([RESULT], "gave something of type ToolResult, which is no part of a reply"),
        ([Message.of("user", "hi")], "gave a message of the user as its reply"),
        (
            [Message(role="assistant", content=(TextBlock(text="hi"), IMAGE))],
            "gave a message with more than text in it",
        ),
        ([BlockDelta(index=3, text="x")], "gave a block_delta for block 3, which is not open"),
        ([BlockAbort(index=3)], "gave a block_abort for block 3, which is not open"),
        ([*text(3, "x"), text(3, "x")[2]], "gave a block_stop for block 3, which is not open"),
        ([START, START], "began block 3 twice"),
        ([BlockStart(index=3, block="tool_result")], "began a tool_result block, which no model"),
        ([START, BlockStop(index=3, item=A)], "stopped a text block with a tool_call"),
        (
            [START, BlockStop(index=3, item=Message.of("user", "hi"))],
            "gave a message of the user as its reply",
        ),
        (
            [*text(3, "x")[:-1], BlockStop(index=3, item=Message.of("assistant", "y"))],
            "stopped a block with another text than it streamed",
        ),
        ([START], "ended its reply inside a block"),
        ([START, FINISHED], "ended its reply inside a block"),
        ([FINISHED, "more"], "went on after it said that its reply is finished"),
        ([FINISHED, FINISHED], "went on after it said that its reply is finished"),
    ],
)
def test_what_is_no_reply_is_a_broken_stream(pieces: list[object], wrong: str) -> None:
    events, error = read("hi", *pieces)
    assert type(error) is StreamBroken
    assert error.message.startswith(f"The function f {wrong}")
    assert (error.provider, error.retryable) == ("fake", False)
    _check_closed(events)


def _check_closed(events: list[Event]) -> None:
    """Every block that began ended once, with nothing of it after that."""
    open_blocks: set[int] = set()
    begun: list[int] = []
    for event in events:
        match event:
            case BlockStart(index=index):
                begun.append(index)
                open_blocks.add(index)
            case BlockDelta(index=index):
                assert index in open_blocks
            case BlockStop(index=index) | BlockAbort(index=index):
                open_blocks.remove(index)
    assert not open_blocks
    assert begun == list(range(len(begun)))


_KINDS: tuple[BlockKind, ...] = ("text", "thinking", "tool_call", "tool_result")
_ITEMS: tuple[Item, ...] = (A, B, THOUGHT, RESULT, Message.of("assistant", "x"))
_INDICES = st.integers(0, 2)
_PIECES = st.one_of(
    st.text(max_size=2),
    st.sampled_from(_ITEMS),
    st.sampled_from([Ping(), Usage(), FINISHED, Failure(message="x")]),
    st.builds(BlockStart, index=_INDICES, block=st.sampled_from(_KINDS), call_id=st.just("a")),
    st.builds(BlockDelta, index=_INDICES, text=st.just("x")),
    st.builds(BlockStop, index=_INDICES, item=st.sampled_from(_ITEMS)),
    st.builds(BlockAbort, index=_INDICES),
)


@given(st.lists(_PIECES, max_size=8))
def test_whatever_is_given_the_reply_is_well_formed_or_an_error(pieces: list[object]) -> None:
    events, error = read(*pieces)
    _check_closed(events)
    finished = [e for e in events if isinstance(e, Status)]
    if error is None:
        assert finished == [events[-1]] or isinstance(events[-1], Ping)
    ids = [e.call_id for e in events if isinstance(e, BlockStart) and e.block == "tool_call"]
    assert len(ids) == len(set(ids)) and "" not in ids
