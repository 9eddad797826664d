"""Groq's own SDK judges the fake server, for what differs from OpenAI there: thinking, usage."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import groq
import pytest
from pydantic import JsonValue, SecretStr

from agentls.core.events import BlockStop, Status, Usage
from agentls.core.messages import ImageBlock, Message, Reasoning, TextBlock, ToolCall
from agentls.core.requests import ModelRequest, ToolDefinition
from agentls.llm.provider import ProviderConfig
from agentls.llm.registry import create
from support.openai_server import OpenAIServer, streamed
from support.openai_streams import call, calls, chunk
from support.proofs import proving

TOOL = ToolDefinition(name="glob", description="Find.", parameters={"type": "object"})
REQUEST = ModelRequest(
    items=(
        Message(
            role="user",
            content=(
                TextBlock(text="What is this?"),
                ImageBlock(mime_type="image/png", data="AAAA"),
            ),
        ),
    ),
    tools=(TOOL,),
    max_tokens=9,
)
USAGE: JsonValue = {
    "prompt_tokens": 7,
    "completion_tokens": 3,
    "total_tokens": 10,
    "queue_time": 0.1,
}


@pytest.fixture
async def server() -> AsyncGenerator[OpenAIServer, None]:
    async with OpenAIServer() as server:
        yield server


@proving("groq", "thinking", "images", "usage", peer="fake (groq SDK)")
async def test_both_read_and_send_the_same(server: OpenAIServer) -> None:
    # Their SDK adds this path to the base URL.
    url = server.url.replace("/v1", "/openai/v1")
    reply = streamed(
        chunk({"role": "assistant", "content": None, "reasoning": "I "}),
        chunk({"reasoning": "look."}),
        calls({**call('{"pattern": "*"}', call_id="c1", name="glob"), "type": "function"}),
        {**chunk({}, "tool_calls"), "x_groq": {"id": "r", "usage": USAGE}},
    )
    server.replies.extend([reply, reply])
    config = ProviderConfig(model="qwen/qwen3.8-27b", base_url=url, api_key=SecretStr("k" * 9))
    model = await create("groq", config)
    events = [event async for event in model.stream(REQUEST)]
    await model.aclose()
    body = server.exchanges[0].json
    thought, name, arguments, usage = "", "", "", None
    async with groq.AsyncGroq(
        base_url=url.removesuffix("/openai/v1"), api_key="k" * 9, max_retries=0
    ) as sdk:
        stream = await sdk.chat.completions.create(
            **{key: value for key, value in body.items() if key != "stream_options"}
        )
        async for piece in stream:
            usage = piece.x_groq.usage if piece.x_groq and piece.x_groq.usage else usage
            for choice in piece.choices:
                thought += choice.delta.reasoning or ""
                for part in choice.delta.tool_calls or ():
                    assert part.function is not None
                    name += part.function.name or ""
                    arguments += part.function.arguments or ""
    assert usage is not None
    assert [event.item for event in events if isinstance(event, BlockStop)] == [
        Reasoning(text=thought, provider="groq"),
        ToolCall.parse("c1", name, arguments),
    ]
    (counted,) = [event for event in events if isinstance(event, Usage)]
    assert (counted.input_tokens, counted.output_tokens) == (
        usage.prompt_tokens,
        usage.completion_tokens,
    )
    assert events[-1] == Status(state="finished", stop_reason="tool_use")
    ours, theirs = server.exchanges
    assert ours.path == theirs.path == "/openai/v1/chat/completions"
    assert {**theirs.json, "stream_options": {"include_usage": True}} == ours.json
