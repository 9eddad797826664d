"""How replies of `/responses` end: whole, cut, refused, failed; their usage."""

from __future__ import annotations

import json

import pytest
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
from agentls.core.messages import Item, Message, Reasoning
from agentls.llm.schemes.openai_responses_reader import ResponsesReader
from support.openai_streams import counter
from support.reply_events import BROKE_OFF, cut_text, text, thinking
from support.responses_streams import (
    RECORDED,
    Object,
    call,
    ended,
    event,
    message,
    read,
    response,
    say,
    sse,
    think,
)

PINGS: list[Event] = [Ping(), Ping()]
USAGE = Usage(input_tokens=7, output_tokens=3)
LONG = Status(state="finished", stop_reason="max_tokens")
TURN_PROSE: list[Item] = [
    Reasoning(
        item_id="rs_a", text="**Plan**\n\nLook.\n\nThen write.", encrypted="gAAA", provider="fake"
    ),
    Message.of("assistant", "I will look. ü😀"),
]


def test_refusal_is_text_and_a_reason() -> None:
    refusal = Status(state="finished", stop_reason="refusal")
    assert read(RECORDED["refusal"])[0] == [*PINGS, *text(0, "I can", "not."), USAGE, refusal]
    whole = json.dumps(response("completed", message("m", "no", "refusal"))).encode()
    assert read(whole)[0] == [*text(0, "no"), Usage(), refusal]


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("max_output_tokens", "max_tokens"),
        ("content_filter", "refusal"),
        ("later_invention", "max_tokens"),
        (None, "max_tokens"),
    ],
)
def test_reasons_to_be_incomplete(reason: str | None, stop_reason: StopReason) -> None:
    details: JsonValue = reason and {"reason": reason}
    stream = sse(*ended(say("m", 0, "a"), "incomplete", incomplete_details=details))
    status = Status(state="finished", stop_reason=stop_reason)
    assert read(stream) == ([*PINGS, *text(0, "a"), USAGE, status], None)
    document = response("incomplete", message("m", "a"), incomplete_details=details)
    assert read(json.dumps(document).encode()) == ([*text(0, "a"), Usage(), status], None)


def test_a_reply_cut_inside_a_call_runs_nothing() -> None:
    assert read(RECORDED["cut in a call"])[0] == [
        *PINGS,
        *text(0, "I will"),
        BlockStart(index=1, block="tool_call", call_id="call_fc_a", name="write_file"),
        BlockDelta(index=1, text='{"path": "a'),
        BlockAbort(index=1, reason="the reply reached its token limit"),
        USAGE,
        LONG,
    ]


@pytest.mark.parametrize("lie", ["event", "item"])
def test_a_cut_reply_that_claims_to_be_complete(lie: str) -> None:
    events = call("fc_a", 0, "f", "{}")
    details: JsonValue = None
    if lie == "item":
        item = events[-1]["item"]
        assert isinstance(item, dict)
        item["status"] = "incomplete"
    else:
        details = {"reason": "max_output_tokens"}
    read_events, error = read(sse(*ended(events, incomplete_details=details)))
    assert (read_events[-1], error) == (LONG, None)
    assert [e for e in read_events if isinstance(e, BlockStop)] == []


def test_a_stream_without_its_end_runs_nothing() -> None:
    events, error = read(RECORDED["ends without its end"])
    assert error == ("stream_broken", "fake ended before the reply was finished.")
    assert [e.item for e in events if isinstance(e, BlockStop)] == TURN_PROSE
    assert [e for e in events if isinstance(e, BlockAbort)] == [
        BlockAbort(index=2, reason=BROKE_OFF),
        BlockAbort(index=3, reason=BROKE_OFF),
    ]


def test_a_text_that_waited_for_a_call_is_whole_when_the_stream_breaks() -> None:
    stream = sse(*call("fc_a", 0, "f", "{}", call_id="c"), *say("msg_a", 1, "so"))
    assert read(stream)[0][-2:] == [
        BlockAbort(index=0, reason=BROKE_OFF),
        BlockStop(index=1, item=Message.of("assistant", "so")),
    ]


def test_a_reset_leaves_all_that_had_arrived_and_each_block_ends_once() -> None:
    stream = RECORDED["llama.cpp thinking"]
    arrived = stream[: stream.index(b'"delta":" delta"}') + len(b'"delta":" delta"}\n\n')]
    assert read(arrived)[0] == [
        *PINGS,
        *thinking(0, "The", " word", " is", " delta", ".", "\n")[:-1],
        *text(1, "It", " is", " delta")[:-1],
        BlockAbort(index=0, reason=BROKE_OFF),
        BlockAbort(index=1, reason=BROKE_OFF),
    ]


def test_a_text_that_waited_for_thinking_is_whole_when_the_stream_breaks() -> None:
    thought = think("rs_a", 0, "hm", encrypted="A")
    assert read(sse(*thought[:-1], *say("msg_a", 1, "so")))[0] == [
        *thinking(0, "h", "m")[:-1],
        *text(1, "so")[:-1],
        BlockAbort(index=0, reason=BROKE_OFF),
        text(1, "so")[-1],
    ]


@pytest.mark.parametrize("end", [b"", b"data: [DONE]\n\n"])
def test_a_done_mark_is_no_end(end: bytes) -> None:
    stream = sse(*say("m", 0, "a")[:3]) + end
    assert read(stream) == (
        cut_text("a"),
        ("stream_broken", "fake ended before the reply was finished."),
    )


