"""A history as the `messages` of `/chat/completions`.

Owns the order that servers insist on: all calls of a reply in one assistant message, their results
right behind it. Knows nothing of sampling, tools or HTTP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from pydantic import JsonValue

from agentls.core.errors import BadRequest
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

Object = dict[str, JsonValue]

_UNNAMEABLE = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_NAME_CHARS = 64
"""What OpenAI takes as the name of a function."""

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
    rules = [system] if system else []
    at = 0
    while at < len(items) and isinstance(first := items[at], Message) and first.role == "system":
        rules.append(first.text)
        at += 1
    # Templates of several local models allow one system message, at the top.
    messages: list[JsonValue] = []
    if rules:
        messages.append({"role": "system", "content": "\n\n".join(rules)})
    reply = _Reply()
    for item in items[at:]:
        match item:
            case Message(role="assistant"):
                if text := _only_text(item, provider):
                    reply.texts.append(text)
            case ToolCall():
                reply.calls.append(_call(item))
            case Reasoning():
                if replay_reasoning and item.provider == provider and item.text:
                    reply.reasoning.append(item.text)
            case Message() | ToolResult():
                messages += reply.to_json()
                reply = _Reply()
                messages.append(_said(item, provider))
    return messages + reply.to_json()


def _said(item: Message | ToolResult, provider: str) -> Object:
    if isinstance(item, ToolResult):
        return {"role": "tool", "tool_call_id": item.call_id, "content": item.content}
    if item.role == "system":
        return {"role": "system", "content": _only_text(item, provider)}
    if all(isinstance(block, TextBlock) for block in item.content):
        return {"role": "user", "content": item.text}
    return {"role": "user", "content": [_part(block, provider) for block in item.content]}


def _only_text(message: Message, provider: str) -> str:
    if not all(isinstance(block, TextBlock) for block in message.content):
        _refuse(provider, f"only text from the {message.role}")
    return message.text


def _call(call: ToolCall) -> Object:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    # A name that a model made up is refused by servers, and with it the rest of the conversation.
    name = _UNNAMEABLE.sub("_", call.name)[:_MAX_NAME_CHARS]
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": name or "_", "arguments": arguments},
    }


def _part(block: ContentBlock, provider: str) -> Object:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            url = block.url or _data_url(block, provider)
            return {"type": "image_url", "image_url": {"url": url}}
        case AudioBlock():
            if block.data is None:
                _refuse(provider, "sounds only inline, not by their address")
            kind = block.mime_type.partition(";")[0].rpartition("/")[2]
            audio: Object = {"data": block.data, "format": _AUDIO_FORMATS.get(kind, kind)}
            return {"type": "input_audio", "input_audio": audio}
        case DocumentBlock():
            if block.data is None:
                _refuse(provider, "documents only inline, not by their address")
            file: Object = {
                "filename": block.name or "document",
                "file_data": _data_url(block, provider),
            }
            return {"type": "file", "file": file}


def _data_url(block: ImageBlock | DocumentBlock, provider: str) -> str:
    if block.data is None:
        _refuse(provider, "no content that is empty")
    return f"data:{block.mime_type};base64,{block.data}"


def _refuse(provider: str, takes: str) -> NoReturn:
    raise BadRequest(f"{provider} takes {takes}.", provider=provider)
