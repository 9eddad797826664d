"""Replies of `/responses`: slicing, and that each piece is told once."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import Item, Message, Reasoning, ToolCall
from support.reply_events import FINISHED, text, thinking
from support.responses_streams import (
    RECORDED,
    Object,
    added,
    call,
    done,
    ended,
    event,
    function_call,
    message,
    read,
    reasoning,
    say,
    sse,
    think,
)

PINGS: list[Event] = [Ping(), Ping()]
USAGE = Usage(input_tokens=7, output_tokens=3)
CALLED = Status(state="finished", stop_reason="tool_use")
TURN: list[Item] = [
    Reasoning(
        item_id="rs_a", text="**Plan**\n\nLook.\n\nThen write.", encrypted="gAAA", provider="fake"
    ),
    Message.of("assistant", "I will look. ü😀"),
    ToolCall(call_id="call_fc_a", name="read_file", arguments={"path": "ü😀"}),
    ToolCall(call_id="call_fc_b", name="glob"),
]


def items(stream: bytes) -> list[Item]:
    """The items of a whole reply, in the order they ended."""
    events, error = read(stream)
    assert error is None
    return [e.item for e in events if isinstance(e, BlockStop)]


def deltas(stream: bytes) -> list[str]:
    return [e.text for e in read(stream)[0] if isinstance(e, BlockDelta)]


# --- slicing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_byte_by_byte_gives_the_same_events(name: str) -> None:
    stream = RECORDED[name]
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == read(stream)


@settings(deadline=None)
@given(st.sampled_from(sorted(RECORDED)), st.lists(st.floats(0, 1), max_size=12))
def test_any_slicing_gives_the_same_events(name: str, cuts: list[float]) -> None:
    stream = RECORDED[name]
    edges = sorted({0, len(stream), *(int(cut * len(stream)) for cut in cuts)})
    assert read(*(stream[a:b] for a, b in itertools.pairwise(edges))) == read(stream)


@settings(deadline=None)
@given(
    st.sampled_from(["llama.cpp thinking", "openai turn", "thinking between calls", "interleaved"]),
    st.floats(0, 1),
)
def test_a_stream_cut_anywhere_is_whole_or_broken_and_runs_nothing(name: str, cut: float) -> None:
    stream = RECORDED[name]
    events, error = read(stream[: int(cut * len(stream))])
    opened = [e.index for e in events if isinstance(e, BlockStart)]
    closed = [e.index for e in events if isinstance(e, BlockStop | BlockAbort)]
    assert (opened, sorted(closed)) == (list(range(len(opened))), opened)
    if error is None:
        assert events == read(stream)[0]
    else:
        assert error[0] == "stream_broken"
        calls = [e for e in events if isinstance(e, BlockStop) and e.item.kind == "tool_call"]
        assert (calls, [e for e in events if isinstance(e, Status)]) == ([], [])


# --- what is told, and that it is told once --------------------------------------------------


def test_real_stream_of_llama_cpp() -> None:
    assert read(RECORDED["llama.cpp"]) == (
        [
            *PINGS,
            *text(0, "Hello", "!"),
            Usage(input_tokens=46, output_tokens=2, cache_read_tokens=5),
            FINISHED,
        ],
        None,
    )


def test_real_stream_of_llama_cpp_whose_thinking_ends_behind_the_text() -> None:
    thought, said = (
        thinking(0, "The", " word", " is", " delta", ".", "\n"),
        text(1, "It", " is", " delta", "."),
    )
    reasoned = Reasoning(item_id="rs_1", text="The word is delta.\n", provider="fake")
    assert read(RECORDED["llama.cpp thinking"]) == (
        [
            *PINGS,
            *thought[:-1],
            *said[:-1],
            BlockStop(index=0, item=reasoned),
            said[-1],
            Usage(input_tokens=160, output_tokens=20),
            FINISHED,
        ],
        None,
    )


def test_a_turn_of_thinking_text_and_parallel_calls() -> None:
    thought, said, read_file, glob = TURN
    assert read(RECORDED["openai turn"]) == (
        [
            *PINGS,
            BlockStart(index=0, block="thinking"),
            BlockDelta(index=0, text="**Plan*"),
            BlockDelta(index=0, text="*\n\nLook."),
            BlockDelta(index=0, text="\n\nThen "),
            BlockDelta(index=0, text="write."),
            BlockStop(index=0, item=thought),
            BlockStart(index=1, block="text"),
            BlockDelta(index=1, text="I will "),
            BlockDelta(index=1, text="look. ü😀"),
            BlockStop(index=1, item=said),
            BlockStart(index=2, block="tool_call", call_id="call_fc_a", name="read_file"),
            BlockDelta(index=2, text='{"pa'),
            BlockDelta(index=2, text='th": "ü😀"}'),
            BlockStart(index=3, block="tool_call", call_id="call_fc_b", name="glob"),
            BlockDelta(index=3, text="{}"),
            BlockStop(index=2, item=read_file),
            BlockStop(index=3, item=glob),
            Usage(input_tokens=100, output_tokens=40, cache_read_tokens=64, reasoning_tokens=20),
            CALLED,
        ],
        None,
    )


@pytest.mark.parametrize(
    "name",
    [
        "openai turn",
        "no places",
        "wholes of parts only",
        "wholes of items only",
        "whole response only",
        "not streamed",
    ],
)
def test_a_turn_is_the_same_however_it_is_told(name: str) -> None:
    assert items(RECORDED[name]) == TURN
    whole = "**Plan**\n\nLook.\n\nThen write.I will look. ü😀" + '{"path": "ü😀"}{}'
    assert "".join(deltas(RECORDED[name])) == whole


def test_a_turn_without_ids_cannot_name_its_thinking() -> None:
    thought, *rest = TURN
    assert items(RECORDED["no ids"]) == [thought.model_copy(update={"item_id": ""}), *rest]


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_the_end_of_a_text_whose_deltas_were_lost_is_made_up_for(lost: int) -> None:
    events = say("msg_a", 0, "a", "b", "c")
    spoiled = [e for e in events if e.get("delta") not in ("b", "c")[lost:]]
    assert "".join(deltas(sse(*ended(spoiled)))) == "abc"


@pytest.mark.parametrize("whole", ["other", "a", "", "xab"])
def test_a_whole_that_differs_from_its_deltas_is_not_told_as_well(whole: str) -> None:
    part: Object = {"type": "output_text", "text": whole}
    place: Object = {"item_id": "msg_a", "output_index": 0, "content_index": 0}
    events = [
        added(message("msg_a", ""), 0),
        event("output_text.delta", **place, delta="ab"),
        event("output_text.done", **place, text=whole),
        event("content_part.done", **place, part=part),
        done(message("msg_a", whole), 0),
    ]
    assert read(sse(*ended(events))) == ([*PINGS, *text(0, "ab"), USAGE, FINISHED], None)


@pytest.mark.parametrize(
    ("pieces", "whole", "arguments"),
    [
        (['{"a":', "1}"], '{"a": 1}', {"a": 1}),  # written in another way
        (['{"a":'], '{"a":1}', {"a": 1}),
        ([], '{"a":1}', {"a": 1}),
        (['{"a":1}'], "", {"a": 1}),
        (['{"a":1}'], None, {"a": 1}),
        (['{"a":1}'], {"a": 2}, {"a": 2}),
        (['{"a":1}'], '{"a":2}', {"a": 2}),
    ],
)
def test_the_whole_arguments_of_a_call_count(
    pieces: list[str], whole: JsonValue, arguments: dict[str, JsonValue]
) -> None:
    place: Object = {"item_id": "fc_a", "output_index": 0}
    item = {**function_call("fc_a", "c", "f", ""), "arguments": whole}
    events = [
        added(item, 0),
        *(event("function_call_arguments.delta", **place, delta=piece) for piece in pieces),
        done(item, 0),
    ]
    assert items(sse(*ended(events))) == [ToolCall(call_id="c", name="f", arguments=arguments)]


def test_arguments_that_are_no_json_are_kept_for_the_model_to_repair() -> None:
    stream = sse(*ended(call("fc_a", 0, "f", '{"a": ', call_id="c")))
    assert items(stream) == [ToolCall(call_id="c", name="f", invalid='{"a": ')]


def test_raw_thinking_and_its_summary_are_kept_apart() -> None:
    place: Object = {"item_id": "rs_a", "output_index": 0}
    item: Object = {
        **reasoning("rs_a", "short"),
        "content": [{"type": "reasoning_text", "text": "long"}],
    }
    events = [
        added(item, 0),
        event("reasoning_text.delta", **place, content_index=0, delta="lo"),
        event("reasoning_text.delta", **place, content_index=0, delta="ng"),
        event("reasoning_summary_text.delta", **place, summary_index=0, delta="short"),
        done(item, 0),
    ]  # fmt: skip
    assert items(sse(*ended(events))) == [
        Reasoning(item_id="rs_a", text="long\n\nshort", provider="fake")
    ]


def test_thinking_that_only_the_provider_can_read() -> None:
    stream = sse(*ended([*think("rs_a", 0, encrypted="X"), *think("rs_b", 1)]))
    assert read(stream)[0][2:-2] == [
        BlockStart(index=0, block="thinking"),
        BlockStop(index=0, item=Reasoning(item_id="rs_a", encrypted="X", provider="fake")),
    ]


def test_only_thinking_is_encrypted() -> None:
    stream = sse(*ended([done({**message("msg_a", ""), "encrypted_content": "X"}, 0)]))
    assert read(stream) == ([*PINGS, USAGE, FINISHED], None)


def test_encrypted_thinking_counts_only_once_it_is_whole() -> None:
    begun = added(reasoning("rs_a"), 0)
    assert isinstance(begun["item"], dict)
    begun["item"]["encrypted_content"] = "half"
    stream = sse(*ended([begun, done(reasoning("rs_a", encrypted="whole"), 0)]))
    assert items(stream) == [Reasoning(item_id="rs_a", encrypted="whole", provider="fake")]


def test_events_of_unknown_kinds_say_that_the_stream_is_alive() -> None:
    stream = sse(event("later.invention", anything=[1]), {"type": "keepalive"}, *ended([])[2:])
    assert read(stream) == ([Ping(), Ping(), USAGE, FINISHED], None)


def test_tools_of_the_server_run_nothing_here() -> None:
    assert items(RECORDED["tools of the server"]) == [Message.of("assistant", "found")]
    assert read(RECORDED["tools of the server"])[0][-1] == FINISHED
