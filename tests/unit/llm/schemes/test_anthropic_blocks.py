"""Replies of `/v1/messages`: prose, thinking and calls, as they should come and as they may."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pydantic import JsonValue

from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import ToolCall
from support import anthropic_streams
from support.anthropic_events import TOOL_USE, USAGE, called, read, reply, thought
from support.anthropic_streams import (
    RECORDED,
    closed,
    delta,
    opened,
    sse,
    start,
    thoughts,
    use,
    words,
)
from support.reply_events import FINISHED, cut_text, text

# --- blocks ----------------------------------------------------------------------------------


def test_thinking_text_and_parallel_calls() -> None:
    first = called(3, "toolu_a", "read_file", '{"pa', 'th": "ü😀"}', path="ü😀")
    second = called(4, "toolu_b", "glob", '{"pattern": "*.py"}', pattern="*.py")
    assert read(RECORDED["thinking, text and two calls"]) == (
        [
            *thought(0, "Let me ", "think.", signature="EqQBCgIYAhIM/+=="),
            *thought(1, encrypted="EmwKAhgBEgy3"),
            *text(2, "I will look."),
            *first[:-1],
            Ping(),
            *second[:-1],
            first[-1],
            second[-1],
            Usage(
                input_tokens=1007,
                output_tokens=40,
                cache_read_tokens=900,
                cache_creation_tokens=100,
                reasoning_tokens=12,
            ),
            TOOL_USE,
        ],
        None,
    )


def test_real_streams_of_llama_cpp() -> None:
    assert read(RECORDED["llama.cpp text"]) == (
        [
            *text(0, "Hello", "!"),
            Usage(input_tokens=20, output_tokens=6, cache_read_tokens=19),
            Status(state="finished", stop_reason="max_tokens"),
        ],
        None,
    )
    pieces = ("{", '"', "pattern", '":', ' "*.', "py", '"}')
    call = called(0, "8ehmnFsRfeCH2WKq", "glob", *pieces, pattern="*.py")
    usage = Usage(input_tokens=154, output_tokens=20)
    assert read(RECORDED["llama.cpp call"]) == ([*call, usage, TOOL_USE], None)


def test_thinking_that_is_not_shown_keeps_its_signature() -> None:
    assert read(RECORDED["thinking that is not shown"])[0] == [
        *thought(0, signature="c2VjcmV0"),
        *text(1, "a"),
        USAGE,
        FINISHED,
    ]


def test_two_blocks_of_thinking_keep_their_own_signatures() -> None:
    events = reply(*thoughts(0, "a", signature="1"), *thoughts(1, "b", signature="2"))
    assert events == [
        *thought(0, "a", signature="1"),
        *thought(1, "b", signature="2"),
        USAGE,
        FINISHED,
    ]


@pytest.mark.parametrize("end", [[], [closed(0)]])
def test_thinking_that_quotes_a_call_is_no_call(end: Sequence[anthropic_streams.Event]) -> None:
    quote = '<tool_call>{"name": "bash", "arguments": {}}'
    events = reply(opened(0, "thinking"), delta(0, "thinking", thinking=quote), *end)
    assert events == [*thought(0, quote), USAGE, FINISHED]


def test_what_the_server_ran_itself_is_left_out() -> None:
    assert read(RECORDED["tools of the server"])[0] == [
        *text(0, "I will search. "),
        *text(1, "Found."),
        USAGE,
        FINISHED,
    ]


@pytest.mark.parametrize("kind", ["mcp_tool_use", "server_tool_use", "from_the_future"])
def test_blocks_of_kinds_not_known_run_nothing(kind: str) -> None:
    unknown = [
        opened(0, kind, id="x", name="bash", input={"command": "ls"}, text="hidden"),
        delta(0, "input_json", partial_json="{}"),
        delta(0, "text", text="hidden"),
        closed(0),
    ]
    future: anthropic_streams.Event = {"type": "content_block_future", "index": 0}
    assert reply(*unknown, future, *words(1, "a")) == [*text(0, "a"), USAGE, FINISHED]


def test_deltas_not_known_are_passed_over() -> None:
    block = [opened(0, "text"), delta(0, "citations", citation={}), delta(0, "text", text="a")]
    assert reply(*block, delta(0, "new", x=1)) == [*text(0, "a"), USAGE, FINISHED]


def test_text_that_came_with_its_start() -> None:
    assert reply(
        opened(0, "thinking", thinking="a", signature="s"),
        delta(0, "thinking", thinking="b"),
        closed(0),
        opened(1, "text", text="c"),
        delta(1, "text", text="d"),
    ) == [*thought(0, "a", "b", signature="s"), *text(1, "c", "d"), USAGE, FINISHED]


def test_empty_blocks_show_nothing() -> None:
    empty = [opened(2, "redacted_thinking"), closed(2), *words(1, ""), *thoughts(0, signature="")]
    assert reply(*empty) == [USAGE, FINISHED]


# --- calls -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "pieces", "raw"),
    [
        ({"input": {}}, ['{"a"', ": 1}"], '{"a": 1}'),
        ({}, ['{"a": 1}'], '{"a": 1}'),
        ({"input": None}, ['{"a": 1}'], '{"a": 1}'),
        ({"input": {"a": 1}}, [], '{"a": 1}'),
        ({"input": {"a": 1}}, [""], '{"a": 1}'),
        ({"input": {"a": 2}}, ['{"a": 1}'], '{"a": 1}'),
        ({"input": '{"a": 1}'}, [], '{"a": 1}'),
        ({"input": {}}, [{"a": 1}], '{"a": 1}'),
    ],
)
@pytest.mark.parametrize("end", [[], [closed(0)]])
def test_arguments_however_they_come(
    given_: dict[str, JsonValue],
    pieces: list[JsonValue],
    raw: str,
    end: list[anthropic_streams.Event],
) -> None:
    events = reply(
        opened(0, "tool_use", id="x", name="f", **given_),
        *(delta(0, "input_json", partial_json=piece) for piece in pieces),
        *end,
    )
    assert "".join(e.text for e in events if isinstance(e, BlockDelta)) == raw
    assert [e for e in events if not isinstance(e, BlockDelta)] == [
        *called(0, "x", "f", a=1),
        USAGE,
        TOOL_USE,
    ]


@pytest.mark.parametrize("raw", ['{"a": ', "[1]", '{"a": NaN}', '"a"'])
def test_arguments_that_are_no_object_are_the_models_to_repair(raw: str) -> None:
    *_, stop, usage, status = reply(*use(0, "x", "f", raw))
    item = ToolCall(call_id="x", name="f", invalid=raw)
    assert [stop, usage, status] == [BlockStop(index=0, item=item), USAGE, TOOL_USE]


def test_arguments_as_a_list_are_not_guessed_at() -> None:
    *_, stop, _, _ = reply(opened(0, "tool_use", id="x", name="f", input=[1]))
    assert stop == BlockStop(index=0, item=ToolCall(call_id="x", name="f", invalid="[1]"))


@pytest.mark.parametrize("index", [None, 0, 5])
def test_calls_with_one_index_or_none_and_one_id_stay_apart(index: int | None) -> None:
    first, second = called(0, "x", "f", '{"a": 1}', a=1), called(1, "new-1", "g", '{"b": 2}', b=2)
    ends = [first[-1], second[-1], USAGE, TOOL_USE]
    calls = [*use(index, "x", "f", '{"a": 1}'), *use(index, "x", "g", '{"b": 2}')]
    assert reply(*calls) == [*first[:-1], *second[:-1], *ends]
    # Without its end too.
    del calls[2]
    assert reply(*calls) == [*first[:-1], *second[:-1], *ends]


def test_whole_arguments_of_calls_with_one_index_are_each_their_own() -> None:
    first, second = called(0, "x", "f", '{"a": 1}', a=1), called(1, "y", "g", '{"b": 2}', b=2)
    assert reply(
        opened(0, "tool_use", id="x", name="f", input={"a": 1}),
        opened(0, "tool_use", id="y", name="g", input={"b": 2}),
    ) == [*first[:-1], *second[:-1], first[-1], second[-1], USAGE, TOOL_USE]


def test_blocks_that_were_never_stopped_stay_apart() -> None:
    assert reply(
        opened(0, "thinking", thinking="a", signature="1"),
        opened(1, "thinking", thinking="b"),
        delta(1, "signature", signature="2"),
        opened(2, "text", text="c"),
        opened(3, "text", text="d"),
    ) == [
        *thought(0, "a", signature="1"),
        *thought(1, "b", signature="2"),
        *text(2, "c"),
        *text(3, "d"),
        USAGE,
        FINISHED,
    ]


def test_text_inside_a_call_is_said_and_no_part_of_its_arguments() -> None:
    begun, fragment, stop = called(0, "x", "f", "{}")
    assert reply(
        opened(0, "tool_use", id="x", name="f", input={}),
        delta(0, "text", text="a"),
        delta(0, "input_json", partial_json="{}"),
        closed(0),
    ) == [begun, *text(1, "a")[:2], fragment, text(1, "a")[2], stop, USAGE, TOOL_USE]


def test_calls_without_id_or_name() -> None:
    events = reply(opened(0, "tool_use", name="f"), *use(1, "", " ", "{}"))
    assert events == [
        *called(0, "new-1", "f")[:1],
        BlockStart(index=1, block="tool_call", call_id="new-2", name=" "),
        BlockDelta(index=1, text="{}"),
        *called(0, "new-1", "f")[1:],
        BlockAbort(index=1, reason="the call names no tool"),
        USAGE,
        TOOL_USE,
    ]


def test_blocks_in_any_order_and_between_one_another() -> None:
    first, second = called(1, "x", "f", '{"a"', ": 1}", a=1), called(2, "y", "g", '{"b": 2}', b=2)
    assert reply(
        opened(7, "text", text=""),
        delta(7, "text", text="a"),
        opened(3, "tool_use", id="x", name="f", input={}),
        opened(0, "tool_use", id="y", name="g", input={}),
        delta(3, "input_json", partial_json='{"a"'),
        delta(0, "input_json", partial_json='{"b": 2}'),
        delta(7, "text", text="b"),
        delta(3, "input_json", partial_json=": 1}"),
        closed(0),
        closed(9),
    ) == [
        *text(0, "a"),
        first[0],
        second[0],
        first[1],
        second[1],
        *text(3, "b")[:2],
        first[2],
        text(3, "b")[2],
        first[-1],
        second[-1],
        USAGE,
        TOOL_USE,
    ]


@pytest.mark.parametrize(
    ("event", "what"),
    [
        (delta(1, "input_json", partial_json="{}"), "index"),
        (delta(1, "text", text="a"), "index"),
        (delta(0, "input_json", partial_json="{}"), "partial_json"),
        (delta(0, "text", text=1), "text"),
        (delta(0, "signature", signature=[]), "signature"),
        (opened(1, "tool_use", name={}), "name"),
        ({"type": "content_block_start", "index": 1}, "content_block"),
        ({"type": "content_block_start", "index": 1, "content_block": "x"}, "content_block"),
        ({"type": "content_block_delta", "index": 0, "delta": []}, "delta"),
        ({"type": "message_delta", "delta": {"stop_reason": 1}}, "stop_reason"),
        ({"type": 5}, "type"),
    ],
)
def test_what_makes_no_sense_breaks_the_reply(event: anthropic_streams.Event, what: str) -> None:
    stream = sse(start(), opened(0, "text"), delta(0, "text", text="a")) + sse(event)
    assert read(stream) == (
        cut_text("a"),
        ("stream_broken", f"fake sent a part of the reply that makes no sense ({what})."),
    )


def test_a_stream_of_another_format_is_an_error() -> None:
    assert read(b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n')[1] == (
        "stream_broken",
        "fake sent a part of the reply that makes no sense (type).",
    )
