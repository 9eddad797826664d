"""A history as the `messages` of `/chat/completions`.

Owns the order that servers insist on: all calls of a reply in one assistant message, their results
right behind it. Knows nothing of sampling, tools or HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from agentls.core.messages import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.llm.wire.content import (
    base64_of,
    data_url,
    leading_rules,
    only_text,
    short_call_id,
    tool_name,
)

Object = dict[str, JsonValue]

_MAX_ID_CHARS = 40
_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}


@dataclass(slots=True)
class _Reply:
    """What the model said between two turns of the others: one assistant message."""

    texts: list[str] = field(default_factory=list)
    calls: list[JsonValue] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)

    def to_json(self) -> list[JsonValue]:
        """One message, or none: servers refuse an assistant that says nothing."""
        if not self.texts and not self.calls:
            return []
        message: Object = {"role": "assistant", "content": "\n\n".join(self.texts) or None}
        if self.reasoning:
            message["reasoning_content"] = "\n\n".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = self.calls
        return [message]


def to_messages(
    system: str, items: Sequence[Item], *, provider: str, replay_reasoning: bool
) -> list[JsonValue]:
    """The messages of a request.

    `replay_reasoning` sends this provider's own reasoning back as `reasoning_content`; most
    servers ignore it, some refuse it, some ask for it.

    Raises:
        BadRequest: the format cannot carry a block.
    """
    rules, rest = leading_rules(system, items)
    # Templates of several local models allow one system message, at the top.
    messages: list[JsonValue] = []
    if rules:
        messages.append({"role": "system", "content": rules})
    reply = _Reply()
    for at, item in enumerate(rest, start=1):
        match item:
            case Message(role="assistant"):
                if text := only_text(item, provider):
                    reply.texts.append(text)
            case ToolCall():
                reply.calls.append(_call(item))
            case Reasoning():
                if replay_reasoning and item.provider == provider and item.text:
                    reply.reasoning.append(item.text)
            case Message() if at < len(rest) and _says_nothing(item):
                pass  # several servers refuse it; an empty question is the server's to judge
            case Message() | ToolResult():
                messages += reply.to_json()
                reply = _Reply()
                messages.append(_said(item, provider))
    return messages + reply.to_json()


def _said(item: Message | ToolResult, provider: str) -> Object:
    if isinstance(item, ToolResult):
        return {
            "role": "tool",
            "tool_call_id": short_call_id(item.call_id, _MAX_ID_CHARS),
            "content": item.content,
        }
    if item.role == "system":
        return {"role": "system", "content": only_text(item, provider)}
    if all(isinstance(block, TextBlock) for block in item.content):
        return {"role": "user", "content": item.text}
    parts = [_part(block, provider) for block in item.content if block != TextBlock(text="")]
    return {"role": "user", "content": [*parts]}


def _says_nothing(message: Message) -> bool:
    return all(block == TextBlock(text="") for block in message.content)


def _call(call: ToolCall) -> Object:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {
        "id": short_call_id(call.call_id, _MAX_ID_CHARS),
        "type": "function",
        "function": {"name": tool_name(call.name), "arguments": arguments},
    }


def _part(block: ContentBlock, provider: str) -> Object:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            url = block.url or data_url(block, provider)
            return {"type": "image_url", "image_url": {"url": url}}
        case AudioBlock():
            kind = block.mime_type.partition(";")[0].rpartition("/")[2]
            audio: Object = {
                "data": base64_of(block, provider),
                "format": _AUDIO_FORMATS.get(kind, kind),
            }
            return {"type": "input_audio", "input_audio": audio}
        case DocumentBlock():
            file: Object = {
                "filename": block.name or "document",
                "file_data": data_url(block, provider),
            }
            return {"type": "file", "file": file}
