"""Parts of requests that look alike in every wire format.

Owns data URLs, names of tools that servers accept, and how a history falls into turns. Knows no
provider's field names.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NoReturn
from urllib.parse import unquote_to_bytes

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

_UNNAMEABLE = re.compile(r"[^a-zA-Z0-9_-]")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_DATA_URL = re.compile(
    r"data:(?P<kind>[^;,]*)(;(?!base64,)[^;,]*)*(?P<base64>;base64)?,", re.IGNORECASE
)
_MAX_NAME_CHARS = 64
"""What OpenAI and Gemini take as the name of a function; Anthropic takes twice as much."""


def tool_name(name: str) -> str:
    """A name that servers take: one that a model made up would spoil the whole conversation."""
    return _UNNAMEABLE.sub("_", name)[:_MAX_NAME_CHARS] or "_"


def plain_call_id(made: str) -> str:
    """An id of letters, digits, - and _ alone; some providers put dots and colons into theirs."""
    return made if _CALL_ID.fullmatch(made) else _stand_in(made)


def short_call_id(made: str, max_chars: int) -> str:
    """An id of no more than so many characters, which another provider's may exceed."""
    return made if len(made) <= max_chars else _stand_in(made)


def _stand_in(made: str) -> str:
    """Always the same one for the same id: a call and its result have to match."""
    return f"call_{hashlib.sha256(made.encode('utf-8', 'replace')).hexdigest()[:32]}"


def only_text(message: Message, provider: str) -> str:
    """The text of a message that can hold nothing else.

    Raises:
        BadRequest: it does.
    """
    if not all(isinstance(block, TextBlock) for block in message.content):
        refuse(provider, f"only text from the {message.role}")
    return message.text


def base64_of(block: ImageBlock | AudioBlock | DocumentBlock, provider: str) -> str:
    """Inline content.

    Raises:
        BadRequest: it has only an address, or nothing.
    """
    if block.data is None:
        what = "content that is empty" if block.url is None else f"{block.type}s by their address"
        refuse(provider, f"no {what}")
    return block.data


def plain_text(block: ImageBlock | AudioBlock | DocumentBlock, provider: str) -> str:
    """What inline content says; raises as `base64_of`, and for what is no UTF-8."""
    try:
        return base64.b64decode(base64_of(block, provider)).decode("utf-8-sig")
    except ValueError:
        refuse(provider, "text only as UTF-8")


def with_media_inline(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items, with content that is inline in `data` and nowhere else.

    It may have come as a `data:` URL, which several formats do not take as an address.
    """
    return tuple(
        item.model_copy(update={"content": tuple(map(_inline, item.content))})
        if isinstance(item, Message) and not all(isinstance(b, TextBlock) for b in item.content)
        else item
        for item in items
    )


def _inline(block: ContentBlock) -> ContentBlock:
    if isinstance(block, TextBlock):
        return block
    if (found := _DATA_URL.match(block.data or block.url or "")) is None:
        return block.model_copy(update={"url": None}) if block.data else block
    content = found.string[found.end() :]
    if not found["base64"]:
        content = base64.b64encode(unquote_to_bytes(content)).decode()
    kind = found["kind"] or block.mime_type
    return block.model_copy(update={"data": content, "url": None, "mime_type": kind})


def data_url(block: ImageBlock | DocumentBlock, provider: str) -> str:
    """Inline content as a `data:` URL; raises as `base64_of`."""
    return f"data:{block.mime_type};base64,{base64_of(block, provider)}"


def refuse(provider: str, takes: str) -> NoReturn:
    """Refuse what a format cannot carry; `takes` ends the sentence.

    Raises:
        BadRequest: always.
    """
    raise BadRequest(f"{provider} takes {takes}.", provider=provider)


@dataclass(slots=True)
class HistoryTurn:
    """What one side said before the other did. Results of calls count as said by the user."""

    role: Literal["user", "assistant"]
    items: list[Item] = field(default_factory=list)


def leading_rules(system: str, items: Sequence[Item]) -> tuple[str, Sequence[Item]]:
    """The system prompt with the system messages a history begins with, and the rest of it."""
    rules = [system] if system else []
    at = 0
    while at < len(items) and isinstance(first := items[at], Message) and first.role == "system":
        rules.append(first.text)
        at += 1
    return "\n\n".join(rules), items[at:]


def in_turns(items: Sequence[Item]) -> Iterator[HistoryTurn]:
    """A history whose sides alternate, as several formats demand.

    Results come first in their turn: they have to stand right behind their calls. System messages
    in the middle count as said by the user.
    """
    turn: HistoryTurn | None = None
    for item in items:
        is_reply = isinstance(item, ToolCall | Reasoning) or (
            isinstance(item, Message) and item.role == "assistant"
        )
        role: Literal["user", "assistant"] = "assistant" if is_reply else "user"
        if turn is None or turn.role != role:
            if turn is not None:
                yield turn
            turn = HistoryTurn(role)
        if isinstance(item, ToolResult):
            results = sum(isinstance(each, ToolResult) for each in turn.items)
            turn.items.insert(results, item)
        else:
            turn.items.append(item)
    if turn is not None:
        yield turn
