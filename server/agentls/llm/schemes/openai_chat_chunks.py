"""Reads the JSON of one chat-completion chunk: untrusted objects in, typed parts out.

Knows the field names of OpenAI and of those who imitate it; keeps no state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agentls.core.events import Usage
from agentls.llm.schemes.openai_chat_calls import Fragment
from agentls.llm.wire.fields import (
    Malformed,
    Object,
    as_json,
    count,
    details,
    object_or_none,
    objects,
    text,
    whole_text,
)
from agentls.llm.wire.halves import without_halves

_MAX_INDEX_DIGITS = 9

Said = Literal["text", "thinking", "refusal"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The one choice asked for. `finish` is empty until the server says why it stopped."""

    delta: Object
    finish: str


def choice_of(chunk: Object, *, first: bool) -> Choice | None:
    """The choice in a chunk; None when it has none, as chunks of usage and metadata do.

    `message` stands in for `delta` when nothing came before (`first`): a whole reply that was not
    streamed. Later it repeats what the deltas said.
    """
    choices = objects(chunk, "choices")
    for choice in choices:
        if len(choices) == 1 or choice.get("index") in (0, None):
            delta = object_or_none(choice, "delta")
            if delta is None and first:
                delta = object_or_none(choice, "message")
            return Choice(delta or {}, text(choice, "finish_reason"))
    return None


def fault_of(chunk: Object) -> object:
    """Why the reply was stopped, where Groq and OpenRouter say it: beside the choice, or in it."""
    told = details(chunk, "x_groq").get("error")
    return told or next((c["error"] for c in objects(chunk, "choices") if c.get("error")), None)


def text_of(delta: Object) -> Iterator[tuple[Said, str]]:
    """Prose of a delta, in the order it is thought and said."""
    # Servers that changed the field's name send both for a while, with the same text.
    thinking = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(thinking, str):
        yield "thinking", thinking
    content = delta.get("content")
    if isinstance(content, list):
        for part in content:
            yield from _part(part)
    else:
        yield "text", text(delta, "content")
    yield "refusal", text(delta, "refusal")


def fragments_of(delta: Object) -> list[Fragment]:
    """Pieces of tool calls of a delta; the older `function_call` counts as one."""
    entries = objects(delta, "tool_calls")
    legacy = object_or_none(delta, "function_call")
    if legacy and not entries:
        entries = [{"index": 0, "function": legacy}]
    return [_fragment(entry) for entry in entries]


def usage_of(chunk: Object) -> Usage | None:
    """Token counts, if the chunk has any; Groq once sent them in a field of its own."""
    usage = chunk.get("usage")
    groq = chunk.get("x_groq")
    if not usage and isinstance(groq, dict):
        usage = groq.get("usage")
    if not isinstance(usage, dict) or not usage:
        return None
    sent = details(usage, "prompt_tokens_details")
    made = details(usage, "completion_tokens_details")
    told = Usage(
        input_tokens=count(usage.get("prompt_tokens")),
        output_tokens=count(usage.get("completion_tokens")),
        cache_read_tokens=count(sent.get("cached_tokens"))
        or count(usage.get("prompt_cache_hit_tokens"))
        or count(usage.get("cached_tokens")),
        cache_creation_tokens=count(sent.get("cache_write_tokens")),
        reasoning_tokens=count(made.get("reasoning_tokens")),
    )
    return None if told == Usage() else told


def _fragment(entry: Object) -> Fragment:
    index = entry.get("index")
    if isinstance(index, str) and index.isdecimal() and len(index) <= _MAX_INDEX_DIGITS:
        index = int(index)
    call_id = entry.get("id")
    function = object_or_none(entry, "function") or {}
    arguments = function.get("arguments")
    whole = arguments is not None and not isinstance(arguments, str)
    return Fragment(
        index=index if isinstance(index, int) else None,
        # No text follows that could bring the other half of a character.
        call_id="" if call_id is None else without_halves(str(call_id)),
        name=whole_text(function, "name"),
        arguments=as_json(arguments, "arguments") if whole else str(arguments or ""),
        whole=whole,
    )


def _part(part: object) -> Iterator[tuple[Said, str]]:
    """A typed part of content, as Mistral sends them; thinking nests parts of its own."""
    if isinstance(part, str):
        yield "text", part
    elif isinstance(part, dict):
        kind: Said = "thinking" if part.get("type") == "thinking" else "text"
        inner = part.get("thinking")
        if isinstance(inner, list):
            for piece in inner:
                for _, said in _part(piece):
                    yield kind, said
        else:
            yield kind, text(part, "thinking") or text(part, "text")
    else:
        raise Malformed("content")
