"""Replies of Gemini: slicing, prose, signatures and calls."""

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
    Status,
    Usage,
)
from agentls.core.messages import Message, Reasoning, ToolCall
from agentls.core.requests import ModelRequest
from agentls.llm.schemes.gemini import Gemini
from support.gemini_streams import (
    RECORDED,
    call,
    chunk,
    counts,
    items,
    last,
    opened,
    read,
    sealed,
    sse,
    text,
)
from support.reply_events import BROKE_OFF, FINISHED, thinking
from support.reply_events import text as said

USAGE = Usage(input_tokens=7, output_tokens=3)
TOOL_USE = Status(state="finished", stop_reason="tool_use")


def objects(holder: dict[str, JsonValue], key: str) -> list[dict[str, JsonValue]]:
    value = holder[key]
    assert isinstance(value, list)
    return [each for each in value if isinstance(each, dict)]


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


@given(
    st.sampled_from(["2.5 thinking and text", "3 parallel calls", "3 signed text", "array"]),
    st.data(),
)
def test_a_stream_cut_anywhere_is_whole_or_broken_and_never_half(
    name: str, data: st.DataObject
) -> None:
    stream = RECORDED[name]
    whole, _ = read(stream)
    events, error = read(stream[: data.draw(st.integers(0, len(stream) - 1))])
    begun = [e.index for e in events if isinstance(e, BlockStart)]
    ended = [e.index for e in events if isinstance(e, BlockStop | BlockAbort)]
    assert sorted(ended) == begun
    if error is None:
        assert events == whole  # only the last line end was cut
    else:
        assert error[0] == "stream_broken"
        assert not any(isinstance(e, Status) for e in events)
        assert not any(isinstance(item, ToolCall) for item in items(events))


# --- prose and usage -------------------------------------------------------------------------


def test_thoughts_text_and_cached_usage() -> None:
    thought = "**Weighing the question**\n\nI'm looking at it.\n\n\n"
    assert read(RECORDED["2.5 thinking and text"]) == (
        [
            *thinking(0, thought),
            *said(1, "Grüße", " 👋 aus\u2028dem Netz."),
            Usage(input_tokens=1031, output_tokens=76, cache_read_tokens=1007, reasoning_tokens=67),
            FINISHED,
        ],
        None,
    )


def test_usage_is_a_total_and_may_come_behind_the_end() -> None:
    assert read(RECORDED["usage behind the end"]) == (
        [
            *said(0, "hi"),
            Usage(input_tokens=5, output_tokens=2, cache_read_tokens=4),
            FINISHED,
        ],
        None,
    )


def test_what_a_chunk_leaves_out_of_the_usage_stays() -> None:
    stream = sse(
        chunk(text("a"), usage=counts(10, 1, thoughtsTokenCount=4, cachedContentTokenCount=6)),
        chunk(finish="STOP", usage={"candidatesTokenCount": 2, "toolUsePromptTokenCount": 3}),
        {"usageMetadata": {}},
        {"usageMetadata": None},
    )
    usage = Usage(input_tokens=13, output_tokens=6, cache_read_tokens=6, reasoning_tokens=4)
    assert read(stream) == ([*said(0, "a"), usage, FINISHED], None)


@pytest.mark.parametrize(
    "usage", ["many", [1], {"promptTokenCount": "7"}, {"promptTokenCount": -1}]
)
def test_no_reply_is_lost_over_its_usage(usage: JsonValue) -> None:
    stream = sse({**chunk(text("a"), finish="STOP"), "usageMetadata": usage})
    assert read(stream) == ([*said(0, "a"), Usage(), FINISHED], None)


