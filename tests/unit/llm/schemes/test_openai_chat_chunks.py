"""Chunks that lie, lack or break, errors in streams, usage, and bodies that are no stream."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    Usage,
)
from agentls.llm.schemes.openai_chat_reader import ChatReader
from support.openai_streams import (
    DONE,
    RECORDED,
    call,
    calls,
    chunk,
    counter,
    read,
    sse,
    usage_chunk,
)
from support.reply_events import BROKE_OFF, FINISHED, cut_text, text, thinking

# --- chunks that lie, lack or break ----------------------------------------------------------


@pytest.mark.parametrize(
    "extra",
    [
        {"choices": []},
        {"choices": None},
        {},
        {"object": "chat.completion.chunk", "id": "x"},
        {"error": None, "choices": []},
    ],
)
def test_chunks_without_choices_are_passed_over(extra: dict[str, JsonValue]) -> None:
    stream = sse(extra, chunk({"content": "a"}), extra, chunk({}, "stop"), extra)
    assert read(stream) == ([*text(0, "a"), Usage(), FINISHED], None)


@pytest.mark.parametrize(
    "line",
    [
        b"data: {oops}",
        b"data: nonsense",
        b'data: {"choices":[{"delta":{"content":"x"}}]',
        b'data: {"choices":[{"delta":{"content":"\xff"}}]}',
        b"data: null",
        b"data: 5",
        b"data: []",
        b'data: {"choices":"x"}',
        b'data: {"choices":[5]}',
        b'data: {"choices":[{"delta":"x"}]}',
        b'data: {"choices":[{"delta":{"content":5}}]}',
        b'data: {"choices":[{"delta":{"content":[5]}}]}',
        b'data: {"choices":[{"delta":{"tool_calls":{}}}]}',
        b'data: {"choices":[{"delta":{"tool_calls":["x"]}}]}',
        b'data: {"choices":[{"delta":{},"finish_reason":{}}]}',
        b"data: " + b"[" * 100_000,
    ],
)
def test_a_malformed_chunk_is_an_error_and_never_skipped(line: bytes) -> None:
    stream = sse(chunk({"content": "a"}), done=False) + line + b"\n\n" + sse(chunk({}, "stop"))
    events, error = read(stream)
    assert events == cut_text("a")
    assert error is not None
    assert error[0] == "stream_broken"
    assert error[1].startswith("fake sent a part of the reply that ")


def test_a_malformed_chunk_behind_the_finish_is_an_error_too() -> None:
    reader = ChatReader("fake", counter())
    stream = sse(chunk({"content": "a"}, "stop"), done=False) + b"data: {oops}\n\n"
    events, error = read(stream, reader=reader)
    assert (events, error and error[0]) == (cut_text("a"), "stream_broken")
    # A reader that failed stays failed: what follows cannot turn it into a whole reply.
    assert read(DONE, reader=reader) == ([], error)


def test_an_error_in_the_stream() -> None:
    assert read(RECORDED["error inside"]) == (
        cut_text("a"),
        ("stream_broken", "fake reported an error: boom."),
    )


@pytest.mark.parametrize(
    ("report", "code"),
    [
        ({"error": "boom"}, "stream_broken"),
        ({"error": {"message": "boom", "code": 503}}, "model"),
        ({"error": {"message": "boom", "type": "server_error"}}, "model"),
        ({"error": {"message": "boom", "type": "overloaded_error"}}, "model"),
        ({"error": {"message": "boom", "code": "rate_limit_exceeded"}}, "rate_limited"),
        ({"error": {"message": "boom", "code": "429"}}, "rate_limited"),
        ({"error": {"message": "boom", "type": "invalid_request_error"}}, "bad_request"),
        ({"error": {"message": "boom", "type": "authentication_error"}}, "unauthorized"),
        ({"object": "error", "message": "boom", "code": 400}, "bad_request"),
    ],
)
def test_kinds_of_errors_in_the_stream(report: dict[str, JsonValue], code: str) -> None:
    events, error = read(sse(chunk({"content": "a"}), report))
    assert (events, error) == (cut_text("a"), (code, "fake reported an error: boom."))
    # The same as the whole body, which is what a server that does not stream errors sends.
    assert read(json.dumps(report).encode()) == ([], error)


def test_an_event_named_error() -> None:
    stream = b'event: error\ndata: {"message": "boom", "code": 500}\n\n'
    assert read(stream) == ([], ("model", "fake reported an error: boom."))


def test_an_event_named_error_that_is_no_json() -> None:
    stream = b"event: error\ndata: Bearer sk-abcdefghijkl failed\n\n"
    assert read(stream) == ([], ("stream_broken", "fake reported an error: [key] failed."))


def test_calls_cut_by_an_error_do_not_run() -> None:
    stream = sse(calls(call("{}", call_id="c", name="f")), {"error": {"message": "boom"}})
    assert read(stream)[0] == [
        BlockStart(index=0, block="tool_call", call_id="c", name="f"),
        BlockDelta(index=0, text="{}"),
        BlockAbort(index=0, reason=BROKE_OFF),
    ]


# --- usage and bodies that are no stream -----------------------------------------------------


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 20,
                "prompt_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
                "completion_tokens_details": {"reasoning_tokens": 11},
            },
            Usage(
                input_tokens=100,
                output_tokens=20,
                cache_read_tokens=64,
                cache_creation_tokens=8,
                reasoning_tokens=11,
            ),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 5},
            Usage(input_tokens=9, output_tokens=1, cache_read_tokens=5),
        ),
        ({"prompt_tokens": None, "completion_tokens": "x", "prompt_tokens_details": None}, Usage()),
        ({"prompt_tokens": -1, "completion_tokens": 1.5}, Usage()),
    ],
)
@pytest.mark.parametrize("place", ["last", "with choice", "groq"])
def test_usage(usage: dict[str, JsonValue], expected: Usage, place: str) -> None:
    streams = {
        "last": sse(chunk({}, "stop"), {"choices": [], "usage": usage}),
        "with choice": sse(chunk({}, usage=None), chunk({}, "stop", usage=usage)),
        "groq": sse(chunk({}, "stop", x_groq={"usage": usage})),
    }
    assert read(streams[place]) == ([expected, FINISHED], None)


def test_usage_in_every_chunk_is_told_once_and_last() -> None:
    stream = sse(
        chunk({"content": "a"}, usage={"prompt_tokens": 5, "completion_tokens": 1}),
        chunk({}, "stop", usage={"prompt_tokens": 5, "completion_tokens": 2}),
        usage_chunk(5, 3),
    )
    assert read(stream)[0] == [
        *text(0, "a"),
        Usage(input_tokens=5, output_tokens=3),
        FINISHED,
    ]


def test_a_whole_document_is_read_as_a_reply() -> None:
    body = {
        "choices": [{"message": {"content": "hi", "reasoning": "hm"}, "finish_reason": None}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    assert read(b"\n " + json.dumps(body).encode()) == (
        [*thinking(0, "hm"), *text(1, "hi"), Usage(input_tokens=1, output_tokens=2), FINISHED],
        None,
    )


def test_a_message_that_repeats_the_deltas_is_not_said_twice() -> None:
    last: JsonValue = {"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}
    assert read(sse(chunk({"content": "a"}), last)) == ([*text(0, "a"), Usage(), FINISHED], None)


@pytest.mark.parametrize("body", [b'{"choices": [', b'{"choices": []', b"[1, 2]", b'{"a": NaN'])
def test_a_document_that_is_no_reply(body: bytes) -> None:
    events, error = read(body)
    assert (events, error and error[0]) == ([], "stream_broken")


def test_a_document_with_a_message_only_is_an_error_report() -> None:
    assert read(b'{"detail": "Not Found"}') == (
        [],
        ("stream_broken", "fake reported an error: Not Found."),
    )


def test_a_page_of_text_is_no_reply() -> None:
    assert read(b"Welcome to the portal\n\nPlease log in\n\n") == (
        [],
        ("stream_broken", "fake reported an error: Welcome to the portal Please log in."),
    )
