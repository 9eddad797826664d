"""Which call does a fragment belong to? Every way that servers have of not saying so."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentls.core.events import BlockAbort, BlockDelta, BlockStart, BlockStop, Status, Usage
from agentls.core.messages import Message, ToolCall
from support.openai_streams import RECORDED, call, calls, chunk, read, sse


def items(*chunks: JsonValue, finish: str = "tool_calls") -> list[ToolCall]:
    """The calls that would run."""
    events, error = read(sse(*chunks, chunk({}, finish)))
    assert error is None
    opened = [e for e in events if isinstance(e, BlockStart)]
    assert [e.index for e in opened] == list(range(len(opened)))
    ended = [e.item for e in events if isinstance(e, BlockStop)]
    found = [item for item in ended if isinstance(item, ToolCall)]
    announced = [(e.call_id, e.name) for e in opened if e.block == "tool_call"]
    assert announced == [(item.call_id, item.name) for item in found]
    status = events[-1]
    assert isinstance(status, Status)
    assert status.stop_reason == ("tool_use" if found else "end_turn")
    return found


def made(call_id: str, name: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments=arguments)


A = '{"path": "a"}'
B = '{"path": "b"}'
TWO = [made("x", "f", path="a"), made("y", "f", path="b")]
TWO_NEW = [made("new-1", "f", path="a"), made("new-2", "f", path="b")]


def test_events_of_two_calls_in_fragments() -> None:
    events, error = read(RECORDED["openai calls"])
    assert error is None
    assert events == [
        BlockStart(index=0, block="tool_call", call_id="call_a", name="read_file"),
        BlockDelta(index=0, text='{"pa'),
        BlockDelta(index=0, text='th": "ü😀"}'),
        BlockStart(index=1, block="tool_call", call_id="call_b", name="glob"),
        BlockDelta(index=1, text='{"pattern": "*.py"}'),
        BlockStop(index=0, item=made("call_a", "read_file", path="ü😀")),
        BlockStop(index=1, item=made("call_b", "glob", pattern="*.py")),
        Usage(input_tokens=7, output_tokens=3, cache_read_tokens=5),
        Status(state="finished", stop_reason="tool_use"),
    ]


@pytest.mark.parametrize("finish", ["tool_calls", "stop", "function_call", "whatever"])
def test_calls_run_whatever_the_finish_reason_claims(finish: str) -> None:
    assert items(calls(call(A, call_id="x", name="f")), finish=finish) == TWO[:1]


def test_text_before_calls_is_complete_before_they_start() -> None:
    events, _ = read(
        sse(chunk({"content": "hm"}), calls(call("{}", call_id="x", name="f")), chunk({}, "stop"))
    )
    assert events[:4] == [
        BlockStart(index=0, block="text"),
        BlockDelta(index=0, text="hm"),
        BlockStop(index=0, item=Message.of("assistant", "hm")),
        BlockStart(index=1, block="tool_call", call_id="x", name="f"),
    ]


# --- two calls, kept apart -------------------------------------------------------------------


@pytest.mark.parametrize("index", [0, None, 5])
def test_same_or_no_index_with_ids_of_their_own(index: int | None) -> None:
    one = call(A, index=index, call_id="x", name="f")
    other = call(B, index=index, call_id="y", name="f")
    assert items(calls(one), calls(other)) == TWO
    assert items(calls(one, other)) == TWO


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("call_id", [None, "", "same"])
def test_same_index_and_no_id_or_the_same_one(index: int | None, call_id: str | None) -> None:
    one = call(A, index=index, call_id=call_id, name="f")
    other = call(B, index=index, call_id=call_id, name="f")
    expected = (
        TWO_NEW if not call_id else [made("same", "f", path="a"), made("new-1", "f", path="b")]
    )
    assert items(calls(one), calls(other)) == expected
    assert items(calls(one, other)) == expected


def test_same_index_fragmented_with_ids() -> None:
    assert (
        items(
            calls(call("", call_id="x", name="f")),
            calls(call('{"path"')),
            calls(call(': "a"}')),
            calls(call("", call_id="y", name="f")),
            calls(call('{"path": ')),
            calls(call('"b"}')),
        )
        == TWO
    )


def test_same_index_interleaved_with_ids() -> None:
    assert (
        items(
            calls(call('{"path"', call_id="x", name="f"), call('{"path"', call_id="y", name="f")),
            calls(call(': "a"}', call_id="x")),
            calls(call(': "b"}', call_id="y")),
        )
        == TWO
    )


def test_indices_interleaved() -> None:
    assert (
        items(
            calls(
                call("", index=0, call_id="x", name="f"), call("", index=1, call_id="y", name="f")
            ),
            calls(call('{"path"', index=0), call('{"path"', index=1)),
            calls(call(': "b"}', index=1), call(': "a"}', index=0)),
        )
        == TWO
    )


def test_different_names_at_one_index_without_ids() -> None:
    assert items(calls(call("{}", name="f")), calls(call("{}", name="g"))) == [
        made("new-1", "f"),
        made("new-2", "g"),
    ]


def test_two_calls_without_arguments_in_one_chunk() -> None:
    assert items(calls(call(index=None, name="f"), call(index=None, name="g"))) == [
        made("new-1", "f"),
        made("new-2", "g"),
    ]


def test_the_same_id_at_two_indices() -> None:
    assert items(
        calls(call(A, index=0, call_id="x", name="f")),
        calls(call(B, index=1, call_id="x", name="f")),
    ) == [made("x", "f", path="a"), made("new-1", "f", path="b")]


def test_a_made_id_is_no_other_call_s() -> None:
    assert items(
        calls(call(A, index=0, call_id="new-1", name="f")), calls(call(B, index=1, name="f"))
    ) == [made("new-1", "f", path="a"), made("new-2", "f", path="b")]


# --- one call, kept together -----------------------------------------------------------------

ONE = [made("x", "read_file", path="a")]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([call(A, call_id="x", name="read_file")], id="whole in one chunk"),
        pytest.param(
            [call('{"path"', call_id="x", name="read_file"), call(': "a"}', call_id="x")],
            id="id repeated",
        ),
        pytest.param(
            [
                call('{"path"', call_id="x", name="read_file"),
                call(': "a"}', call_id="x", name="read_file"),
                call("", call_id="x", name="read_file"),
            ],
            id="id and name repeated",
        ),
        pytest.param(
            [
                call("", call_id="x", name="read_file"),
                call('{"path"', name="read_file"),
                call(': "a"}', name="read_file"),
                call(" ", name="read_file"),
            ],
            id="name repeated",
        ),
        pytest.param(
            [call("", call_id="x", name="read_"), call(None, name="file"), call(A)],
            id="name in pieces",
        ),
        pytest.param(
            [call("", call_id="x", name="read"), call("", name="read_file"), call(A)],
            id="name longer each time",
        ),
        pytest.param(
            [call(None, call_id="x"), call(None, name="read_file"), call(A)], id="name late"
        ),
        pytest.param([call(None, name="read_file"), call(A, call_id="x")], id="id late"),
        pytest.param(
            [
                call('{"path"', index=None, call_id="x", name="read_file"),
                call(': "a"}', index=None),
            ],
            id="no index",
        ),
        pytest.param(
            [
                call('{"path"', index=None, call_id="x", name="read_file"),
                call(': "a"}', index=None, call_id="x"),
            ],
            id="no index, id repeated",
        ),
        pytest.param(
            [call({"path": "a"}, call_id="x", name="read_file")], id="arguments an object"
        ),
        pytest.param(
            [call({"path": "a"}, call_id="x", name="read_file")] * 2, id="object sent twice"
        ),
        pytest.param(
            [{"index": "0", "id": "x", "function": {"name": "read_file", "arguments": A}}],
            id="index a string",
        ),
        pytest.param(
            [{"index": 0, "id": "x"}, call(A, name="read_file")], id="no function at first"
        ),
    ],
)
def test_one_call(chunks: list[dict[str, JsonValue]]) -> None:
    assert items(*(calls(entry) for entry in chunks)) == ONE


def test_an_id_that_is_a_number() -> None:
    entry: JsonValue = {"index": 0, "id": 7, "function": {"name": "f", "arguments": "{}"}}
    assert items(calls(entry)) == [made("7", "f")]


def test_the_older_function_call() -> None:
    assert items(
        chunk({"function_call": {"name": "f", "arguments": ""}}),
        chunk({"function_call": {"arguments": A}}),
        finish="function_call",
    ) == [made("new-1", "f", path="a")]


@given(
    st.lists(
        st.dictionaries(st.text(max_size=5), st.text() | st.integers() | st.none(), max_size=3),
        min_size=1,
        max_size=3,
    ),
    st.data(),
)
def test_any_cut_and_any_order_of_fragments(
    arguments: list[dict[str, JsonValue]], data: st.DataObject
) -> None:
    waiting: list[list[JsonValue]] = []
    for index, value in enumerate(arguments):
        raw = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
        edges = sorted({0, len(raw), *data.draw(st.lists(st.integers(0, len(raw)), max_size=4))})
        pieces: list[JsonValue] = [
            call(raw[a:b], index=index) for a, b in itertools.pairwise(edges)
        ]
        waiting.append([call("", index=index, call_id=f"c{index}", name="f"), *pieces])
    # The first fragments keep their order; which call a later one belongs to is drawn.
    stream = [entries.pop(0) for entries in waiting]
    while any(waiting):
        stream.append(
            data.draw(st.sampled_from([entries for entries in waiting if entries])).pop(0)
        )
    events, error = read(sse(*(calls(entry) for entry in stream), chunk({}, "stop")))
    assert error is None
    found = [e.item for e in events if isinstance(e, BlockStop)]
    assert found == [
        ToolCall(call_id=f"c{index}", name="f", arguments=value)
        for index, value in enumerate(arguments)
    ]


# --- arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [None, "", "  \n", {}, "{}"])
def test_no_arguments(arguments: JsonValue) -> None:
    assert items(calls(call(arguments, call_id="x", name="f"))) == [made("x", "f")]


@pytest.mark.parametrize(
    ("arguments", "raw"),
    [
        ('{"path": "a"', '{"path": "a"'),
        ("not json", "not json"),
        ("null", "null"),
        ("[1]", "[1]"),
        ("5", "5"),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"a": 1}{"a": 2}', '{"a": 1}{"a": 2}'),
        ('{"a": "\\ud83d"}', '{"a": "\\ud83d"}'),
        ([1], "[1]"),
        (5, "5"),
        (True, "true"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_invalid_arguments_are_kept_for_repair_and_history_stays_json(
    arguments: JsonValue, raw: str
) -> None:
    found = items(calls(call(arguments, call_id="x", name="f")))
    assert found == [ToolCall(call_id="x", name="f", invalid=raw)]
    assert json.loads(found[0].model_dump_json())["arguments"] == {}


def test_an_argument_cut_between_the_halves_of_a_character() -> None:
    found = items(calls(call('{"t": "\ud83d', call_id="x", name="f")), calls(call('\ude00"}')))
    assert found == [made("x", "f", t="😀")]


# --- calls that must not run -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "stop_reason", "why"),
    [
        ("length", "max_tokens", "the reply reached its token limit"),
        ("content_filter", "refusal", "the provider's filter cut the reply"),
    ],
)
def test_no_call_of_a_cut_reply_runs(finish: str, stop_reason: str, why: str) -> None:
    events, error = read(
        sse(
            chunk({"content": "hm"}),
            calls(call(A, index=0, call_id="x", name="f")),
            calls(call('{"path": "b', index=1, call_id="y", name="f")),
            chunk({}, finish),
            chunk({}, "stop"),
        )
    )
    assert error is None
    assert events == [
        BlockStart(index=0, block="text"),
        BlockDelta(index=0, text="hm"),
        BlockStop(index=0, item=Message.of("assistant", "hm")),
        BlockStart(index=1, block="tool_call", call_id="x", name="f"),
        BlockDelta(index=1, text=A),
        BlockStart(index=2, block="tool_call", call_id="y", name="f"),
        BlockDelta(index=2, text='{"path": "b'),
        BlockAbort(index=1, reason=why),
        BlockAbort(index=2, reason=why),
        Usage(),
        Status.model_validate({"state": "finished", "stop_reason": stop_reason}),
    ]


def test_a_stream_that_ends_inside_a_call_aborts_it() -> None:
    events, error = read(RECORDED["cut inside a call"])
    assert error == ("stream_broken", "fake ended before the reply was finished.")
    assert events[-2:] == [
        BlockDelta(index=1, text='{"path": "a'),
        BlockAbort(index=1, reason="the reply broke off"),
    ]


@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_call_without_a_name_is_aborted(name: str | None) -> None:
    events, error = read(sse(calls(call("{}", call_id="x", name=name)), chunk({}, "tool_calls")))
    assert error is None
    assert events[-3:] == [
        BlockAbort(index=0, reason="the call names no tool"),
        Usage(),
        Status(state="finished", stop_reason="end_turn"),
    ]


def test_calls_beside_a_nameless_one_run() -> None:
    events, _ = read(
        sse(
            calls(call("{}", index=0, call_id="x")),
            calls(call("{}", index=1, call_id="y", name="f")),
            chunk({}, "tool_calls"),
        )
    )
    assert events[-4:] == [
        BlockAbort(index=0, reason="the call names no tool"),
        BlockStop(index=1, item=made("y", "f")),
        Usage(),
        Status(state="finished", stop_reason="tool_use"),
    ]


def test_a_call_quoted_in_reasoning_or_text_is_no_call() -> None:
    quoted = '<tool_call>{"name": "bash", "arguments": {"command": "rm"}}</tool_call>'
    assert items(chunk({"reasoning_content": quoted}), chunk({"content": quoted})) == []
