"""How replies of Gemini end: whole, cut, refused, broken, or with an error."""

from __future__ import annotations

import itertools
import json

import pytest
from pydantic import JsonValue

from agentls.core.errors import BadRequest, ModelError, RateLimited
from agentls.core.events import (
    BlockAbort,
    BlockStop,
    Event,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import Message, ToolCall
from agentls.llm.schemes.gemini import GeminiReader
from support.gemini_streams import (
    RECORDED,
    UNAVAILABLE,
    call,
    chunk,
    counts,
    failure,
    items,
    last,
    opened,
    read,
    sse,
    text,
)
from support.openai_streams import counter
from support.reply_events import BROKE_OFF, FINISHED, cut_text
from support.reply_events import text as said

USAGE = Usage(input_tokens=7, output_tokens=3)
TOOL_USE = Status(state="finished", stop_reason="tool_use")
REFUSAL = Status(state="finished", stop_reason="refusal")
OVERLOADED = "fake reported an error: The model is overloaded. Please try again later."


# --- ends ------------------------------------------------------------------------------------


@pytest.mark.parametrize("finish", ["MAX_TOKENS", "max_tokens", "CONTINUATION"])
def test_nothing_runs_at_the_token_limit(finish: str) -> None:
    stream = sse(chunk(text("a")), chunk(call("f", {})), last(finish=finish), last())
    assert read(stream) == (
        [
            *said(0, "a"),
            *opened(1, "f", "{}"),
            BlockAbort(index=1, reason="the reply reached its token limit"),
            USAGE,
            Status(state="finished", stop_reason="max_tokens"),
        ],
        None,
    )


@pytest.mark.parametrize(
    "finish",
    [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "MODEL_ARMOR",
        "IMAGE_SAFETY",
    ],
)
def test_a_filter_ends_the_reply_and_nothing_runs(finish: str) -> None:
    stream = sse(chunk(text("a")), chunk(call("f", {})), last(finish=finish))
    assert read(stream) == (
        [
            *said(0, "a"),
            *opened(1, "f", "{}"),
            BlockAbort(index=1, reason="the provider's filter cut the reply"),
            USAGE,
            REFUSAL,
        ],
        None,
    )


@pytest.mark.parametrize(
    "finish",
    [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MALFORMED_RESPONSE",
        "OTHER",
        "SOMETHING_NEW",
    ],
)
def test_a_reply_that_was_given_up_is_broken_and_nothing_runs(finish: str) -> None:
    stream = sse(
        chunk(text("a")),
        chunk(call("f", {})),
        chunk(finish=finish, finishMessage="Malformed call:\n print(\u202edefault_api"),
    )
    assert read(stream) == (
        [*said(0, "a"), *opened(1, "f", "{}"), BlockAbort(index=1, reason=BROKE_OFF)],
        (
            "stream_broken",
            f"fake gave up on the reply ({finish} Malformed call: print(\\u{{202e}}default_api).",
        ),
    )


def test_a_missing_signature_is_the_requests_fault() -> None:
    reader = GeminiReader("fake", counter())
    with pytest.raises(BadRequest, match="MISSING_THOUGHT_SIGNATURE"):
        list(reader.feed(sse(last(finish="MISSING_THOUGHT_SIGNATURE"))))


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "BLOCKLIST", "JAILBREAK", "NEW"])
def test_a_blocked_prompt_is_a_refusal_that_says_why(reason: str) -> None:
    feedback: JsonValue = {"blockReason": reason, "blockReasonMessage": "It\n says x."}
    blocked: JsonValue = {"promptFeedback": feedback, "usageMetadata": {"promptTokenCount": 4}}
    told = Status(state="warning", message=f"fake blocked the prompt: {reason} It says x..")
    assert read(sse(blocked, blocked)) == ([told, Usage(input_tokens=4), REFUSAL], None)


def test_an_end_without_a_finish_reason_is_broken() -> None:
    assert read(RECORDED["cut"]) == (
        [*said(0, "I will"), *opened(1, "f", '{"a": 1}'), BlockAbort(index=1, reason=BROKE_OFF)],
        ("stream_broken", "fake ended before the reply was finished."),
    )
    assert read(sse({"usageMetadata": counts()})) == (
        [],
        ("stream_broken", "fake ended before the reply was finished."),
    )
    assert read(b"") == ([], ("stream_broken", "fake sent an empty answer."))
    assert read(b": x\n\n") == (
        [Ping()],
        ("stream_broken", "fake ended before the reply was finished."),
    )


def test_a_whole_reply_is_not_waited_for() -> None:
    reader = GeminiReader("fake", counter())
    list(reader.feed(sse(chunk(text("a")))))
    assert reader.patience_s is None
    list(reader.feed(sse(last())))
    assert reader.patience_s == 2.0


