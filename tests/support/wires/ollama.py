"""Replies in the wire format of Ollama's `/api/chat`."""

from __future__ import annotations

from agentls.llm.schemes.ollama import Ollama
from support.ollama_streams import call, calls, delta, done, ndjson
from support.wires.wire import Call, Wire


def _frames(body: bytes) -> list[bytes]:
    parts = body.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _called(*made: Call) -> bytes:
    return ndjson(
        *(calls(call(name, arguments)) for _, name, arguments in made),  # type: ignore[arg-type]  # JSON
        done(),
    )


WIRE = Wire(
    name="ollama",
    scheme=lambda: Ollama("m", provider="fake", num_ctx=4096),
    content_type="application/x-ndjson",
    frames=_frames,
    said=lambda *pieces: ndjson(*map(delta, pieces), done()),
    called=_called,
    thought=lambda thinking, text: ndjson(delta(thinking=thinking), delta(text), done()),
    cut=lambda text: ndjson(delta(text), done("length")),
    # Whole calls cannot be cut: this is what servers send that pass on another's fragments.
    cut_call=lambda name, beginning: ndjson(calls(call(name, beginning)), done("length")),
    # Local models have no filter; those that run elsewhere may.
    refused=lambda text: ndjson(delta(text), done("content_filter")),
    error=lambda message: ndjson({"error": f"server busy, please try again.  {message}"}),
    ping=ndjson(delta()),
)
