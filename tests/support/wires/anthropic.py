"""Replies in the wire format of `/v1/messages`."""

from __future__ import annotations

import json

from agentls.llm.schemes.anthropic import Anthropic
from support.anthropic_streams import (
    PING,
    STOP,
    Event,
    ended,
    error,
    sse,
    start,
    thoughts,
    use,
    words,
)
from support.wires.wire import Call, Wire


def _frames(body: bytes) -> list[bytes]:
    parts = body.split(b"\n\n")
    return [part + b"\n\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _reply(*events: Event, reason: str = "end_turn") -> bytes:
    return sse(start(), *events, ended(reason), STOP)


def _called(*made: Call) -> bytes:
    events: list[Event] = []
    for index, (call_id, name, arguments) in enumerate(made):
        raw = json.dumps(arguments, ensure_ascii=False)
        third = max(len(raw) // 3, 1)
        pieces = (raw[:third], raw[third : 2 * third], raw[2 * third :])
        events += use(index, call_id, name, *pieces)
    return _reply(*events, reason="tool_use")


WIRE = Wire(
    name="anthropic",
    scheme=lambda: Anthropic("m", provider="fake"),
    content_type="text/event-stream",
    frames=_frames,
    said=lambda *pieces: _reply(*words(0, *pieces)),
    called=_called,
    thought=lambda thinking, text: _reply(*thoughts(0, thinking), *words(1, text)),
    cut=lambda text: _reply(*words(0, text), reason="max_tokens"),
    cut_call=lambda name, beginning: _reply(
        *use(0, "toolu_1", name, beginning), reason="max_tokens"
    ),
    refused=lambda text: _reply(*words(0, text), reason="refusal"),
    error=lambda message: sse(error("overloaded_error", message)),
    ping=sse(PING),
)
