"""Each provider against programs nobody here wrote; what passes fills `docs/providers.md`.

The model is the smallest there is, made obedient by a template: "Look for W." calls two tools,
"Think of W." thinks and answers. Parsing thinking and calls is the peers' own work.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass

import httpx
import pytest
from pydantic import SecretStr

from agentls.agent.turn import Limits
from agentls.core.events import BlockDelta, BlockStop, Event, Status, Usage
from agentls.core.messages import Message, Reasoning, ToolCall
from agentls.core.ports import Model
from agentls.core.requests import ModelRequest, ToolDefinition
from agentls.llm.provider import ProviderConfig
from agentls.llm.registry import create
from support.agent_fakes import rig
from support.fake_server import Exchange
from support.fault_proxy import FaultProxy
from support.faults import Nothing, Reset
from support.peers import LITELLM_KEY

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]


@dataclass(frozen=True)
class Peer:
    """A provider's configuration for a peer: the fixture with its address and the path below."""

    provider: str
    fixture: str
    name: str
    path: str = ""
    model: str = "m"
    unproven: frozenset[str] = frozenset()
    """What this peer cannot do by itself."""


PEERS = (
    Peer("openai", "llama_url", "llama.cpp", "/v1"),
    Peer("openai-responses", "llama_url", "llama.cpp", "/v1"),
    Peer("anthropic", "llama_url", "llama.cpp"),
    Peer("anthropic", "litellm_url", "litellm", unproven=frozenset({"cache", "thinking"})),
    Peer("gemini", "litellm_url", "litellm", unproven=frozenset({"cache", "thinking"})),
    Peer("groq", "llama_url", "llama.cpp", "/v1"),
    Peer("deepseek", "llama_url", "llama.cpp", "/v1"),
    Peer(
        "ollama",
        "ollama_proxy_url",
        "ollama-proxy-plus",
        model="peer/m",
        unproven=frozenset({"tools", "parallel tools", "thinking", "cache"}),
    ),
)


def proving(*features: str) -> pytest.MarkDecorator:
    """One parameter a peer that can show all of these features."""
    return pytest.mark.parametrize(
        "peer",
        [
            pytest.param(
                peer,
                id=f"{peer.provider}-{peer.name}",
                marks=[
                    pytest.mark.proves(peer.provider, feature, peer=peer.name)
                    for feature in features
                ],
            )
            for peer in PEERS
            if not peer.unproven & {*features}
        ],
    )


@pytest.fixture
async def proxy(peer: Peer, request: pytest.FixtureRequest) -> AsyncGenerator[FaultProxy, None]:
    """Stands between the provider and its peer; faultless unless told otherwise."""
    async with FaultProxy(request.getfixturevalue(peer.fixture) + peer.path) as proxy:
        yield proxy


@pytest.fixture
async def model(peer: Peer, proxy: FaultProxy) -> AsyncGenerator[Model, None]:
    config = ProviderConfig(
        model=peer.model, base_url=proxy.url, api_key=SecretStr(LITELLM_KEY), context_tokens=2048
    )
    model = await create(peer.provider, config)
    yield model
    await model.aclose()


def tool(name: str, parameter: str) -> ToolDefinition:
    properties = {parameter: {"type": "string"}}
    return ToolDefinition(
        name=name,
        description="Look something up.",
        parameters={"type": "object", "properties": properties, "required": [parameter]},
    )


TOOLS = (tool("grep", "pattern"), tool("read_file", "path"))


def asking(text: str, *, tools: bool = False) -> ModelRequest:
    return ModelRequest(
        items=(Message.of("user", text),),
        tools=TOOLS if tools else (),
        max_tokens=120,
        temperature=0.0,
    )


async def reply(model: Model, request: ModelRequest) -> list[Event]:
    async with contextlib.aclosing(model.stream(request)) as events:
        return [event async for event in events]


def items(events: list[Event]) -> Iterator[object]:
    return (event.item for event in events if isinstance(event, BlockStop))


