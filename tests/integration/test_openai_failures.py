"""What goes wrong over HTTP: statuses, connections, errors under status 200, keys."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import JsonValue

from agentls.core.errors import (
    BadRequest,
    RateLimited,
    StreamBroken,
    Unauthorized,
    Unreachable,
)
from agentls.core.events import (
    Usage,
)
from support.openai_rig import HELLO, KEY, Rig, retrying
from support.openai_server import (
    CUT,
    RESET,
    STALL,
    OpenAIServer,
    Reply,
    refused,
    said,
    streamed,
)
from support.openai_streams import chunk, sse
from support.reply_events import FINISHED, cut_text, text

# --- failures --------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529])
async def test_statuses_that_are_tried_again(status: int) -> None:
    async with OpenAIServer(refused(status), refused(status), said("hello world")) as server:
        rig = Rig(server.url)
        events, error = await rig.ask()
    assert error is None
    assert (events[2:], rig.waits, len(server.exchanges)) == (HELLO, [0.5, 1.0], 3)
    first, second = retrying(events)
    assert first.startswith(f"fake answered {status}")
    assert first.endswith("Trying again in 0.5 s (attempt 2 of 4).")
    assert second.endswith("Trying again in 1.0 s (attempt 3 of 4).")


async def test_four_attempts_and_no_more() -> None:
    async with OpenAIServer(*[refused(503, {"error": "busy"})] * 5) as server:
        rig = Rig(server.url)
        events, error = await rig.ask()
    assert (len(server.exchanges), len(retrying(events)), rig.waits) == (4, 3, [0.5, 1.0, 2.0])
    assert error is not None
    assert (error.message, error.status, error.retryable) == (
        "fake answered 503 (service unavailable): busy.",
        503,
        True,
    )


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 501])
async def test_statuses_that_are_not(status: int) -> None:
    async with OpenAIServer(refused(status), said("a")) as server:
        events, error = await Rig(server.url).ask()
    assert events == []
    assert error is not None
    assert (error.status, error.retryable, len(server.exchanges)) == (status, False, 1)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [("3", 3, 3), ("nonsense", 0.5, 0.5), ("date", 15, 20), ("-1", 0.5, 0.5)],
)
async def test_retry_after(value: str, low: float, high: float) -> None:
    if value == "date":
        value = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    async with OpenAIServer(refused(429, None, retry_after=value), said("hello world")) as server:
        rig = Rig(server.url)
        events, error = await rig.ask()
    assert (events[1:], error) == (HELLO, None)
    assert low <= rig.waits[0] <= high


async def test_a_wait_too_long_fails_at_once() -> None:
    async with OpenAIServer(refused(429, {"error": "later"}, retry_after="3600")) as server:
        rig = Rig(server.url)
        events, error = await rig.ask()
    assert (events, rig.waits, type(error)) == ([], [], RateLimited)
    assert "It asks to wait 3600 s." in str(error)


@pytest.mark.parametrize("end", [CUT, RESET])
async def test_a_connection_that_ends_before_the_first_byte_is_tried_again(end: object) -> None:
    async with OpenAIServer(Reply([end]), said("hello world")) as server:  # type: ignore[list-item]  # CUT or RESET
        events, error = await Rig(server.url).ask()
    assert (events[1:], error) == (HELLO, None)
    assert retrying(events) == [
        f"fake at {server.url} closed the connection before it answered. "
        "Trying again in 0.5 s (attempt 2 of 4)."
    ]


@pytest.mark.parametrize("end", [CUT, RESET])
async def test_a_connection_that_ends_midway_is_a_broken_stream(end: object) -> None:
    reply = Reply([sse(chunk({"content": "a"}), done=False), end])  # type: ignore[list-item]  # CUT or RESET
    async with OpenAIServer(reply, said("b")) as server:
        events, error = await Rig(server.url).ask()
    assert events == cut_text("a")
    assert isinstance(error, StreamBroken)
    assert error.message == "The connection to fake broke in the middle of the reply."
    assert len(server.exchanges) == 1


async def test_a_connection_that_ends_behind_a_whole_reply_is_no_failure() -> None:
    reply = Reply([sse(chunk({"content": "a"}, "stop"), done=False), CUT])
    async with OpenAIServer(reply) as server:
        assert await Rig(server.url).ask() == ([*text(0, "a"), Usage(), FINISHED], None)


async def test_a_body_that_ends_with_the_connection() -> None:
    reply = Reply([sse(chunk({"content": "a"}, "stop"))], framing="close")
    async with OpenAIServer(reply) as server:
        assert await Rig(server.url).ask() == ([*text(0, "a"), Usage(), FINISHED], None)
    reply = Reply([sse(chunk({"content": "a"}), done=False)], framing="close")
    async with OpenAIServer(reply) as server:
        events, error = await Rig(server.url).ask()
    assert (events, type(error)) == (cut_text("a"), StreamBroken)


async def test_tls_to_a_server_that_has_none_is_told_at_once() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        events, error = await Rig(f"https://127.0.0.1:{port}/v1").ask()
    assert (events, type(error), error and error.retryable) == ([], Unreachable, False)
    assert "its certificate or its TLS cannot be trusted" in str(error)


async def test_nobody_listens() -> None:
    async with OpenAIServer() as server:
        url = server.url
    rig = Rig(url)
    events, error = await rig.ask()
    assert (len(retrying(events)), rig.waits) == (3, [0.5, 1.0, 2.0])
    assert isinstance(error, Unreachable)
    assert str(error) == f"Could not reach fake at {url}: connection refused. Is it running?"


@pytest.mark.parametrize(
    "body",
    [
        sse({"error": {"message": "busy", "code": 503}}, done=False),
        b'{"error": {"message": "busy", "code": 503}}',
        b": wait\n\n" + sse({"error": {"message": "busy", "type": "overloaded_error"}}, done=False),
    ],
)
async def test_an_error_under_status_200_is_tried_again_like_its_status(body: bytes) -> None:
    async with OpenAIServer(Reply([body]), said("hello world")) as server:
        events, error = await Rig(server.url).ask()
    assert error is None
    assert events[-len(HELLO) :] == HELLO
    assert len(retrying(events)) == 1


async def test_an_error_under_status_200_that_will_stay() -> None:
    body = b'{"error": {"message": "unknown model", "code": 404}}'
    reply = Reply([body], headers={"Content-Type": "application/json"})
    async with OpenAIServer(reply, said("a")) as server:
        events, error = await Rig(server.url).ask()
    assert (events, type(error), error and error.status) == ([], BadRequest, 404)
    assert len(server.exchanges) == 1


async def test_an_error_midway_breaks_the_stream_and_says_nothing_twice() -> None:
    busy: JsonValue = {"error": {"message": "busy", "code": 503}}
    async with OpenAIServer(streamed(chunk({"content": "a"}), busy), said("b")) as server:
        events, error = await Rig(server.url).ask()
    assert events == cut_text("a")
    assert isinstance(error, StreamBroken)
    assert (error.message, error.status) == ("fake reported an error: busy.", 503)
    assert len(server.exchanges) == 1


async def test_a_page_is_no_api() -> None:
    reply = Reply([b"<!doctype html>Log in"], headers={"Content-Type": "text/html; charset=utf-8"})
    async with OpenAIServer(reply) as server:
        events, error = await Rig(server.url).ask()
    assert (events, type(error)) == ([], BadRequest)
    assert str(error) == (
        f"fake at {server.url} did not answer as an API does. "
        "Is the base URL right? For most servers it ends in /v1."
    )


async def test_an_error_body_that_never_ends_is_cut() -> None:
    endless = Reply([b"x" * 100_000, STALL], 400, {"Content-Type": "text/plain"})
    async with OpenAIServer(endless) as server:
        _, error = await Rig(server.url).ask()
    assert error is not None
    assert len(str(error)) < 1000


# --- keys ------------------------------------------------------------------------------------


async def test_a_key_goes_to_no_other_host() -> None:
    async with OpenAIServer(said("a")) as other:
        moved = refused(307, None, location=f"{other.url}/chat/completions")
        async with OpenAIServer(moved) as server:
            events, error = await Rig(server.url).ask()
        assert (events, type(error), other.exchanges) == ([], BadRequest, [])
    assert "Redirects to" in str(error)


async def test_an_echoed_key_is_in_no_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentls")
    echo: JsonValue = {"error": {"message": f"bad key {KEY} and sk-abcdef123456 for hi"}}
    in_stream = streamed(chunk({"content": "a"}), {"error": f"bad key {KEY}"})
    for reply, kind in ((refused(401, echo), Unauthorized), (in_stream, StreamBroken)):
        async with OpenAIServer(reply) as server:
            events, error = await Rig(server.url).ask()
        assert type(error) is kind
        shown = f"{error!r} {error} {events}" + "".join(r.getMessage() for r in caplog.records)
        assert "bad key [key]" in shown
        assert KEY not in shown
        assert "abcdef123456" not in shown


async def test_logs_hold_no_bodies(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentls")
    async with OpenAIServer(said("hello world")) as server:
        await Rig(server.url).ask()
    assert [r.getMessage() for r in caplog.records if r.name.startswith("agentls")] == [
        "POST fake: 200"
    ]
