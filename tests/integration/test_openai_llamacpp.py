"""A round trip against a real server that speaks the format: llama.cpp's."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentls.core.errors import BadRequest
from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event, Status, Usage
from agentls.core.messages import Message
from agentls.core.requests import ModelInfo, ModelRequest
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.schemes.openai_chat import OpenAIChat
from support.llama_server import llama_server

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]


@pytest.fixture
async def url(smollm2_path: Path) -> AsyncGenerator[str, None]:
    async with llama_server(smollm2_path) as address:
        yield f"{address}/v1"


@pytest.fixture
async def model(url: str) -> AsyncGenerator[HttpModel, None]:
    transport = Transport(url, provider="llamacpp")
    model = HttpModel(ModelInfo(provider="llamacpp", name="m"), OpenAIChat("m"), transport)
    yield model
    await model.aclose()


def asking(text: str, **settings: int) -> ModelRequest:
    return ModelRequest(
        system="You are a helpful assistant.",
        items=(Message.of("user", text),),
        temperature=0.0,
        seed=1,
        **settings,
    )


async def reply(model: HttpModel, request: ModelRequest) -> list[Event]:
    return [event async for event in model.stream(request)]


async def test_text_and_usage(model: HttpModel) -> None:
    events = await reply(model, asking("Write the word hello.", max_tokens=12))
    deltas = [e.text for e in events if isinstance(e, BlockDelta)]
    assert len(deltas) > 2
    text = "".join(deltas)
    assert "hello" in text.lower()
    start, stop, usage, status = events[0], events[-3], events[-2], events[-1]
    assert start == BlockStart(index=0, block="text")
    assert stop == BlockStop(index=0, item=Message.of("assistant", text))
    assert isinstance(usage, Usage)
    assert usage.input_tokens > 10
    assert 0 < usage.output_tokens <= 12
    cut = usage.output_tokens == 12
    assert status == Status(state="finished", stop_reason="max_tokens" if cut else "end_turn")


async def test_max_tokens_and_the_prompt_cache(model: HttpModel) -> None:
    request = asking("Tell me a long story about a fox.", max_tokens=5)
    first = await reply(model, request)
    assert first[-1] == Status(state="finished", stop_reason="max_tokens")
    again = await reply(model, request)
    usage = again[-2]
    assert isinstance(usage, Usage)
    assert usage.cache_read_tokens > 10


async def test_a_schema_holds_the_reply(model: HttpModel) -> None:
    request = asking("Is water wet?", max_tokens=20).model_copy(
        update={"response_schema": {"type": "string", "enum": ["yes", "no"]}}
    )
    stop = (await reply(model, request))[-3]
    assert isinstance(stop, BlockStop)
    assert isinstance(stop.item, Message)
    assert stop.item.text in ('"yes"', '"no"')


async def test_a_prompt_longer_than_the_context(model: HttpModel) -> None:
    with pytest.raises(BadRequest) as caught:
        await reply(model, asking("word " * 900))
    assert caught.value.status == 400
    assert "exceeds the available context size (512 tokens)" in caught.value.message
    assert caught.value.hint == (
        "It is longer than the model's context: start a new session, or send less."
    )


async def test_a_wrong_path_is_explained(url: str) -> None:
    transport = Transport(url.removesuffix("/v1") + "/nothing", provider="llamacpp")
    model = HttpModel(ModelInfo(provider="llamacpp", name="m"), OpenAIChat("m"), transport)
    with pytest.raises(BadRequest, match=r"Check the model's name and the base URL"):
        await reply(model, asking("hi"))
    await model.aclose()


async def test_the_list_of_models(url: str, smollm2_path: Path) -> None:
    transport = Transport(url, provider="llamacpp")
    models = await transport.get_json("/models", timeout_s=5)
    await transport.aclose()
    assert isinstance(models, dict)
    assert isinstance(models["data"], list)
    assert str(smollm2_path) in str(models["data"][0])


async def test_cancelling_frees_the_server(model: HttpModel) -> None:
    begun = asyncio.Event()

    async def consume() -> None:
        async with contextlib.aclosing(model.stream(asking("Count to a thousand."))) as events:
            async for event in events:
                if isinstance(event, BlockDelta):
                    begun.set()

    task = asyncio.create_task(consume())
    await asyncio.wait_for(begun.wait(), 60)
    start = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - start < 0.1
    # The server has one slot: it answers again only because it noticed.
    events = await asyncio.wait_for(reply(model, asking("Say hi.", max_tokens=3)), 30)
    assert isinstance(events[-1], Status)


async def test_over_a_unix_socket(smollm2_path: Path, tmp_path: Path) -> None:
    socket = tmp_path / "s.sock"
    async with llama_server(smollm2_path, host=str(socket)):
        transport = Transport("http://model/v1", provider="local", uds=socket)
        model = HttpModel(ModelInfo(provider="local", name="m"), OpenAIChat("m"), transport)
        events = await reply(model, asking("Say hi.", max_tokens=3))
        await model.aclose()
    assert isinstance(events[-1], Status)
    assert events[-1].state == "finished"
