"""A history as the `messages` of `/v1/messages`.

Owns what the API demands of their order and content. Knows nothing of settings, tools or replies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import JsonValue

from agentls.core.messages import (
    ContentBlock,
    DocumentBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.llm.wire import content

Json = dict[str, JsonValue]
Turn = tuple[Literal["user", "assistant"], list[Json]]
"""Who speaks, and the blocks of what is said."""

_THOUGHTS = ("thinking", "redacted_thinking")
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def to_turns(items: Sequence[Item], provider: str) -> list[Turn]:
    """What the sides said, one after the other, with nothing in it that the API refuses.

    Thinking is sent back to the provider that signed it, and no other.

    Raises:
        BadRequest: the format cannot carry a block, or nothing is said at all.
    """
    turns: list[Turn] = []
    for turn in content.in_turns(items):
        blocks = [block for item in turn.items for block in _blocks(item, provider)]
        while turn.role == "assistant" and blocks and blocks[-1]["type"] in _THOUGHTS:
            blocks.pop()  # no reply may end with thinking; this one got no further
        if blocks and turns and turns[-1][0] == turn.role:
            turns[-1][1].extend(blocks)
        elif blocks:
            turns.append((turn.role, blocks))
    if not turns:
        content.refuse(provider, "no conversation in which nothing is said")
    if turns[0][0] == "assistant":
        turns.insert(0, ("user", [{"type": "text", "text": "Go on."}]))
    last = turns[-1][1][-1]
    if turns[-1][0] == "assistant" and last["type"] == "text":
        last["text"] = str(last["text"]).rstrip()
    return turns


def began_thinking(turns: Sequence[Turn]) -> bool:
    """Whether the reply in progress, calls and results included, began with thinking.

    One that another provider began may not: the API then refuses a budget to think further.
    """
    first: Json = {"type": "thinking"}
    for role, blocks in reversed(turns):
        if role == "assistant":
            first = blocks[0]
            continue
        results = sum(block["type"] == "tool_result" for block in blocks)
        # Words behind results may begin a new reply: then that one has to begin with thinking too.
        if not results or (results < len(blocks) and first["type"] not in _THOUGHTS):
            break
    return first["type"] in _THOUGHTS


def _blocks(item: Item, provider: str) -> Iterator[Json]:
    match item:
        case Reasoning(text=text, signature=str(signature)) if signature:
            if item.provider == provider:
                yield {"type": "thinking", "thinking": text, "signature": signature}
        case Reasoning(encrypted=str(data)) if data and item.provider == provider:
            yield {"type": "redacted_thinking", "data": data}
        case ToolCall(arguments=given):
            call_id, name = content.plain_call_id(item.call_id), content.tool_name(item.name)
            yield {"type": "tool_use", "id": call_id, "name": name, "input": given}
        case ToolResult(content=said):
            result: Json = {"tool_use_id": content.plain_call_id(item.call_id)}
            failed: Json = {"is_error": True} if item.is_error else {}
            said = said if said.strip() else "(no output)"
            yield {"type": "tool_result", **result, "content": said, **failed}
        case Message(role="user"):
            yield from (_media(b, provider) for b in item.content if not _is_blank(b))
        case Message():
            if (said := content.only_text(item, provider)).strip():
                yield {"type": "text", "text": said}


def _is_blank(block: ContentBlock) -> bool:
    return isinstance(block, TextBlock) and not block.text.strip()


def _media(block: ContentBlock, provider: str) -> Json:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    kind = block.mime_type.partition(";")[0].strip().lower().replace("/jpg", "/jpeg")
    source: Json = {"type": "url", "url": block.url}
    if kind.startswith("text/"):
        said = content.plain_text(block, provider)
        source = {"type": "text", "media_type": "text/plain", "data": said}
    elif kind not in (*_IMAGES, "application/pdf"):
        content.refuse(provider, "only JPEG, PNG, GIF and WebP images, PDF and plain text")
    elif block.data or not block.url:
        data = content.base64_of(block, provider)
        source = {"type": "base64", "media_type": kind, "data": data}
    if kind in _IMAGES:
        return {"type": "image", "source": source}
    name = block.name if isinstance(block, DocumentBlock) else ""
    title: Json = {"title": name} if name else {}
    return {"type": "document", "source": source, **title}
