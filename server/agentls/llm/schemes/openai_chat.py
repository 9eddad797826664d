"""The wire format of `/chat/completions`, as OpenAI made it and many servers speak it.

Serves OpenAI, Groq, DeepSeek, vLLM, LM Studio, llama.cpp's server and Ollama's /v1. Owns the
request; `openai_chat_messages` has the history, `openai_chat_reader` the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import JsonValue

from agentls.core.requests import OPTIONS, ModelRequest, Option, ToolDefinition
from agentls.llm.schemes.openai_chat_messages import to_messages
from agentls.llm.schemes.openai_chat_reader import ChatReader
from agentls.llm.wire.blocks import new_call_id


class OpenAIChat:
    """A `llm.wire.scheme.Scheme`."""

    path = "/chat/completions"
    options: frozenset[Option] = OPTIONS

    def __init__(
        self,
        model: str,
        *,
        provider: str = "openai",
        extra_body: Mapping[str, JsonValue] | None = None,
        replay_reasoning: bool = False,
        max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        least_effort: str = "none",
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        """A format for one model.

        Args:
            model: the name the server knows the model by.
            provider: the name used in messages and on reasoning.
            extra_body: put over the request's own fields; null takes a field out.
            replay_reasoning: send earlier reasoning back, as some models want between tool calls.
            max_tokens_key: OpenAI's own reasoning models know only `max_completion_tokens`.
            least_effort: what stands for no thinking, with models that always think a little.
            new_id: makes ids for calls that came without one.
        """
        self._model = model
        self._provider = provider
        self._extra = dict(extra_body or {})
        self._replay_reasoning = replay_reasoning
        self._max_tokens_key = max_tokens_key
        self._least_effort = least_effort
        self._new_id = new_id

    def build(self, request: ModelRequest) -> dict[str, JsonValue]:
        """See `llm.wire.scheme.Scheme.build`."""
        body: dict[str, JsonValue] = {
            "model": self._model,
            "messages": to_messages(
                request.system,
                request.items,
                provider=self._provider,
                replay_reasoning=self._replay_reasoning,
            ),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.max_tokens is not None:
            body[self._max_tokens_key] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.top_p is not None:
            body["top_p"] = request.top_p
        if request.seed is not None:
            body["seed"] = request.seed
        if request.stop:
            body["stop"] = list(request.stop)
        if request.effort is not None:
            none = request.effort == "none"
            body["reasoning_effort"] = self._least_effort if none else request.effort
        if request.response_schema is not None:
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {
                    "name": "reply",
                    "schema": request.response_schema,
                    "strict": True,
                },
            }
        body |= self._extra
        return {key: value for key, value in body.items() if value is not None}

    def reader(self, _body: Mapping[str, JsonValue], /) -> ChatReader:
        """See `llm.wire.scheme.Scheme.reader`."""
        return ChatReader(self._provider, self._new_id)


def _tool(tool: ToolDefinition) -> dict[str, JsonValue]:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }
