"""Thinking that was rejected once is not sent again: every request of a turn would fail first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import JsonValue, SecretStr

from agentls.core.events import Status
from agentls.core.messages import Item, Message, Reasoning, ToolCall, ToolResult
from agentls.core.requests import ModelRequest
from agentls.llm.provider import ProviderConfig
from agentls.llm.registry import create
from support.fake_server import FakeServer, refused
from support.openai_rig import KEY
from support.wires.all_wires import WIRES

BEGUN: Mapping[str, tuple[Item, ...]] = {
    "anthropic": (
        Reasoning(text="old", signature="b2xk", provider="anthropic"),
        ToolCall(call_id="a", name="glob"),
    ),
    "gemini": (ToolCall(call_id="a", name="glob", signature="b2xk"),),
}
LATER: Mapping[str, tuple[Item, ...]] = {
    "anthropic": (Reasoning(text="new", signature="bmV3", provider="anthropic"),),
    "gemini": (ToolCall(call_id="b", name="glob", signature="bmV3"),),
}
ERROR: JsonValue = {"error": {"message": "Invalid `signature` in `thinking` block", "code": 400}}


@pytest.mark.parametrize("provider", BEGUN)
async def test_rejected_thinking_is_left_out_from_then_on(provider: str) -> None:
    wire = next(wire for wire in WIRES if wire.name == provider)
    hello = wire.reply(wire.said("hello"))
    items = (
        Message.of("user", "hi"),
        *BEGUN[provider],
        ToolResult(call_id="a", name="glob", content="x"),
    )
    more: tuple[Item, ...] = (Message.of("assistant", "hello"), Message.of("user", "go on"))
    more += (*LATER[provider], ToolCall(call_id="c", name="glob"))
    more += tuple(
        ToolResult(call_id=call.call_id, name="glob", content="x")
        for call in more
        if isinstance(call, ToolCall)
    )
    statuses: list[str] = []
    async with FakeServer(refused(400, ERROR), hello, hello) as server:
        config = ProviderConfig(base_url=server.url, api_key=SecretStr(KEY), model="m")
        model = await create(provider, config)
        for said in (items, items + more):
            async for event in model.stream(ModelRequest(items=said)):
                statuses += [event.state] if isinstance(event, Status) else []
        await model.aclose()
        bodies = [exchange.body.decode() for exchange in server.exchanges]
    assert statuses == ["retrying", "finished", "finished"]
    assert ["b2xk" in body for body in bodies] == [True, False, False]
    assert "bmV3" in bodies[2]
