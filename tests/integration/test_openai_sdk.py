"""The official SDK judges the fake server, and both must read the same out of it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import openai
import pytest

from agentls.core.events import BlockStop, Event, Status, Usage
from agentls.core.messages import ImageBlock, Message, TextBlock, ToolCall
from agentls.core.requests import ModelInfo, ModelRequest, ToolDefinition
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.provider import ProviderConfig
from agentls.llm.registry import create
from agentls.llm.schemes.openai_chat import OpenAIChat
from support.openai_server import OpenAIServer, called, refused, said, streamed
from support.proofs import proving

TOOL = ToolDefinition(name="glob", description="Find.", parameters={"type": "object"})
REQUEST = ModelRequest(items=(Message.of("user", "hi"),), tools=(TOOL,))


@pytest.fixture
async def server() -> AsyncGenerator[OpenAIServer, None]:
    async with OpenAIServer() as server:
        yield server


@pytest.fixture
async def sdk(server: OpenAIServer) -> AsyncGenerator[openai.AsyncOpenAI, None]:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="k" * 9, max_retries=0) as client:
        yield client


async def ours(server: OpenAIServer) -> list[Event]:
    transport = Transport(server.url, provider="fake")
    model = HttpModel(ModelInfo(provider="fake", name="m"), OpenAIChat("m"), transport)
    events = [event async for event in model.stream(REQUEST)]
    await model.aclose()
    return events


async def test_text_calls_and_usage(server: OpenAIServer, sdk: openai.AsyncOpenAI) -> None:
    for reply in (said("hello big world"), called("glob", pattern="*.py")):
        server.replies.extend([reply, reply])
        text, name, raw, usage, finish = "", "", "", None, None
        # The SDK also judges the body our scheme builds: it is sent through it.
        body = OpenAIChat("m").build(REQUEST)
        stream = await sdk.chat.completions.create(**body)  # type: ignore[call-overload]  # from JSON
        async for piece in stream:
            assert isinstance(piece, openai.types.chat.ChatCompletionChunk)
            usage = piece.usage or usage
            for choice in piece.choices:
                finish = choice.finish_reason or finish
                text += choice.delta.content or ""
                for part in choice.delta.tool_calls or ():
                    assert part.function is not None
                    name += part.function.name or ""
                    raw += part.function.arguments or ""
        assert usage is not None
        items: list[object] = []
        if text:
            items.append(Message.of("assistant", text))
        if name:
            items.append(ToolCall(call_id="call_1", name=name, arguments=json.loads(raw)))
        events = await ours(server)
        assert [e.item for e in events if isinstance(e, BlockStop)] == items
        assert events[-2:] == [
            Usage(input_tokens=usage.prompt_tokens, output_tokens=usage.completion_tokens),
            Status(state="finished", stop_reason="tool_use" if name else "end_turn"),
        ]
        assert finish == ("tool_calls" if name else "stop")
    first, second, *_ = server.exchanges
    assert first.json == second.json


async def test_errors(server: OpenAIServer, sdk: openai.AsyncOpenAI) -> None:
    server.replies.append(refused(401, {"error": {"message": "bad key", "type": "x"}}))
    with pytest.raises(openai.AuthenticationError, match="bad key"):
        await sdk.models.list()
    server.replies.append(streamed({"error": {"message": "boom"}}))
    stream = await sdk.chat.completions.create(model="m", messages=[], stream=True)
    with pytest.raises(openai.APIError, match="boom"):
        async for _ in stream:
            pass


@proving("openai", "images", peer="fake (openai SDK)")
@proving("deepseek", "images", peer="fake (openai SDK)")
@pytest.mark.parametrize("provider", ["openai", "deepseek"])
async def test_an_image_is_sent_as_the_sdk_sends_it(
    provider: str, server: OpenAIServer, sdk: openai.AsyncOpenAI
) -> None:
    content = (
        TextBlock(text="What is this?"),
        ImageBlock(mime_type="image/png", data="AAAA"),
        ImageBlock(mime_type="image/png", url="https://example.com/a.png"),
    )
    request = ModelRequest(items=(Message(role="user", content=content),))
    server.replies.extend([said("ok"), said("ok")])
    name = "m" if provider == "openai" else "deepseek-v4-flash"
    model = await create(provider, ProviderConfig(model=name, base_url=server.url))
    async for _ in model.stream(request):
        pass
    await model.aclose()
    stream = await sdk.chat.completions.create(
        model=name,
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                ],
            }
        ],
        stream=True,
        stream_options={"include_usage": True},
    )
    async for _ in stream:
        pass
    ours, theirs = server.exchanges
    assert ours.json == theirs.json
