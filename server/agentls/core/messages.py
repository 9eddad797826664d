"""Items of a conversation and the content blocks inside them.

Owns the shapes every layer shares. Knows nothing of providers, editors or files: a scheme turns
items into a provider's JSON, `lsp` turns them into ACP's.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agentls.core.nesting import deeper_than

_MAX_NESTING = 100
"""Arguments nested more deeply fit no tool; from some 250 on nothing could hold or write them."""


class Frozen(BaseModel):
    """Immutable data with no unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TextBlock(Frozen):
    """Plain text."""

    type: Literal["text"] = "text"
    text: str


class _Media(Frozen):
    """Binary content, either inline (`data`, base64) or by reference (`url`)."""

    mime_type: str
    data: str | None = None
    url: str | None = None


class ImageBlock(_Media):
    """An image."""

    type: Literal["image"] = "image"


class AudioBlock(_Media):
    """A sound."""

    type: Literal["audio"] = "audio"


class DocumentBlock(_Media):
    """A document such as a PDF."""

    type: Literal["document"] = "document"
    name: str = ""


ContentBlock = Annotated[
    TextBlock | ImageBlock | AudioBlock | DocumentBlock, Field(discriminator="type")
]


class Message(Frozen):
    """What a person, the model or the system said.

    `ephemeral` marks text that serves one turn only and is taken out of the history afterwards.
    """

    kind: Literal["message"] = "message"
    role: Literal["system", "user", "assistant"]
    content: tuple[ContentBlock, ...]
    ephemeral: bool = False

    @property
    def text(self) -> str:
        """All text blocks, joined without a separator."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @classmethod
    def of(cls, role: Literal["system", "user", "assistant"], text: str) -> Message:
        """A message holding one text block."""
        return cls(role=role, content=(TextBlock(text=text),))


class ToolCall(Frozen):
    """A call the model asked for.

    `arguments` is always a JSON object, so that a history holding the call can be replayed to any
    provider. When the model wrote something else, `arguments` is empty and `invalid` keeps the raw
    text: the tool node answers such a call with an error the model can repair. `signature` is what
    a provider signed the call with, to be sent back to that provider as it came.
    """

    kind: Literal["tool_call"] = "tool_call"
    call_id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    invalid: str | None = None
    signature: str | None = None

    @classmethod
    def parse(cls, call_id: str, name: str, raw: str, *, signature: str | None = None) -> ToolCall:
        """Build a call from the argument text a model streamed; empty text means no arguments."""
        call = cls(call_id=call_id, name=name, signature=signature)
        if not raw.strip():
            return call
        try:
            value = json.loads(raw)
            # NaN and lone surrogates are no JSON that anyone else would take.
            json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            return call.model_copy(update={"invalid": raw})
        if not isinstance(value, dict) or deeper_than(value, _MAX_NESTING):
            return call.model_copy(update={"invalid": raw})
        return call.model_copy(update={"arguments": value})


class ToolResult(Frozen):
    """The one answer to a `ToolCall`.

    `content` is what the model reads now; `summary` (one line) is what later requests may shrink it
    to. `diff` holds what an edit did, for the editor to show; it is never sent to a model.
    """

    kind: Literal["tool_result"] = "tool_result"
    call_id: str
    name: str
    content: str
    summary: str = ""
    is_error: bool = False
    diff: tuple[FileDiff, ...] = ()


class FileDiff(Frozen):
    """A file before and after an edit; `old_text` is None for a new file."""

    path: str
    old_text: str | None
    new_text: str


class Reasoning(Frozen):
    """The model's thinking, replayed verbatim and in order to the provider that wrote it.

    `signature` vouches for `text`; `encrypted` is thinking that only the provider can read;
    `item_id` is its own name for the item. `provider` says whose all of this is.
    """

    kind: Literal["reasoning"] = "reasoning"
    item_id: str = ""
    text: str = ""
    signature: str | None = None
    encrypted: str | None = None
    provider: str = ""


Item = Annotated[Message | ToolCall | ToolResult | Reasoning, Field(discriminator="kind")]
