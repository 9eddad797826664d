"""A round trip against a real server that speaks the format: llama.cpp's."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentls.core.events import BlockDelta, BlockStart, BlockStop, Ping, Status, Usage
from agentls.core.messages import Message, ToolCall, ToolResult
from agentls.core.requests import ModelRequest, ToolDefinition
from agentls.llm.schemes.openai_responses import OpenAIResponses
from support.llama_server import llama_server
from support.openai_rig import Rig

pytestmark = [pytest.mark.model, pytest.mark.timeout(180)]


@pytest.fixture
async def rig(smollm2_path: Path) -> AsyncGenerator[Rig, None]:
    async with llama_server(smollm2_path) as address:
        yield Rig(f"{address}/v1", OpenAIResponses("m", provider="fake"))


async def test_text_and_usage(rig: Rig) -> None:
    request = ModelRequest(
        system="You are a helpful assistant.",
        items=(Message.of("user", "Write the word hello."),),
        max_tokens=12,
        temperature=0.0,
    )
    events, error = await rig.ask(request)
    assert error is None
    events = [event for event in events if not isinstance(event, Ping)]
    deltas = [e.text for e in events if isinstance(e, BlockDelta)]
    assert len(deltas) > 2
    text = "".join(deltas)
    assert "hello" in text.lower()
    assert events[0] == BlockStart(index=0, block="text")
    assert events[-3] == BlockStop(index=0, item=Message.of("assistant", text))
    usage = events[-2]
    assert isinstance(usage, Usage)
    assert usage.input_tokens > 10
    assert 0 < usage.output_tokens <= 12
    assert events[-1] == Status(state="finished", stop_reason="end_turn")


async def test_it_takes_a_history_with_calls_and_settings(rig: Rig) -> None:
    request = ModelRequest(
        system="You are a helpful assistant.",
        items=(
            Message.of("user", "Which files are there?"),
            Message.of("assistant", "I will look."),
            ToolCall(call_id="call_1", name="glob", arguments={"pattern": "*"}),
            ToolResult(call_id="call_1", name="glob", content="a.py"),
            Message.of("assistant", "One."),
            Message.of("user", "Thanks."),
        ),
        tools=(ToolDefinition(name="glob", description="Find.", parameters={"type": "object"}),),
        max_tokens=4,
        effort="none",
    )
    events, error = await rig.ask(request)
    assert error is None
    assert isinstance(events[-1], Status)
    assert events[-1].state == "finished"
