"""Replies in the wire format of `/chat/completions`."""

from __future__ import annotations

import json

from agentls.llm.schemes.openai_chat import OpenAIChat
from support.openai_streams import call, calls, chunk, sse, usage_chunk
from support.wires.wire import Call, Wire

_ROLE = chunk({"role": "assistant", "content": ""})


def _frames(body: bytes) -> list[bytes]:
    parts = body.split(b"\n\n")
    return [part + b"\n\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _said(*pieces: str) -> bytes:
    words = (chunk({"content": piece}) for piece in pieces)
    return sse(_ROLE, *words, chunk({}, "stop"), usage_chunk())


def _called(*made: Call) -> bytes:
    chunks = []
    for index, (call_id, name, arguments) in enumerate(made):
        raw = json.dumps(arguments, ensure_ascii=False)
        third = max(len(raw) // 3, 1)
        pieces = (raw[:third], raw[third : 2 * third], raw[2 * third :])
        opening = {**call("", index=index, call_id=call_id, name=name), "type": "function"}
        chunks += [calls(opening), *(calls(call(piece, index=index)) for piece in pieces)]
    return sse(_ROLE, *chunks, chunk({}, "tool_calls"), usage_chunk())


def _thought(thinking: str, text: str) -> bytes:
    return sse(
        _ROLE,
        chunk({"content": None, "reasoning_content": thinking}),
        chunk({"content": text}),
        chunk({}, "stop"),
        usage_chunk(),
    )


def _ended(text: str, finish: str) -> bytes:
    return sse(_ROLE, chunk({"content": text}), chunk({}, finish), usage_chunk())


def _cut_call(name: str, beginning: str) -> bytes:
    opening = calls(call("", call_id="call_1", name=name))
    return sse(_ROLE, opening, calls(call(beginning)), chunk({}, "length"), usage_chunk())


WIRE = Wire(
    name="openai_chat",
    scheme=lambda: OpenAIChat("m", provider="fake"),
    content_type="text/event-stream",
    frames=_frames,
    said=_said,
    called=_called,
    thought=_thought,
    cut=lambda text: _ended(text, "length"),
    cut_call=_cut_call,
    refused=lambda text: _ended(text, "content_filter"),
    error=lambda message: sse(
        {"error": {"message": message, "type": "overloaded_error"}}, done=False
    ),
    ping=b": ping\n\n",
)
