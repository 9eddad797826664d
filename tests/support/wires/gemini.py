"""Replies in the wire format of Gemini."""

from __future__ import annotations

from typing import cast

from pydantic import JsonValue

from agentls.llm.schemes.gemini import Gemini
from support.gemini_streams import END, call, chunk, failure, last, sse, text
from support.wires.wire import Call, Wire


def _frames(body: bytes) -> list[bytes]:
    end = END.encode()
    parts = body.split(end)
    return [part + end for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _called(*made: Call) -> bytes:
    # Calls come whole; a chunk each shows at least that they may come apart.
    chunks = [
        chunk(call(name, cast(JsonValue, arguments), call_id=call_id))
        for call_id, name, arguments in made
    ]
    return sse(*chunks, last(text("")))


def _thought(thinking: str, said: str) -> bytes:
    return sse(
        chunk(text(thinking, thought=True)), chunk(text(said)), last(text("", signature="S"))
    )


WIRE = Wire(
    name="gemini",
    scheme=lambda: Gemini("m", provider="fake"),
    content_type="text/event-stream",
    frames=_frames,
    said=lambda *pieces: sse(*(chunk(text(piece)) for piece in pieces), last(text(""))),
    called=_called,
    thought=_thought,
    cut=lambda said: sse(chunk(text(said)), last(finish="MAX_TOKENS")),
    # What was written of a call is not sent in pieces: it comes as if it were whole.
    cut_call=lambda name, beginning: sse(
        chunk(call(name, {"beginning": beginning})), last(finish="MAX_TOKENS")
    ),
    refused=lambda said: sse(chunk(text(said)), last(finish="SAFETY")),
    error=lambda message: sse(failure(503, "UNAVAILABLE", message)),
    ping=b": ping\r\n\r\n",
)