def test_text_behind_a_finish_reason_still_counts() -> None:
    # Some servers in between put STOP into every chunk.
    stream = sse(last(text("a")), last(text("b")), last(call("f", {})))
    assert items(read(stream)[0]) == [
        Message.of("assistant", "ab"),
        ToolCall(call_id="new-1", name="f"),
    ]


# --- one document ----------------------------------------------------------------------------


def test_a_stream_that_came_as_an_array() -> None:
    assert read(RECORDED["array"]) == (
        [
            *said(0, "hel", "lo"),
            *opened(1, "f", '{"a": 1}'),
            BlockStop(index=1, item=ToolCall(call_id="new-1", name="f", arguments={"a": 1})),
            USAGE,
            TOOL_USE,
        ],
        None,
    )
    assert read(RECORDED["one document"]) == ([*said(0, "hello"), USAGE, FINISHED], None)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "ended before the reply was finished."),
        ([chunk(text("a"))], "ended before the reply was finished."),
        ([5], "sent a part of the reply that makes no sense (not an object)."),
        ("text", "sent a part of the reply that is not JSON."),
        ({"detail": "no such thing"}, "reported an error: no such thing."),
        ([{"message": "nope"}], "reported an error: nope."),
    ],
)
def test_documents_that_are_no_replies(document: JsonValue, message: str) -> None:
    raw = document.encode() if isinstance(document, str) else json.dumps(document).encode()
    _, error = read(b"[" + raw if isinstance(document, str) else raw)
    assert error == ("stream_broken", f"fake {message}")


# --- errors ----------------------------------------------------------------------------------


def raised(stream: bytes) -> tuple[list[Event], ModelError]:
    reader = GeminiReader("fake", counter())
    events: list[Event] = []
    with pytest.raises(ModelError) as caught:
        for event in itertools.chain(reader.feed(stream), reader.close()):
            events.append(event)
    return events, caught.value


@pytest.mark.parametrize(
    "frame",
    [
        sse(UNAVAILABLE),
        json.dumps(UNAVAILABLE).encode() + b"\n",
        json.dumps(UNAVAILABLE, indent=2).replace("\n", "\r\n").encode(),
        b"event: error\ndata: " + json.dumps(UNAVAILABLE).encode() + b"\n\n",
    ],
)
def test_an_error_inside(frame: bytes) -> None:
    events, error = raised(sse(chunk(text("a"))) + frame)
    assert events == cut_text("a")
    assert (error.message, error.status, error.retryable) == (OVERLOADED, 503, True)
    reader = GeminiReader("fake", counter())
    with pytest.raises(ModelError, match="overloaded"):
        list(itertools.chain(reader.feed(frame), reader.close()))


@pytest.mark.parametrize("name", ["error in an array", "error document"])
def test_an_error_in_place_of_a_reply(name: str) -> None:
    events, error = raised(RECORDED[name])
    assert events == []
    assert (error.message, error.status, error.retryable) == (OVERLOADED, 503, True)


def test_an_error_inside_says_when_to_come_back() -> None:
    retry: JsonValue = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
    _, error = raised(sse(failure(429, "RESOURCE_EXHAUSTED", "Slow down.", retry)))
    assert isinstance(error, RateLimited)
    assert (error.retryable, error.retry_after_s) == (True, 17.0)


def test_bare_lines_that_are_no_error_break_the_reply() -> None:
    events, error = read(sse(chunk(text("a"))) + b'{"error": {"code": 50')
    assert events == cut_text("a")
    assert error == ("stream_broken", 'fake reported an error: {"error": {"code": 50.')
    detail: JsonValue = {"at": "y" * 1000}
    long = failure(503, "UNAVAILABLE", "x", *([detail] * 100))
    _, error = read(sse(chunk(text("a"))) + json.dumps(long, indent=1).encode())
    assert error is not None
    assert error[0] == "stream_broken"  # no more of it is kept than an error needs
    junk = b"x: y\n" + b"{" * 200_000 + b"\n" + b"}\n"
    assert read(sse(last(text("a"))) + junk)[0] == [*said(0, "a"), USAGE, FINISHED]


@pytest.mark.parametrize(
    "value",
    [
        5,
        [1],
        {"candidates": {}},
        {"candidates": [5]},
        {"candidates": [{"content": "text"}]},
        {"candidates": [{"content": {"parts": {}}}]},
        {"candidates": [{"content": {"parts": ["text"]}}]},
        {"candidates": [{"content": {"parts": [{"text": 5}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": "f"}]}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": 5}}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": 5}]}}]},
        {"candidates": [{"finishReason": 1}]},
        {"promptFeedback": {"blockReason": 1}},
    ],
)
def test_what_makes_no_sense_is_an_error_and_never_skipped(value: JsonValue) -> None:
    events, error = read(sse(chunk(text("a")), value, last()))
    assert events == cut_text("a")
    assert error is not None
    assert error[0] == "stream_broken"
    assert error[1].startswith("fake sent a part of the reply that makes no sense (")
