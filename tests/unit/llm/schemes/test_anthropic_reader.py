"""Replies of `/v1/messages`: slicing, ends, usage, documents, errors."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentls.core.errors import BadRequest, ModelError, RateLimited, Unauthorized
from agentls.core.events import (
    BlockAbort,
    BlockStart,
    BlockStop,
    Event,
    Ping,
    Status,
    StopReason,
    Usage,
)
from agentls.core.redaction import Redactor
from agentls.llm.schemes.anthropic import MessagesReader
from agentls.llm.wire.failures import Origin, from_status
from support.anthropic_events import TOOL_USE, USAGE, called, read, reply, thought
from support.anthropic_streams import (
    PING,
    RECORDED,
    STOP,
    delta,
    ended,
    error,
    opened,
    sse,
    start,
    use,
    whole,
    words,
)
from support.openai_streams import counter
from support.reply_events import BROKE_OFF, FINISHED, cut_text, text

# --- slicing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_byte_by_byte_gives_the_same_events(name: str) -> None:
    stream = RECORDED[name]
    assert read(*(stream[at : at + 1] for at in range(len(stream)))) == read(stream)


@given(st.sampled_from(sorted(RECORDED)), st.lists(st.integers(0, 3000), max_size=12))
def test_any_slicing_gives_the_same_events(name: str, cuts: list[int]) -> None:
    stream = RECORDED[name]
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    assert read(*(stream[a:b] for a, b in itertools.pairwise(edges))) == read(stream)


@given(st.sampled_from(["text", "thinking, text and two calls", "llama.cpp call"]), st.data())
def test_a_stream_cut_anywhere_is_whole_or_broken_and_never_half(
    name: str, data: st.DataObject
) -> None:
    stream = RECORDED[name]
    all_, _ = read(stream)
    events, failure = read(stream[: data.draw(st.integers(0, len(stream) - 1))])
    begun = [e.index for e in events if isinstance(e, BlockStart)]
    over = [e.index for e in events if isinstance(e, BlockStop | BlockAbort)]
    assert sorted(over) == begun
    if failure is None:
        # The cut may have left half a ping.
        assert [e for e in events if not isinstance(e, Ping)] == [
            e for e in all_ if not isinstance(e, Ping)
        ]
    else:
        assert failure[0] == "stream_broken"
        assert not any(isinstance(e, Status) for e in events)
        stopped = [e.item.kind for e in events if isinstance(e, BlockStop)]
        assert "tool_call" not in stopped


# --- ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "with_call", "alone"),
    [
        ("end_turn", "tool_use", "end_turn"),
        ("tool_use", "tool_use", "end_turn"),
        ("stop_sequence", "tool_use", "end_turn"),
        ("pause_turn", "tool_use", "end_turn"),
        ("from_the_future", "tool_use", "end_turn"),
        ("max_tokens", None, "max_tokens"),
        ("model_context_window_exceeded", None, "max_tokens"),
        ("refusal", None, "refusal"),
    ],
)
def test_stop_reasons(reason: str, with_call: StopReason | None, alone: StopReason) -> None:
    status = Status(state="finished", stop_reason=alone)
    assert reply(*words(0, "a"), reason=reason) == [*text(0, "a"), USAGE, status]
    events = reply(*use(0, "x", "f", "{}"), reason=reason)
    start_, fragment, stop = called(0, "x", "f", "{}")
    if with_call:
        assert events == [start_, fragment, stop, USAGE, TOOL_USE]
    else:
        why = "the model refused" if alone == "refusal" else "the reply reached its token limit"
        assert events == [start_, fragment, BlockAbort(index=0, reason=why), USAGE, status]


def test_a_reply_that_was_cut_stays_cut() -> None:
    stream = sse(*use(0, "x", "f", "{}"), ended("max_tokens"), ended("tool_use"), STOP)
    assert read(stream)[0][-3:] == [
        BlockAbort(index=0, reason="the reply reached its token limit"),
        Usage(output_tokens=3),
        Status(state="finished", stop_reason="max_tokens"),
    ]


def test_only_a_stop_reason_and_the_end_mark_make_a_reply_whole() -> None:
    events = [start(), *words(0, "a"), *use(1, "x", "f", "{}")]
    broken = [
        *text(0, "a"),
        *called(1, "x", "f", "{}")[:-1],
        BlockAbort(index=1, reason=BROKE_OFF),
    ]
    failure = ("stream_broken", "fake ended before the reply was finished.")
    assert read(sse(*events)) == (broken, failure)
    assert read(sse(*events, STOP)) == (broken, failure)
    assert read(sse(*events, ended(None), STOP)) == (broken, failure)
    assert read(sse(*events, ended("tool_use"))) == (broken, failure)
    assert read(sse(*events, ended("tool_use"), STOP)) == (
        [*text(0, "a"), *called(1, "x", "f", "{}"), USAGE, TOOL_USE],
        None,
    )


def test_nothing_counts_after_the_end() -> None:
    stream = sse(start(), ended("end_turn"), STOP, *words(0, "a"), error("api_error", "x"))
    assert read(stream) == ([USAGE, FINISHED], None)


def test_pings_show_nothing() -> None:
    assert read(sse(PING) + b'data: {"type": "ping"}\n\n: hello\n\n') == (
        [Ping(), Ping(), Ping()],
        ("stream_broken", "fake ended before the reply was finished."),
    )


def test_patience_ends_with_the_reply() -> None:
    reader = MessagesReader("fake", counter())
    seen = []
    for event in (start(), ended("end_turn"), STOP):
        list(reader.feed(sse(event)))
        seen.append(reader.patience_s)
    assert seen == [None, None, 0.1]


# --- usage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "last", "usage"),
    [
        ({}, {}, Usage(input_tokens=7, output_tokens=3)),
        ({"input_tokens": 0}, {"input_tokens": 5}, Usage(input_tokens=5, output_tokens=3)),
        ({}, {"input_tokens": 0}, Usage(input_tokens=7, output_tokens=3)),
        (
            {"cache_read_input_tokens": None, "cache_creation_input_tokens": 2},
            {"input_tokens": 9, "cache_read_input_tokens": 4, "cache_creation_input_tokens": None},
            Usage(input_tokens=15, output_tokens=3, cache_read_tokens=4, cache_creation_tokens=2),
        ),
        ({"input_tokens": "many"}, {"input_tokens": -1}, Usage(output_tokens=3)),
    ],
)
def test_usage_is_the_last_total(
    first: dict[str, JsonValue], last: dict[str, JsonValue], usage: Usage
) -> None:
    assert read(sse(start(**first), ended("end_turn", 3, **last), STOP)) == (
        [usage, FINISHED],
        None,
    )


# --- documents -------------------------------------------------------------------------------


def test_a_reply_that_was_not_streamed() -> None:
    assert read(RECORDED["not streamed"]) == (
        [
            *thought(0, "hm", signature="c2ln"),
            *text(1, "hi"),
            *called(2, "c1", "f", '{"a": 1}', a=1),
            USAGE,
            TOOL_USE,
        ],
        None,
    )


def test_a_document_says_how_it_ended_or_ended_well() -> None:
    block: JsonValue = {"type": "text", "text": "a"}
    for reason, status in (
        ("max_tokens", Status(state="finished", stop_reason="max_tokens")),
        (None, FINISHED),
    ):
        document = whole({"type": "text", "text": "a"}, reason=reason)
        assert read(json.dumps(document).encode())[0] == [*text(0, "a"), USAGE, status]
    bare = json.dumps({"type": "message", "content": [block]}).encode()
    assert read(bare)[0] == [*text(0, "a"), Usage(), FINISHED]


@pytest.mark.parametrize(
    ("document", "failure"),
    [
        (error("overloaded_error", "Busy"), ("model", "fake reported an error: Busy.")),
        ({"detail": "gone"}, ("stream_broken", "fake reported an error: gone.")),
        ([], ("stream_broken", "fake reported an error: no reason given.")),
        (
            {"content": "a"},
            ("stream_broken", "fake sent a part of the reply that makes no sense (content)."),
        ),
    ],
)
def test_documents_that_are_no_reply(document: JsonValue, failure: tuple[str, str]) -> None:
    assert read(json.dumps(document).encode()) == ([], failure)


# --- errors ----------------------------------------------------------------------------------

KINDS = [
    ("invalid_request_error", BadRequest, 400, False),
    ("authentication_error", Unauthorized, 401, False),
    ("billing_error", RateLimited, 402, False),
    ("permission_error", Unauthorized, 403, False),
    ("not_found_error", BadRequest, 404, False),
    ("request_too_large", BadRequest, 413, False),
    ("rate_limit_error", RateLimited, 429, True),
    ("api_error", ModelError, 500, True),
    ("timeout_error", ModelError, 504, True),
    ("overloaded_error", ModelError, 503, True),
]


@pytest.mark.parametrize(("kind", "error_type", "status", "retryable"), KINDS)
def test_errors_inside_a_stream_are_told_apart(
    kind: str, error_type: type[ModelError], status: int, retryable: bool
) -> None:
    reader = MessagesReader("fake", counter())
    stream = sse(start(), opened(0, "text"), delta(0, "text", text="a"), error(kind, "Why."))
    events: list[Event] = []
    with pytest.raises(ModelError) as caught:
        for event in reader.feed(stream):
            events.append(event)
    failure = caught.value
    assert events == cut_text("a")
    assert (type(failure), failure.status, failure.retryable) == (error_type, status, retryable)
    assert (failure.message, failure.provider) == ("fake reported an error: Why.", "fake")


def test_an_error_without_its_event_name_or_its_object() -> None:
    failure = ("model", "fake reported an error: Busy.")
    named = b'data: {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}\n\n'
    assert read(named) == ([], failure)
    assert read(b'data: {"type": "error", "message": "Busy"}\n\n')[1] is not None


def test_an_account_without_credit_is_not_the_requests_fault() -> None:
    said = "Your credit balance is too low to access the Anthropic API. Please go to Plans."
    body = json.dumps(error("invalid_request_error", said)).encode()
    failure = from_status(Origin("fake", "http://h"), 400, body, redact=Redactor())
    assert (type(failure), failure.retryable) == (RateLimited, False)
    assert "no credit" in failure.hint


@pytest.mark.parametrize(
    "said",
    [
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease",
    ],
)
def test_a_prompt_that_is_too_long(said: str) -> None:
    body = json.dumps(error("invalid_request_error", said)).encode()
    failure = from_status(Origin("fake", "http://h"), 400, body, redact=Redactor())
    assert isinstance(failure, BadRequest)
    assert "longer than the model's context" in failure.hint
