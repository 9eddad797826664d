"""Parts of histories, and of the bodies they become in requests to `/v1/messages`."""

from __future__ import annotations

from typing import Any

from pydantic import JsonValue

from agentls.core.messages import (
    Item,
    Message,
    Reasoning,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import Effort, ModelRequest, ToolDefinition
from agentls.llm.schemes.anthropic import Anthropic

PLAIN = Anthropic("m", provider="fake", cache=False)
ADAPTIVE = Anthropic("m", provider="fake", cache=False, thinking="adaptive")
CACHED = Anthropic("m", provider="fake")
MARK: dict[str, JsonValue] = {"cache_control": {"type": "ephemeral"}}
HM = Reasoning(text="hm", signature="c2ln", provider="fake")
THINKING: JsonValue = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
CALL = ToolCall(call_id="a", name="glob", arguments={"pattern": "*"})
USE: JsonValue = {"type": "tool_use", "id": "a", "name": "glob", "input": {"pattern": "*"}}
RESULT = ToolResult(call_id="a", name="glob", content="a.py", summary="one file")
ANSWER: dict[str, JsonValue] = {"type": "tool_result", "tool_use_id": "a", "content": "a.py"}

TOOLS = tuple(ToolDefinition(name=name, description=".", parameters={}) for name in ("f", "g"))


def messages(*items: Item, scheme: Anthropic = PLAIN, effort: Effort | None = None) -> Any:
    return scheme.build(ModelRequest(items=items, effort=effort))["messages"]


def user(text: str) -> Message:
    return Message.of("user", text)


def said(text: str) -> Message:
    return Message.of("assistant", text)


def from_user(*blocks: JsonValue) -> dict[str, JsonValue]:
    return {"role": "user", "content": list(blocks)}


def from_model(*blocks: JsonValue) -> dict[str, JsonValue]:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str) -> dict[str, JsonValue]:
    return {"type": "text", "text": words}
