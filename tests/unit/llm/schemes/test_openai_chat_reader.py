"""Replies of chat completions: slicing, prose and ends."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentls.core.events import (
    BlockAbort,
    BlockStart,
    BlockStop,
    Ping,
    Status,
    StopReason,
    Usage,
)
from agentls.llm.schemes.openai_chat_reader import ChatReader
from support.openai_streams import (
    DONE,
    RECORDED,
    chunk,
    counter,
    read,
    sse,
)
from support.reply_events import FINISHED, cut_text, text, thinking

# --- slicing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_byte_by_byte_gives_the_same_events(name: str) -> None:
    stream = RECORDED[name]
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == read(stream)


@given(st.sampled_from(sorted(RECORDED)), st.lists(st.integers(0, 2000), max_size=12))
def test_any_slicing_gives_the_same_events(name: str, cuts: list[int]) -> None:
    stream = RECORDED[name]
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    assert read(*(stream[a:b] for a, b in itertools.pairwise(edges))) == read(stream)


@given(st.sampled_from(["openai calls", "deepseek reasoning", "llama.cpp"]), st.data())
def test_a_stream_cut_anywhere_is_whole_or_broken_and_never_half(
    name: str, data: st.DataObject
) -> None:
    stream = RECORDED[name]
    whole, _ = read(stream)
    events, error = read(stream[: data.draw(st.integers(0, len(stream) - 1))])
    opened = [e.index for e in events if isinstance(e, BlockStart)]
    ended = [e.index for e in events if isinstance(e, BlockStop | BlockAbort)]
    assert sorted(ended) == opened
    if error is None:
        # The cut may have taken the usage, or have left half a ping.
        assert [e for e in events if not isinstance(e, Usage | Ping)] == [
            e for e in whole if not isinstance(e, Usage | Ping)
        ]
    else:
        assert error[0] == "stream_broken"
        assert not any(isinstance(e, Status) for e in events)
        stopped = [e.item.kind for e in events if isinstance(e, BlockStop)]
        assert "tool_call" not in stopped


# --- prose -----------------------------------------------------------------------------------


def test_real_stream_of_llama_cpp() -> None:
    assert read(RECORDED["llama.cpp"]) == (
        [
            *text(0, "H", "mm"),
            Usage(input_tokens=32, output_tokens=4),
            Status(state="finished", stop_reason="max_tokens"),
        ],
        None,
    )


def test_reasoning_comes_before_text_and_pings_are_told() -> None:
    assert read(RECORDED["deepseek reasoning"]) == (
        [Ping(), *thinking(0, "Let me ", "think."), *text(1, "Grüße 👋"), Usage(), FINISHED],
        None,
    )


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning": "hm"},
        {"reasoning_content": "hm"},
        {"reasoning_content": "hm", "reasoning": "hm"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]},
    ],
)
def test_names_of_reasoning(delta: dict[str, JsonValue]) -> None:
    assert read(sse(chunk(delta), chunk({}, "stop"))) == (
        [*thinking(0, "hm"), Usage(), FINISHED],
        None,
    )


def test_text_between_thoughts_keeps_its_place() -> None:
    stream = sse(
        chunk({"content": "a"}), chunk({"reasoning": "b"}), chunk({"content": "c"}, "stop")
    )
    assert read(stream)[0] == [*text(0, "a"), *thinking(1, "b"), *text(2, "c"), Usage(), FINISHED]


def test_content_as_parts() -> None:
    stream = sse(chunk({"content": [{"type": "text", "text": "a"}, "b"]}, "stop"))
    assert read(stream)[0] == [*text(0, "a", "b"), Usage(), FINISHED]


def test_line_ends_of_other_alphabets_stay_text() -> None:
    start, delta, stop = text(0, "naïve 日本\u2028\x85\f 😀")
    assert read(RECORDED["raw utf-8, crlf, comments"]) == (
        [Ping(), start, delta, Ping(), stop, Usage(), FINISHED],
        None,
    )


def test_a_character_in_two_halves_is_joined_and_a_lone_half_replaced() -> None:
    events, error = read(RECORDED["halves of a character"])
    assert error is None
    assert events == [*text(0, "a", "😀b", "\ufffd"), Usage(), FINISHED]
    assert all(event.model_dump_json() for event in events)


def test_refusal_is_text_and_a_reason() -> None:
    stream = sse(chunk({"refusal": "I can"}), chunk({"refusal": "not."}), chunk({}, "stop"))
    assert read(stream)[0] == [
        *text(0, "I can", "not."),
        Usage(),
        Status(state="finished", stop_reason="refusal"),
    ]


# --- ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "end_turn"),
        ("tool_calls", "end_turn"),
        ("function_call", "end_turn"),
        ("eos", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
    ],
)
def test_finish_reasons_of_text(finish: str, reason: StopReason) -> None:
    assert read(sse(chunk({"content": "a"}), chunk({}, finish))) == (
        [*text(0, "a"), Usage(), Status(state="finished", stop_reason=reason)],
        None,
    )


@pytest.mark.parametrize("finish", ["error", "abort", "insufficient_system_resource"])
def test_a_finish_that_is_a_failure(finish: str) -> None:
    assert read(sse(chunk({"content": "a"}), chunk({}, finish))) == (
        cut_text("a"),
        ("stream_broken", f"fake gave up on the reply ({finish})."),
    )


def test_whole_without_done_mark() -> None:
    assert read(RECORDED["no done mark, no last line end"]) == (
        [*text(0, "a"), Usage(), FINISHED],
        None,
    )


@pytest.mark.parametrize("done", [False, True])
def test_no_finish_reason_is_broken_with_and_without_done_mark(done: bool) -> None:
    assert read(sse(chunk({"content": "a"}), done=done)) == (
        cut_text("a"),
        ("stream_broken", "fake ended before the reply was finished."),
    )


def test_an_empty_finish_reason_is_none() -> None:
    assert read(sse(chunk({"content": "a"}, "")))[1] is not None


@pytest.mark.parametrize("stream", [b"", b"\r\n", b"\xef\xbb\xbf"])
def test_an_empty_answer(stream: bytes) -> None:
    assert read(stream) == ([], ("stream_broken", "fake sent an empty answer."))


def test_pings_only_are_no_reply() -> None:
    assert read(b": a\n\n: b\n\nevent: ping\ndata: {}\n\ndata:\n\n") == (
        [Ping()] * 4,
        ("stream_broken", "fake ended before the reply was finished."),
    )


def test_nothing_said_is_a_finished_reply() -> None:
    stream = sse(chunk({"role": "assistant", "content": ""}), chunk({}, "stop"))
    assert read(stream) == ([Usage(), FINISHED], None)


def test_a_delta_behind_the_finish_still_counts() -> None:
    stream = sse(chunk({"content": "a"}, "stop"), chunk({"content": "b"}), chunk({}))
    assert read(stream) == ([*text(0, "a", "b"), Usage(), FINISHED], None)


def test_what_follows_the_done_mark_is_ignored() -> None:
    stream = sse(chunk({"content": "a"}, "stop")) + b"data: {oops\n\n: x\n\n" + DONE
    assert read(stream) == ([*text(0, "a"), Usage(), FINISHED], None)


def test_half_an_event_behind_a_whole_reply_is_a_cut_not_a_fault() -> None:
    stream = sse(chunk({"content": "a"}, "stop"), done=False) + b'data: {"choices":[],"usa'
    assert read(stream) == ([*text(0, "a"), Usage(), FINISHED], None)


def test_patience_ends_when_the_reply_is_whole() -> None:
    reader = ChatReader("fake", counter())
    assert reader.patience_s is None
    list(reader.feed(sse(chunk({"content": "a"}), done=False)))
    assert reader.patience_s is None
    list(reader.feed(sse(chunk({}, "stop"), done=False)))
    assert reader.patience_s == 2.0
    list(reader.feed(DONE))
    assert reader.patience_s == 0.1
