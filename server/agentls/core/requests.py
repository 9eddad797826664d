"""What is asked of a model, and what a model says of itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from agentls.core.messages import Frozen, Item

ToolCalling = Literal["native", "constrained", "none"]
"""How a model calls tools: by itself; only when its output is held to a JSON schema; not at all."""

ToolKind = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other"]
"""ACP's tool kinds."""


class ToolDefinition(Frozen):
    """A tool as a model sees it. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    kind: ToolKind = "other"


class ModelRequest(Frozen):
    """One request to a model.

    `items` is a valid history: every `ToolCall` is followed by exactly one `ToolResult`.
    `response_schema` holds the reply to a JSON schema, where the server can do that.
    """

    system: str = ""
    items: tuple[Item, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    response_schema: dict[str, JsonValue] | None = None


class Capabilities(Frozen):
    """What a model can take and do. `context_window` is in tokens; None when unknown."""

    tool_calling: ToolCalling = "native"
    context_window: int | None = None
    images: bool = False
    audio: bool = False
    documents: bool = False


class ModelInfo(Frozen):
    """A model's name, who serves it, and what it can do."""

    provider: str
    name: str
    capabilities: Capabilities = Field(default_factory=Capabilities)
