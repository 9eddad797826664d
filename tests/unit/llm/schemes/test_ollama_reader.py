"""Replies of Ollama's chat: slicing, prose, calls and ends."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
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
    StopReason,
    Usage,
)
from agentls.core.messages import ToolCall
from support.ollama_streams import (
    RECORDED,
    call,
    calls,
    delta,
    done,
    heard,
    ndjson,
    reader,
)
from support.reply_events import FINISHED, cut_text, text, thinking

USAGE = Usage(input_tokens=7, output_tokens=3)
TOOL_USE = Status(state="finished", stop_reason="tool_use")


def called(index: int, call_id: str, name: str, arguments: dict[str, JsonValue]) -> list[Event]:
    """The events of a call, but its end."""
    raw = json.dumps(arguments, ensure_ascii=False)
    start = BlockStart(index=index, block="tool_call", call_id=call_id, name=name)
    return [start, BlockDelta(index=index, text=raw)]


def ended(index: int, call_id: str, name: str, arguments: dict[str, JsonValue]) -> Event:
    return BlockStop(index=index, item=ToolCall(call_id=call_id, name=name, arguments=arguments))


# --- slicing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_byte_by_byte_gives_the_same_events(name: str) -> None:
    stream = RECORDED[name]
    assert heard(*(stream[at : at + 1] for at in range(len(stream)))) == heard(stream)


@given(st.sampled_from(sorted(RECORDED)), st.lists(st.integers(0, 1200), max_size=12))
def test_any_slicing_gives_the_same_events(name: str, cuts: list[int]) -> None:
    stream = RECORDED[name]
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    assert heard(*(stream[a:b] for a, b in itertools.pairwise(edges))) == heard(stream)


@given(st.sampled_from(["text", "thinking, then text", "parallel calls"]), st.data())
def test_a_stream_cut_anywhere_is_whole_or_broken_and_never_half(
    name: str, data: st.DataObject
) -> None:
    stream = RECORDED[name]
    events, error = heard(stream[: data.draw(st.integers(0, len(stream) - 1))])
    opened = [e.index for e in events if isinstance(e, BlockStart)]
    closed = [e.index for e in events if isinstance(e, BlockStop | BlockAbort)]
    assert sorted(closed) == opened
    if error is None:
        assert events == heard(stream)[0]  # only the last line end is missing
    else:
        assert error[0] == "stream_broken"
        assert not any(isinstance(e, Status) for e in events)
        stopped = [e.item.kind for e in events if isinstance(e, BlockStop)]
        assert "tool_call" not in stopped


# --- prose -----------------------------------------------------------------------------------


def test_text_and_usage() -> None:
    assert heard(RECORDED["text"]) == (
        [*text(0, "Grüße", " 👋", "\u2028\x85"), USAGE, FINISHED],
        None,
    )


def test_thinking_comes_before_text_and_the_cache_is_counted() -> None:
    usage = Usage(input_tokens=7, output_tokens=3, cache_read_tokens=5)
    assert heard(RECORDED["thinking, then text"]) == (
        [*thinking(0, "Let me ", "think."), *text(1, "4"), usage, FINISHED],
        None,
    )


def test_both_in_one_line() -> None:
    stream = ndjson(delta("so", thinking="hm"), done())
    assert heard(stream)[0] == [*thinking(0, "hm"), *text(1, "so"), USAGE, FINISHED]


def test_a_reply_that_was_not_streamed() -> None:
    assert heard(RECORDED["one line"]) == ([*text(0, "not streamed"), USAGE, FINISHED], None)


def test_odd_line_ends_and_missing_counts() -> None:
    assert heard(RECORDED["escaped, crlf, blank lines"]) == (
        [*text(0, "naïve 日本 😀"), Usage(output_tokens=3), FINISHED],
        None,
    )
    assert heard(RECORDED["lone cr"]) == ([*text(0, "a"), USAGE, FINISHED], None)
    assert heard(RECORDED["no last line end"]) == ([*text(0, "a"), USAGE, FINISHED], None)


def test_a_character_in_two_halves_is_joined_and_a_lone_half_replaced() -> None:
    events, error = heard(RECORDED["halves of a character"])
    assert (events, error) == ([*text(0, "a", "😀b", "\ufffd"), USAGE, FINISHED], None)


@pytest.mark.parametrize(
    "line", [delta(), {}, {"message": None}, {"status": "loading"}, delta(thinking="")]
)
def test_a_line_that_says_nothing_is_a_sign_of_life(line: JsonValue) -> None:
    assert heard(ndjson(line, delta("a"), done())) == (
        [Ping(), *text(0, "a"), USAGE, FINISHED],
        None,
    )


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({"prompt_eval_count": None, "eval_count": None}, Usage()),
        ({"prompt_eval_count": "7", "eval_count": -3}, Usage()),
        (
            {"prompt_eval_count": 2, "prompt_eval_cached_count": 6},
            Usage(input_tokens=6, output_tokens=3, cache_read_tokens=6),
        ),
    ],
)
def test_counts_that_are_missing_or_odd(counts: dict[str, JsonValue], usage: Usage) -> None:
    assert heard(ndjson(delta("a"), done(**counts)))[0] == [*text(0, "a"), usage, FINISHED]


# --- calls -----------------------------------------------------------------------------------


def test_calls_over_several_lines_keep_apart_and_get_ids() -> None:
    first: dict[str, JsonValue] = {"path": "ü😀.py", "lines": [1, 2]}
    assert heard(RECORDED["parallel calls"]) == (
        [
            *text(0, "I will look."),
            *called(1, "new-1", "read_file", first),
            *called(2, "new-2", "glob", {"pattern": "*.py"}),
            *called(3, "new-3", "read_file", {"path": "b.py"}),
            ended(1, "new-1", "read_file", first),
            ended(2, "new-2", "glob", {"pattern": "*.py"}),
            ended(3, "new-3", "read_file", {"path": "b.py"}),
            USAGE,
            TOOL_USE,
        ],
        None,
    )


def test_ids_are_kept() -> None:
    events, error = heard(RECORDED["calls with ids and places"])
    assert error is None
    assert events == [
        *called(0, "call_8x0k2jq1", "glob", {"pattern": "*"}),
        *called(1, "call_0p9d7rtz", "bash", {"command": "ls"}),
        ended(0, "call_8x0k2jq1", "glob", {"pattern": "*"}),
        ended(1, "call_0p9d7rtz", "bash", {"command": "ls"}),
        USAGE,
        TOOL_USE,
    ]


def test_ids_and_places_that_repeat_do_not_join_calls() -> None:
    same: dict[str, JsonValue] = {
        "id": "x",
        "function": {"index": 0, "name": "glob", "arguments": {"a": 1}},
    }
    events, _ = heard(ndjson(calls(same, same), calls(same), done()))
    made = [e.item for e in events if isinstance(e, BlockStop)]
    assert made == [
        ToolCall(call_id=call_id, name="glob", arguments={"a": 1})
        for call_id in ("x", "new-1", "new-2")
    ]


@pytest.mark.parametrize(
    ("arguments", "expected", "invalid"),
    [
        ({}, {}, None),
        (None, {}, None),
        ("", {}, None),
        ('{"a": 1}', {"a": 1}, None),
        ('{"a": ', {}, '{"a": '),
        ([1], {}, "[1]"),
        (7, {}, "7"),
        ("null", {}, "null"),
        (float("nan"), {}, "NaN"),
        ({"a": "\ud83d"}, {"a": "\ufffd"}, None),
    ],
)
def test_arguments_as_servers_send_them(
    arguments: JsonValue, expected: dict[str, JsonValue], invalid: str | None
) -> None:
    body = json.dumps(calls(call("f", arguments))).encode() + b"\n" + ndjson(done())
    (item,) = (e.item for e in heard(body)[0] if isinstance(e, BlockStop))
    assert item == ToolCall(call_id="new-1", name="f", arguments=expected, invalid=invalid)


@pytest.mark.parametrize("entry", [call("", {"a": 1}), call(" ", {}), {"function": None}, {}])
def test_a_call_that_names_no_tool_never_runs(entry: JsonValue) -> None:
    events, error = heard(ndjson(calls(entry), done()))
    assert error is None
    assert events[-3:] == [
        BlockAbort(index=0, reason="the call names no tool"),
        USAGE,
        FINISHED,
    ]


# --- ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("stop", "end_turn"),
        ("load", "end_turn"),
        ("unload", "end_turn"),
        (None, "end_turn"),
        ("", "end_turn"),
        ("tool_calls", "end_turn"),
        ("something new", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
    ],
)
def test_reasons(said: str | None, reason: StopReason) -> None:
    assert heard(ndjson(delta("a"), done(said))) == (
        [*text(0, "a"), USAGE, Status(state="finished", stop_reason=reason)],
        None,
    )


def test_a_reply_at_its_limit_runs_no_call_even_a_whole_one() -> None:
    for stream in (
        RECORDED["length inside a call"],
        ndjson(calls(call("write_file", {"path": "a"})), done("length")),
    ):
        events, error = heard(stream)
        assert error is None
        assert events[-3:] == [
            BlockAbort(index=0, reason="the reply reached its token limit"),
            USAGE,
            Status(state="finished", stop_reason="max_tokens"),
        ]


def test_a_stop_that_lies_about_calls_is_overruled() -> None:
    assert heard(ndjson(calls(call("f", {})), done("stop")))[0][-1] == TOOL_USE
    assert heard(ndjson(delta("a"), done("tool_calls")))[0][-1] == FINISHED


def test_calls_in_the_last_line_run() -> None:
    last: dict[str, JsonValue] = {**done(), "message": calls(call("f", {}))["message"]}
    assert heard(ndjson(last))[0][-2:] == [USAGE, TOOL_USE]


def test_the_end_without_done_is_broken_and_no_call_runs() -> None:
    broke = ("stream_broken", "fake ended before the reply was finished.")
    events, error = heard(RECORDED["cut behind a call"])
    assert error == broke
    assert events == [
        *text(0, "I will"),
        *called(1, "new-1", "glob", {}),
        BlockAbort(index=1, reason="the reply broke off"),
    ]
    assert heard(RECORDED["cut within a line"])[0] == cut_text("a")
    assert heard(RECORDED["nothing"]) == ([], ("stream_broken", "fake sent an empty answer."))


def test_nothing_counts_after_the_end() -> None:
    made = reader()
    assert made.patience_s is None
    events = [*made.feed(ndjson(delta("a"), done(), delta("b"), {"error": "late"}))]
    assert made.patience_s is not None
    assert [*events, *made.feed(b"{half"), *made.close()] == [*text(0, "a"), USAGE, FINISHED]


# --- what makes no sense ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"{oops}", "is not JSON"),
        (b'{"a": "\xff"}', "is not JSON"),
        (b"data: {}", "is not JSON"),
        (b"[1]", "makes no sense (not an object)"),
        (b"null", "makes no sense (not an object)"),
        (b'{"done": "yes"}', "makes no sense (done)"),
        (b'{"message": 5}', "makes no sense (message)"),
        (b'{"message": {"content": ["hi"]}}', "makes no sense (content)"),
        (b'{"message": {"thinking": 1}}', "makes no sense (thinking)"),
        (b'{"message": {"tool_calls": {}}}', "makes no sense (tool_calls)"),
        (b'{"message": {"tool_calls": [1]}}', "makes no sense (tool_calls)"),
        (b'{"message": {"tool_calls": [{"function": "f"}]}}', "makes no sense (function)"),
        (b'{"message": {"tool_calls": [{"function": {"name": 1}}]}}', "makes no sense (name)"),
        (b'{"done": true, "done_reason": 1}', "makes no sense (done_reason)"),
    ],
)
def test_a_malformed_line_is_an_error_and_never_skipped(line: bytes, what: str) -> None:
    assert heard(ndjson(delta("a")) + line + b"\n" + ndjson(done())) == (
        cut_text("a"),
        ("stream_broken", f"fake sent a part of the reply that {what}."),
    )