def finished(events: list[Event], reason: str) -> None:
    assert events[-1] == Status(state="finished", stop_reason=reason)


def usage(events: list[Event]) -> Usage:
    found = [event for event in events if isinstance(event, Usage)]
    assert len(found) == 1
    return found[0]


@proving("text", "usage")
async def test_text_and_usage(peer: Peer, model: Model) -> None:
    events = await reply(model, asking("Say delta."))
    (text,) = (item for item in items(events) if isinstance(item, Message))
    assert "delta" in text.text.lower()
    assert "<" not in text.text
    # One of the peers counts words.
    assert usage(events).input_tokens >= 2
    assert usage(events).output_tokens >= 2
    finished(events, "end_turn")


@proving("tools", "parallel tools")
async def test_tools_in_parallel(peer: Peer, model: Model) -> None:
    events = await reply(model, asking("Look for delta.", tools=True))
    calls = [item for item in items(events) if isinstance(item, ToolCall)]
    assert [(call.name, call.arguments) for call in calls] == [
        ("grep", {"pattern": "delta"}),
        ("read_file", {"path": "delta.py"}),
    ]
    assert len({call.call_id for call in calls}) == 2
    finished(events, "tool_use")


@proving("thinking")
async def test_thinking(peer: Peer, model: Model) -> None:
    events = await reply(model, asking("Think of delta."))
    thought, text = items(events)
    assert isinstance(thought, Reasoning)
    assert thought.text.strip() == "The word is delta."
    assert thought.provider == peer.provider
    assert isinstance(text, Message)
    assert text.text.strip() == "It is delta."


@proving("cache")
async def test_cache(peer: Peer, model: Model) -> None:
    request = asking("Say epsilon and zeta.")
    await reply(model, request)
    assert usage(await reply(model, request)).cache_read_tokens > 100


@proving("cancel")
async def test_cancel(peer: Peer, proxy: FaultProxy, model: Model) -> None:
    begun = asyncio.Event()

    async def consume() -> None:
        async with contextlib.aclosing(model.stream(asking("Count on."))) as events:
            async for event in events:
                if isinstance(event, BlockDelta):
                    begun.set()
                    await asyncio.Event().wait()

    task = asyncio.create_task(consume())
    await asyncio.wait_for(begun.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(proxy.exchanges[-1].gone.wait(), 5)


@proving("resume")
async def test_a_reset_in_the_middle(peer: Peer, proxy: FaultProxy, model: Model) -> None:
    talk = rig(model, limits=Limits(max_tokens=60, temperature=0.0))
    await talk.ask("Think of delta.")
    # The same again by hand, to know the bytes up to the first piece of text.
    body = await body_of(proxy.url.removesuffix(peer.path), proxy.exchanges[-1])
    ending = b"\n\n" if b"\n\n" in body else b"\n"
    border = body.index(ending, body.index(b'"It')) + len(ending)
    proxy.meet(Reset(after_bytes=border), Nothing())
    talk = rig(model, limits=Limits(max_tokens=60, temperature=0.0))
    text = await talk.ask("Think of delta.")
    assert text.startswith("It")
    first, second = proxy.exchanges[-2:]
    assert first.body != second.body
    assert b'"It"' in second.body.replace(b'"It\\n', b'"It"')
    told = [e.message for e in talk.events if isinstance(e, Status) and e.state == "retrying"]
    assert len(told) == 1
    finished(talk.events, "end_turn")
    assert [item for item in talk.history() if isinstance(item, Message)] == [
        Message.of("user", "Think of delta."),
        Message.of("assistant", text),
    ]


async def body_of(server: str, exchange: Exchange) -> bytes:
    """The body of the answer to a request that was made before."""
    headers = {
        name: value
        for name, value in exchange.headers.items()
        if name not in ("host", "content-length", "connection")
    }
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        url = f"{server}{exchange.path}"
        response = await client.post(url, content=exchange.body, headers=headers)
        return response.content
