"""What is asked of a model, and what a model says of itself."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field, JsonValue

from agentls.core.messages import Frozen, Item

ToolCalling = Literal["native", "text", "constrained", "none"]
"""How a model calls tools: by itself; as tagged JSON in its text; only when its output is held to a
JSON schema; not at all."""

Effort = Literal["none", "low", "medium", "high"]
"""How much a model should think before it answers."""

Option = Literal[
    "max_tokens", "temperature", "top_p", "seed", "stop", "effort", "response_schema", "tools"
]
"""What a request may set and a wire format or a model may not take."""

OPTIONS: frozenset[Option] = frozenset(get_args(Option))

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
    `response_schema` holds the reply to a JSON schema, where the server can do that. Whatever is
    None or empty is left to the provider.
    """

    system: str = ""
    items: tuple[Item, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    effort: Effort | None = None
    response_schema: dict[str, JsonValue] | None = None


class Price(Frozen):
    """What a million tokens cost, in US dollars.

    `cache_read` and `cache_write` are None where the provider counts them like other input.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class Capabilities(Frozen):
    """What a model can take and do.

    `context_window` and `max_output_tokens` are in tokens; None when unknown. `refuses` names the
    options this model answers with an error although its wire format has them.
    """

    tool_calling: ToolCalling = "native"
    context_window: int | None = None
    max_output_tokens: int | None = None
    images: bool = False
    audio: bool = False
    documents: bool = False
    thinking: bool = False
    max_temperature: float = 2.0
    refuses: frozenset[Option] = frozenset()
    price: Price | None = None


class ModelInfo(Frozen):
    """A model's name, who serves it, and what it can do."""

    provider: str
    name: str
    capabilities: Capabilities = Field(default_factory=Capabilities)