@pytest.mark.parametrize(
    "nothing",
    [
        {},
        {"candidates": []},
        {"candidates": None},
        {"candidates": [{}]},
        {"candidates": [{"content": {}}]},
        {"candidates": [{"content": None, "index": 0}]},
        {"candidates": [{"content": {"role": "model"}}]},
        {"candidates": [{"content": {"parts": []}, "finishReason": None}]},
        {"candidates": [{"content": {"parts": [{}]}, "finishReason": ""}]},
        {"candidates": [{"finishReason": "FINISH_REASON_UNSPECIFIED"}]},
        {"candidates": [{"content": {"parts": [text(""), text("", thought=True)]}}]},
        {"promptFeedback": {"safetyRatings": []}},
        {"promptFeedback": None, "modelVersion": "m"},
    ],
)
def test_chunks_that_say_nothing(nothing: JsonValue) -> None:
    stream = sse(nothing, chunk(text("a")), nothing, last(), nothing)
    assert read(stream) == ([*said(0, "a"), USAGE, FINISHED], None)


def test_parts_that_nobody_asked_for_are_passed_over() -> None:
    odd: list[dict[str, JsonValue]] = [
        {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"fileData": {"fileUri": "x"}},
        {"toolCall": {"name": "google_search"}},
        {"somethingNew": 1, "thought": "yes"},
    ]
    stream = sse(chunk(text("a"), *odd), last(text("b")))
    assert read(stream) == ([*said(0, "a", "b"), USAGE, FINISHED], None)


def test_of_several_candidates_the_first_counts() -> None:
    (other,) = objects(chunk(text("other"), call("f", {}), finish="MAX_TOKENS"), "candidates")
    (first,) = objects(chunk(text("a")), "candidates")
    both: JsonValue = {"candidates": [{**other, "index": 1}, first, other]}
    alone: JsonValue = {"candidates": [{**other, "index": 1}]}
    assert read(sse(both, alone, last())) == ([*said(0, "a"), USAGE, FINISHED], None)


def test_a_reply_without_any_content_is_whole() -> None:
    assert read(sse(last())) == ([USAGE, FINISHED], None)


# --- signatures ------------------------------------------------------------------------------


def test_signatures_of_thoughts_and_of_text() -> None:
    signed = BlockStop(index=0, item=Reasoning(text="Hm. Done", signature="T1", provider="fake"))
    assert read(RECORDED["3 signed text"]) == (
        [
            *thinking(0, "Hm. ", "Done")[:-1],
            signed,
            *said(1, "All is ", "well."),
            *sealed(2, "S1"),
            USAGE,
            FINISHED,
        ],
        None,
    )
    assert read(RECORDED["signature on the text"]) == (
        [*said(0, "a", "b"), *sealed(1, "S2"), USAGE, FINISHED],
        None,
    )


def test_signatures_in_odd_places_are_kept_in_their_order() -> None:
    stream = sse(
        chunk(text("hm", thought=True), text("", signature="A")),
        chunk(text("", thought=True, signature="B")),
        chunk({"inlineData": {"data": "aGk="}, "thoughtSignature": "C"}),
        last(text("so"), text("", signature="")),
    )
    assert read(stream) == (
        [
            *thinking(0, "hm"),
            *sealed(1, "A"),
            *sealed(2, "B"),
            *sealed(3, "C"),
            *said(4, "so"),
            USAGE,
            FINISHED,
        ],
        None,
    )


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "3 parallel calls",
            [
                {
                    "functionCall": {
                        "id": "8f2b1",
                        "name": "read_file",
                        "args": {"path": "ü😀.py"},
                    },
                    "thoughtSignature": "CpYB+sig/A==",
                },
                {"functionCall": {"id": "8f2b2", "name": "glob", "args": {"pattern": "*.py"}}},
                {"functionCall": {"id": "new-1", "name": "read_file", "args": {}}},
            ],
        ),
        (
            "3 signed text",
            [
                {"text": "Hm. Done", "thought": True, "thoughtSignature": "T1"},
                {"text": "All is well.", "thoughtSignature": "S1"},
            ],
        ),
        ("signature on the text", [{"text": "ab", "thoughtSignature": "S2"}]),
        ("2.5 thinking and text", [{"text": "Grüße 👋 aus\u2028dem Netz."}]),
    ],
)
def test_a_reply_goes_back_as_it_came(name: str, parts: JsonValue) -> None:
    events, _ = read(RECORDED[name])
    history = (Message.of("user", "hi"), *(e.item for e in events if isinstance(e, BlockStop)))
    body = Gemini("m", provider="fake", thinking="level").build(ModelRequest(items=history))
    assert body["contents"] == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": parts},
    ]


