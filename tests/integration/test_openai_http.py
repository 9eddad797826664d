"""Replies over HTTP: model, transport and scheme against a server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time

import httpx
import pytest
from pydantic import JsonValue, SecretStr

from agentls.core.errors import (
    BadRequest,
    ModelError,
    StreamBroken,
    Unauthorized,
    Unreachable,
)
from agentls.core.events import (
    BlockDelta,
    BlockStop,
    Event,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import ImageBlock, Message, ToolCall
from agentls.core.requests import ModelInfo, ModelRequest
from agentls.llm.http.retry import RetryPolicy
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.schemes.openai_chat import OpenAIChat
from support.openai_rig import HELLO, HI, KEY, USAGE, Rig
from support.openai_server import (
    CUT,
    STALL,
    OpenAIServer,
    Reply,
    called,
    refused,
    said,
)
from support.openai_streams import DONE, chunk, sse, usage_chunk
from support.reply_events import FINISHED, cut_text, text

# --- replies ---------------------------------------------------------------------------------


async def test_a_reply_and_what_was_sent() -> None:
    async with OpenAIServer(said("hello world")) as server:
        assert await Rig(server.url + "/").ask() == (HELLO, None)
    (exchange,) = server.exchanges
    assert (exchange.method, exchange.path) == ("POST", "/v1/chat/completions")
    assert exchange.headers["authorization"] == f"Bearer {KEY}"
    assert exchange.headers["content-type"] == "application/json"
    assert exchange.json == OpenAIChat("m").build(HI)


async def test_a_call() -> None:
    async with OpenAIServer(called("read_file", path="a.py")) as server:
        events, error = await Rig(server.url).ask()
    assert error is None
    item = ToolCall(call_id="call_1", name="read_file", arguments={"path": "a.py"})
    assert events[-3:] == [
        BlockStop(index=0, item=item),
        USAGE,
        Status(state="finished", stop_reason="tool_use"),
    ]


@pytest.mark.parametrize("size", [1, 7, 100])
async def test_any_slicing_on_the_wire(size: int) -> None:
    stream = b": hi\r\n\r\n" + sse(chunk({"content": "ü😀"}), chunk({}, "stop"))
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    async with OpenAIServer(Reply(pieces)) as server:
        assert await Rig(server.url).ask() == ([Ping(), *text(0, "ü😀"), Usage(), FINISHED], None)


async def test_events_come_before_the_reply_is_over() -> None:
    more = asyncio.Event()
    first, rest = sse(chunk({"content": "a"}), done=False), sse(chunk({"content": "b"}, "stop"))
    async with OpenAIServer(Reply([first, more, rest])) as server, Rig(server.url).model() as model:
        events: list[Event] = []
        async for event in model.stream(HI):
            events.append(event)
            if event == BlockDelta(index=0, text="a"):
                more.set()
    assert events == [*text(0, "a", "b"), Usage(), FINISHED]


async def test_a_connection_is_used_again() -> None:
    async with OpenAIServer(said("a"), said("b")) as server, Rig(server.url).model() as model:
        for _ in range(2):
            async with contextlib.aclosing(model.stream(HI)) as events:
                assert [event async for event in events][-1] == FINISHED
        assert server.connections == 1


async def test_a_body_that_is_not_streamed() -> None:
    body: JsonValue = {
        "choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }
    reply = Reply([json.dumps(body).encode()], headers={"Content-Type": "application/json"})
    async with OpenAIServer(reply) as server:
        assert await Rig(server.url).ask() == ([*text(0, "hello"), USAGE, FINISHED], None)


async def test_half_a_character_in_a_request_is_replaced() -> None:
    async with OpenAIServer(said("hello world")) as server:
        request = ModelRequest(items=(Message.of("user", "a\udcffb"),))
        assert await Rig(server.url).ask(request) == (HELLO, None)
    assert server.exchanges[0].json["messages"] == [{"role": "user", "content": "a?b"}]


async def test_content_the_model_cannot_take_is_never_sent() -> None:
    image = Message(role="user", content=(ImageBlock(mime_type="image/png", data="A"),))
    async with OpenAIServer(said("a")) as server:
        events, error = await Rig(server.url).ask(ModelRequest(items=(image,)))
    assert (events, type(error), server.exchanges) == ([], BadRequest, [])


# --- a server that does not end --------------------------------------------------------------


@pytest.mark.parametrize("tail", [[DONE], []])
async def test_a_connection_left_open_behind_a_whole_reply(tail: list[bytes]) -> None:
    reply = Reply([sse(chunk({"content": "a"}, "stop"), done=False), *tail, STALL])
    async with OpenAIServer(reply) as server:
        start = time.monotonic()
        assert await Rig(server.url).ask() == ([*text(0, "a"), Usage(), FINISHED], None)
        assert time.monotonic() - start < 10  # of 30 s idle time


async def test_silence_midway_is_a_broken_stream() -> None:
    async with OpenAIServer(Reply([sse(chunk({"content": "a"}), done=False), STALL])) as server:
        events, error = await Rig(server.url, idle_s=0.2).ask()
    assert events == cut_text("a")
    assert isinstance(error, StreamBroken)
    assert error.message == "fake stopped in the middle of its reply, silent for 0.2 s."
    assert len(server.exchanges) == 1


async def test_silence_from_the_start_is_told_and_not_repeated() -> None:
    async with OpenAIServer(Reply([STALL])) as server:
        events, error = await Rig(server.url, idle_s=0.2).ask()
        assert (events, type(error).__mro__[1]) == ([], Unreachable)
        assert str(error) == (
            f"fake at {server.url} accepted the request, then said nothing for 0.2 s. "
            "A local model that reads a long prompt may need a longer read timeout."
        )
    assert len(server.exchanges) == 1


async def test_pings_keep_a_slow_reply_alive() -> None:
    # Each wait is shorter than the idle time; all of them together are longer.
    steps: list[bytes | asyncio.Event] = []
    waits = [asyncio.Event() for _ in range(6)]
    for wait in waits:
        steps += [b": wait\n\n", wait]
    reply = Reply([*steps, sse(chunk({"content": "a"}, "stop"))])
    async with OpenAIServer(reply) as server, Rig(server.url, idle_s=1.0).model() as model:
        events: list[Event] = []
        loop = asyncio.get_running_loop()
        for number, wait in enumerate(waits, start=1):
            loop.call_later(0.25 * number, wait.set)
        async for event in model.stream(HI):
            events.append(event)
    assert events == [*[Ping()] * 6, *text(0, "a"), Usage(), FINISHED]


# --- stopping --------------------------------------------------------------------------------

STALLED = Reply([sse(chunk({"content": "a"}), done=False), STALL])


async def test_closing_the_iterator_closes_the_socket_at_once() -> None:
    async with OpenAIServer(STALLED) as server, Rig(server.url).model() as model:
        events = model.stream(HI)
        async for event in events:
            if isinstance(event, BlockDelta):
                break
        start = time.monotonic()
        await events.aclose()
        await asyncio.wait_for((await server.exchange()).gone.wait(), 5)
        assert time.monotonic() - start < 0.1


@pytest.mark.parametrize("reply", [STALLED, Reply([STALL])], ids=["midway", "before a byte"])
async def test_cancelling_the_reader_closes_the_socket_at_once(reply: Reply) -> None:
    async with OpenAIServer(reply) as server, Rig(server.url).model() as model:
        seen: list[Event] = []
        shown = asyncio.Event()

        async def consume() -> None:
            async with contextlib.aclosing(model.stream(HI)) as events:
                async for event in events:
                    seen.append(event)
                    shown.set()

        task = asyncio.create_task(consume())
        exchange = await server.exchange()
        if reply is STALLED:
            await shown.wait()
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(exchange.gone.wait(), 5)
        assert time.monotonic() - start < 0.1
        assert not any(isinstance(event, BlockStop) for event in seen)


async def test_leaving_a_response_unread_closes_the_socket() -> None:
    async with OpenAIServer(STALLED) as server:
        transport = Transport(server.url, provider="fake")
        async with transport.post_stream("/chat/completions", {}):
            pass
        await asyncio.wait_for((await server.exchange()).gone.wait(), 5)
        await transport.aclose()


async def test_cancelling_a_wait_between_attempts() -> None:
    waiting = asyncio.Event()

    async def forever(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with OpenAIServer(refused(503), said("a")) as server:
        transport = Transport(server.url, provider="fake", retry=RetryPolicy(sleep=forever))
        model = HttpModel(ModelInfo(provider="fake", name="m"), OpenAIChat("m"), transport)

        async def consume() -> None:
            async with contextlib.aclosing(model.stream(HI)) as events:
                async for _ in events:
                    pass

        task = asyncio.create_task(consume())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.aclose()
    assert len(server.exchanges) == 1


# --- documents -------------------------------------------------------------------------------


async def test_get_json() -> None:
    reply = Reply([b'{"data": [', b'{"id": "m"}]}'], headers={"Content-Type": "application/json"})
    async with OpenAIServer(reply) as server:
        transport = Transport(server.url, provider="fake", api_key=SecretStr(KEY))
        assert await transport.get_json("/models", timeout_s=5) == {"data": [{"id": "m"}]}
        await transport.aclose()
    (exchange,) = server.exchanges
    assert (exchange.method, exchange.path) == ("GET", "/v1/models")
    assert exchange.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refused(401), Unauthorized),
        (refused(503), ModelError),
        (Reply([b"{oops"]), BadRequest),
        (Reply([STALL]), Unreachable),
        (Reply([b"{", STALL]), Unreachable),
        (Reply([CUT]), Unreachable),
    ],
)
async def test_get_json_fails_once_and_in_time(reply: Reply, kind: type[ModelError]) -> None:
    async with OpenAIServer(reply) as server:
        transport = Transport(server.url, provider="fake")
        with pytest.raises(ModelError) as caught:
            await transport.get_json("/models", timeout_s=0.3)
        await transport.aclose()
    assert type(caught.value) is kind
    assert len(server.exchanges) == 1


async def test_a_client_passed_in_stays_its_owner_s() -> None:
    async def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=sse(chunk({"content": "a"}, "stop"), usage_chunk()))

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        transport = Transport("http://h/v1", provider="fake", client=client)
        model = HttpModel(ModelInfo(provider="fake", name="m"), OpenAIChat("m"), transport)
        events = [event async for event in model.stream(HI)]
        await model.aclose()
        assert not client.is_closed
    assert events == [*text(0, "a"), USAGE, FINISHED]
