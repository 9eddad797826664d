"""Replies in the wire format of `/responses`."""

from __future__ import annotations

import json

from agentls.llm.schemes.openai_responses import OpenAIResponses
from support.responses_streams import Object, call, ended, say, sse, think
from support.wires.wire import Call, Wire


def _frames(body: bytes) -> list[bytes]:
    parts = body.split(b"\n\n")
    return [part + b"\n\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _called(*made: Call) -> bytes:
    events: list[Object] = []
    for index, (call_id, name, arguments) in enumerate(made):
        raw = json.dumps(arguments, ensure_ascii=False)
        third = max(len(raw) // 3, 1)
        pieces = (raw[:third], raw[third : 2 * third], raw[2 * third :])
        events += call(f"fc_{index}", index, name, *pieces, call_id=call_id)
    return sse(*ended(events))


def _thought(thinking: str, text: str) -> bytes:
    return sse(*ended([*think("rs_1", 0, thinking, encrypted="sealed"), *say("msg_1", 1, text)]))


def _stopped(events: list[Object], reason: str) -> bytes:
    return sse(*ended(events, "incomplete", incomplete_details={"reason": reason}))


WIRE = Wire(
    name="openai_responses",
    scheme=lambda: OpenAIResponses("m", provider="fake"),
    content_type="text/event-stream",
    frames=_frames,
    said=lambda *pieces: sse(*ended(say("msg_1", 0, *pieces))),
    called=_called,
    thought=_thought,
    cut=lambda text: _stopped(say("msg_1", 0, text), "max_output_tokens"),
    cut_call=lambda name, beginning: _stopped(
        call("fc_1", 0, name, beginning)[:2], "max_output_tokens"
    ),
    refused=lambda text: _stopped(say("msg_1", 0, text), "content_filter"),
    error=lambda message: sse(
        {"type": "error", "code": "overloaded_error", "message": message, "param": None}
    ),
    ping=b": ping\n\n",
)
