"""A round trip through another's Ollama API: ollama-proxy-plus in front of llama.cpp's server.

It passes on text and nothing else, counts words for tokens and knows no limit of tokens.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentls.core.errors import BadRequest
from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event, Status, Usage
from agentls.core.messages import Message
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest
from agentls.llm.http.retry import RetryPolicy
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.ollama import OllamaModel, describe, ollama_models
from agentls.llm.provider import ProviderConfig
from agentls.llm.schemes.ollama import Ollama
from support.llama_server import llama_server
from support.peers import ollama_proxy, peer_program

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]

PREFIX = "peer"
NAME = f"{PREFIX}/m"


@pytest.fixture
async def url(request: pytest.FixtureRequest) -> AsyncGenerator[str, None]:
    peer_program("ollama-proxy")  # first, so that a skip costs no model
    weights: Path = request.getfixturevalue("smollm2_path")
    async with llama_server(weights) as server, ollama_proxy(f"{server}/v1") as proxy:
        yield proxy


async def reply(url: str, request: ModelRequest, name: str = NAME) -> list[Event]:
    transport = Transport(url, provider="ollama", retry=RetryPolicy(attempts=1))
    model = HttpModel(ModelInfo(provider="ollama", name=name), Ollama(name, num_ctx=512), transport)
    async with contextlib.aclosing(model.stream(request)) as events:
        found = [event async for event in events]
    await model.aclose()
    return found


async def test_text_and_usage_and_what_it_has(url: str) -> None:
    request = ModelRequest(
        system="You are a helpful assistant.",
        items=(Message.of("user", "Write the word hello."),),
        max_tokens=12,
        temperature=0.0,
    )
    events = await reply(url, request)
    deltas = [event.text for event in events if isinstance(event, BlockDelta)]
    text = "".join(deltas)
    assert len(deltas) > 2
    assert "hello" in text.lower()
    words = sum(len(piece.split()) for piece in deltas)
    assert [event for event in events if not isinstance(event, BlockDelta)] == [
        BlockStart(index=0, block="text"),
        BlockStop(index=0, item=Message.of("assistant", text)),
        Usage(input_tokens=9, output_tokens=words),
        Status(state="finished", stop_reason="end_turn"),
    ]

    assert "openai/gpt-4o" in await ollama_models(ProviderConfig(base_url=url))
    transport = Transport(url, provider="ollama")
    assert await describe(transport, NAME) == OllamaModel(
        Capabilities(context_window=16_384, refuses=frozenset({"effort"})), 16_384
    )
    await transport.aclose()

    long = ModelRequest(items=(Message.of("user", "word " * 900),))
    # The proxy says so in its last line, under the status 200.
    with pytest.raises(BadRequest, match="exceeds the available context size") as caught:
        await reply(url, long)
    assert "start a new session" in caught.value.hint