# --- calls -----------------------------------------------------------------------------------


def test_calls_in_parallel_and_in_sequence() -> None:
    first = ToolCall(
        call_id="8f2b1",
        name="read_file",
        arguments={"path": "ü😀.py"},
        signature="CpYB+sig/A==",
    )
    second = ToolCall(call_id="8f2b2", name="glob", arguments={"pattern": "*.py"})
    third = ToolCall(call_id="new-1", name="read_file")  # came with the id of the first
    assert read(RECORDED["3 parallel calls"]) == (
        [
            *thinking(0, "Looking at both."),
            *opened(1, "read_file", '{"path": "ü😀.py"}', call_id="8f2b1"),
            *opened(2, "glob", '{"pattern": "*.py"}', call_id="8f2b2"),
            *opened(3, "read_file", "{}"),
            BlockStop(index=1, item=first),
            BlockStop(index=2, item=second),
            BlockStop(index=3, item=third),
            USAGE,
            TOOL_USE,
        ],
        None,
    )


def test_calls_without_ids_and_text_before_them() -> None:
    events, error = read(RECORDED["calls without ids"])
    assert error is None
    assert items(events) == [
        Message.of("assistant", "I will."),
        ToolCall(call_id="new-1", name="f", arguments={"a": [1, None, {"b": "ü"}]}),
        ToolCall(call_id="new-2", name="f", arguments={"a": 2}),
    ]
    assert events[-1] == TOOL_USE


@pytest.mark.parametrize(
    ("args", "made"),
    [
        (None, ToolCall(call_id="c", name="f")),
        ("", ToolCall(call_id="c", name="f")),
        ('{"a": 1}', ToolCall(call_id="c", name="f", arguments={"a": 1})),
        ('{"a": ', ToolCall(call_id="c", name="f", invalid='{"a": ')),
        ([1], ToolCall(call_id="c", name="f", invalid="[1]")),
        (5, ToolCall(call_id="c", name="f", invalid="5")),
        (False, ToolCall(call_id="c", name="f", invalid="false")),
        ({"a": "\ud83d"}, ToolCall(call_id="c", name="f", arguments={"a": "\ufffd"})),
    ],
)
def test_arguments_of_any_kind(args: JsonValue, made: ToolCall) -> None:
    events, error = read(sse(last(call("f", args, call_id="c"))))
    assert (items(events), events[-1], error) == ([made], TOOL_USE, None)


@pytest.mark.parametrize("call_id", [None, "", 7])
def test_ids_of_any_kind(call_id: JsonValue) -> None:
    part: dict[str, JsonValue] = {"functionCall": {"id": call_id, "name": "f", "args": {}}}
    events, _ = read(sse(last(part)))
    assert items(events) == [ToolCall(call_id="7" if call_id == 7 else "new-1", name="f")]


@pytest.mark.parametrize("name", [None, "", "  "])
def test_a_call_that_names_no_tool_does_not_run(name: str | None) -> None:
    assert read(sse(last(text("a"), call(name, {})))) == (
        [
            *said(0, "a"),
            *opened(1, name or "", "{}"),
            BlockAbort(index=1, reason="the call names no tool"),
            USAGE,
            FINISHED,
        ],
        None,
    )


@pytest.mark.parametrize(
    "piece",
    [
        {"name": "f", "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]},
        {"name": "f", "args": {"a": 1}, "willContinue": True},
    ],
)
def test_a_call_in_pieces_does_not_run(piece: JsonValue) -> None:
    events, error = read(sse(chunk(call("g", {})), chunk({"functionCall": piece}), last()))
    assert events == [*opened(0, "g", "{}"), BlockAbort(index=0, reason=BROKE_OFF)]
    assert error == (
        "stream_broken",
        "fake sent a part of the reply that makes no sense (a call in pieces).",
    )


def test_calls_decide_whatever_the_finish_reason_says() -> None:
    assert read(sse(last(call("f", {}))))[0][-1] == TOOL_USE
    assert read(sse(last(text("calling f"))))[0][-1] == FINISHED