def test_what_follows_the_end_is_ignored() -> None:
    stream = RECORDED["openai text"]
    assert read(stream + b"data: [DONE]\n\ndata: {oops\n\n") == read(stream)


def test_patience_ends_with_the_reply() -> None:
    reader = ResponsesReader("fake", counter())
    stream = ended(say("m", 0, "a"))
    list(reader.feed(sse(*stream[:-1])))
    assert reader.patience_s is None
    list(reader.feed(sse(stream[-1])))
    assert reader.patience_s == 0.1


@pytest.mark.parametrize("status", ["cancelled", "queued", "in_progress"])
def test_a_reply_that_was_given_up(status: str) -> None:
    error = ("stream_broken", f"fake gave up on the reply ({status}).")
    assert read(json.dumps(response(status)).encode()) == ([], error)
    if status == "cancelled":
        assert read(sse(*say("m", 0, "a")[:3], event(status))) == (cut_text("a"), error)
        lie = event("completed", response=response(status))
        assert read(sse(*say("m", 0, "a")[:3], lie)) == (cut_text("a"), error)


# --- errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", "model"),
        ("rate_limit_exceeded", "rate_limited"),
        ("insufficient_quota", "rate_limited"),
        ("invalid_prompt", "bad_request"),
        ("context_length_exceeded", "bad_request"),
        ("image_too_large", "bad_request"),
        ("image_file_not_found", "bad_request"),
        ("bio_policy", "bad_request"),
        (None, "stream_broken"),
    ],
)
def test_failures(code: str | None, kind: str) -> None:
    error: Object = {"code": code, "message": "boom"}
    begun = say("m", 0, "a")[:3]
    failed = event("failed", response=response("failed", error=error))
    expected = (cut_text("a"), (kind, "fake reported an error: boom."))
    assert read(sse(*begun, failed)) == expected
    lie = event("completed", response=response("failed", error=error))
    assert read(sse(*begun, lie)) == expected


@pytest.mark.parametrize("given_response", [None, {}])
def test_a_failure_without_a_reason(given_response: JsonValue) -> None:
    assert read(sse(event("failed", response=given_response))) == (
        [],
        ("stream_broken", "fake reported an error: no reason given."),
    )


@pytest.mark.parametrize(
    "frame",
    [
        b'event: error\ndata: {"type":"error","code":"server_error","message":"boom"}\n\n',
        b'data: {"type":"error","code":"server_error","message":"boom","param":null}\n\n',
        b'data: {"type":"error","error":{"type":"server_error","message":"boom"}}\n\n',
        b'data: {"error":{"code":500,"message":"boom"}}\n\n',
    ],
)
def test_an_error_event(frame: bytes) -> None:
    stream = sse(*say("m", 0, "a")[:3]) + frame
    assert read(stream) == (cut_text("a"), ("model", "fake reported an error: boom."))


@pytest.mark.parametrize(
    "data",
    [
        "{oops",
        "5",
        "null",
        "[]",
        "{}",
        '{"type": 5}',
        '{"choices": []}',
        '{"type": "response.output_text.delta", "delta": 5}',
        '{"type": "response.output_text.delta", "item_id": [], "delta": ""}',
        '{"type": "response.function_call_arguments.delta", "delta": {}}',
        '{"type": "response.output_item.done", "item": "x"}',
        '{"type": "response.output_item.done", "item": {"type": "message", "content": "x"}}',
        '{"type": "response.output_item.done", "item": {"type": "function_call", "name": []}}',
        '{"type": "response.completed", "response": []}',
        '{"type": "response.completed", "response": {"output": {}}}',
        '{"type": "response.completed", "response": {"output": ["x"]}}',
        '{"type": "response.completed", "response": {"status": 5}}',
    ],
)
def test_a_malformed_event_is_an_error_and_never_skipped(data: str) -> None:
    stream = sse(*say("m", 0, "a")[:3]) + f"data: {data}\n\n".encode() + sse(*ended([])[2:])
    events, error = read(stream)
    assert events == cut_text("a")
    assert error is not None
    assert error[0] == "stream_broken"
    assert error[1].startswith("fake sent a part of the reply that ")


@pytest.mark.parametrize("output", ["[]", "{}", '{"a": 1}', '{"object": "response", "id": "r"}'])
def test_a_document_that_is_no_reply(output: str) -> None:
    events, error = read(output.encode())
    assert (events, error and error[0]) == ([], "stream_broken")


# --- usage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_usage", "expected"),
    [
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 11},
            },
            Usage(
                input_tokens=100,
                output_tokens=20,
                cache_read_tokens=64,
                cache_creation_tokens=8,
                reasoning_tokens=11,
            ),
        ),
        ({"input_tokens": 5, "output_tokens": 1}, Usage(input_tokens=5, output_tokens=1)),
        ({"input_tokens": None, "output_tokens": "x", "input_tokens_details": None}, Usage()),
        (None, Usage()),
        (5, Usage()),
    ],
)
@pytest.mark.parametrize("status", ["completed", "incomplete"])
def test_usage(given_usage: JsonValue, expected: Usage, status: str) -> None:
    events = read(sse(*ended([], status, usage=given_usage)))[0]
    assert [e for e in events if isinstance(e, Usage)] == [expected]
    document = json.dumps(response(status, usage=given_usage)).encode()
    assert [e for e in read(document)[0] if isinstance(e, Usage)] == [expected]
