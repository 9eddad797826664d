"""Chat-completion replies for the fake server, and that server at OpenAI's path."""

from __future__ import annotations

import json
from typing import Self

from pydantic import JsonValue

from support.fake_server import CUT, RESET, STALL, Exchange, FakeServer, Reply, Step, refused
from support.openai_streams import call, calls, chunk, sse, usage_chunk

__all__ = [
    "CUT",
    "RESET",
    "STALL",
    "Exchange",
    "OpenAIServer",
    "Reply",
    "Step",
    "called",
    "refused",
    "said",
    "streamed",
]


class OpenAIServer(FakeServer):
    """`url` is the base URL as the SDK takes it, ending in /v1."""

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        await super().__aenter__()
        self.url += "/v1"
        return self


def streamed(*chunks: JsonValue, done: bool = True) -> Reply:
    """Chunks of a chat completion, each in an HTTP chunk of its own."""
    pieces = [sse(each, done=False) for each in chunks]
    return Reply([*pieces, sse(done=True)] if done else pieces)


def said(text: str) -> Reply:
    """A reply of text, with usage."""
    first, *rest = text.split(" ")
    words = [first, *(f" {word}" for word in rest)]
    return streamed(
        chunk({"role": "assistant", "content": ""}),
        *(chunk({"content": word}) for word in words),
        chunk({}, "stop"),
        usage_chunk(),
    )


def called(name: str, call_id: str = "call_1", **arguments: JsonValue) -> Reply:
    """A reply of one tool call, in fragments."""
    raw = json.dumps(arguments)
    half = len(raw) // 2
    return streamed(
        chunk({"role": "assistant", "content": None}),
        calls({**call("", call_id=call_id, name=name), "type": "function"}),
        calls(call(raw[:half])),
        calls(call(raw[half:])),
        chunk({}, "tool_calls"),
        usage_chunk(),
    )
