"""The wire format of OpenAI's `/responses`, used without any state on the server.

Owns the request; `openai_responses_reader` has the reply. Nothing is stored, so thinking comes
encrypted and is sent back. See https://platform.openai.com/docs/api-reference/responses.
"""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from agentls.core.messages import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import OPTIONS, ModelRequest, Option, ToolDefinition
from agentls.llm.schemes.openai_responses_reader import ResponsesReader
from agentls.llm.wire.blocks import new_call_id
from agentls.llm.wire.content import (
    data_url,
    in_turns,
    leading_rules,
    only_text,
    refuse,
    short_call_id,
    tool_name,
)

_MAX_ID_CHARS = 64
_THOUGHT_ID = re.compile(r"rs[A-Za-z0-9_-]{1,62}")


class OpenAIResponses:
    """A `llm.wire.scheme.Scheme`."""

    path = "/responses"
    options: frozenset[Option] = OPTIONS - {"seed", "stop"}

    def __init__(
        self,
        model: str,
        *,
        provider: str = "openai",
        extra_body: Mapping[str, JsonValue] | None = None,
        thinks: bool = True,
        least_effort: str = "none",
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        """A format for one model.

        Args:
            model: the name the server knows the model by.
            provider: the name used in messages and on reasoning.
            extra_body: put over the request's own fields; null takes a field out.
            thinks: models that cannot think refuse to be asked for encrypted thinking.
            least_effort: what stands for no thinking, with models that always think a little.
            new_id: makes ids for calls that came without one.
        """
        self._model = model
        self._provider = provider
        self._extra = dict(extra_body or {})
        self._thinks = thinks
        self._least_effort = least_effort
        self._new_id = new_id

    def build(self, request: ModelRequest) -> dict[str, JsonValue]:
        """See `llm.wire.scheme.Scheme.build`."""
        rules, rest = leading_rules(request.system, request.items)
        body: dict[str, JsonValue] = {
            "model": self._model,
            "instructions": rules or None,
            "input": list(_input(rest, self._provider)),
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"] if self._thinks else None,
            "max_output_tokens": request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
        }
        if request.tools:
            body["tools"] = [_tool(tool) for tool in request.tools]
        if request.effort == "none":
            body["reasoning"] = {"effort": self._least_effort}
        elif request.effort is not None:
            body["reasoning"] = {"effort": request.effort, "summary": "auto"}
        if (schema := request.response_schema) is not None:
            body["text"] = {
                "format": {"type": "json_schema", "name": "reply", "schema": schema, "strict": True}
            }
        body |= self._extra
        return {key: value for key, value in body.items() if value is not None}

    def reader(self, _body: Mapping[str, JsonValue], /) -> ResponsesReader:
        """See `llm.wire.scheme.Scheme.reader`."""
        return ResponsesReader(self._provider, self._new_id)


def _tool(tool: ToolDefinition) -> JsonValue:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _input(items: Sequence[Item], provider: str) -> Iterator[JsonValue]:
    """A history as input items; thinking only with what it led to, or the API refuses it all."""
    for turn in in_turns(items):
        thoughts: list[JsonValue] = []
        for item in turn.items:
            if isinstance(item, Reasoning):
                if item.provider == provider and item.encrypted:
                    thoughts.append(_thought(item))
            elif said := _said(item, provider):
                yield from thoughts
                thoughts = []
                yield said


def _thought(item: Reasoning) -> JsonValue:
    summary: list[JsonValue] = [{"type": "summary_text", "text": item.text}] if item.text else []
    thought: dict[str, JsonValue] = {"type": "reasoning", "summary": summary}
    # Ids of other shapes are refused, even those a server made itself; none at all is taken.
    if _THOUGHT_ID.fullmatch(item.item_id):
        thought["id"] = item.item_id
    return thought | {"encrypted_content": item.encrypted}


def _said(item: Item, provider: str) -> JsonValue:
    """One input item; None for a message without content."""
    status: dict[str, JsonValue] = {}
    match item:
        case ToolCall():
            return {
                "type": "function_call",
                "call_id": short_call_id(item.call_id, _MAX_ID_CHARS),
                "name": tool_name(item.name),
                "arguments": json.dumps(item.arguments, ensure_ascii=False),
            }
        case ToolResult():
            call_id = short_call_id(item.call_id, _MAX_ID_CHARS)
            return {"type": "function_call_output", "call_id": call_id, "output": item.content}
        case Message(role="user"):
            blocks = [b for b in item.content if not isinstance(b, TextBlock) or b.text]
            parts = [_part(block, provider) for block in blocks]
        case Message(role="assistant"):
            # Servers that check for all fields are content with these; the id they make up.
            said: dict[str, JsonValue] = {"text": only_text(item, provider), "annotations": []}
            parts = [{"type": "output_text", **said}] if said["text"] else []
            status = {"status": "completed"}
        case Message():
            rule = only_text(item, provider)
            parts = [{"type": "input_text", "text": rule}] if rule else []
        case Reasoning():
            return None
    return {"type": "message", "role": item.role, **status, "content": parts} if parts else None


def _part(block: ContentBlock, provider: str) -> JsonValue:
    match block:
        case TextBlock():
            return {"type": "input_text", "text": block.text}
        case ImageBlock():
            url = block.url or data_url(block, provider)
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        case AudioBlock():
            refuse(provider, "no audio in this format")
    if block.url:
        return {"type": "input_file", "file_url": block.url}
    name = block.name or f"document{mimetypes.guess_extension(block.mime_type) or ''}"
    return {"type": "input_file", "filename": name, "file_data": data_url(block, provider)}
