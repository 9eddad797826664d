"""Every wire format, for tests that ask the same of all of them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable

from support.openai_streams import call, calls, chunk, sse, usage_chunk
from support.wires import anthropic, gemini, ollama, openai_chat, openai_responses
from support.wires.wire import Wire

WIRES: tuple[Wire, ...] = (
    anthropic.WIRE,
    gemini.WIRE,
    ollama.WIRE,
    openai_chat.WIRE,
    openai_responses.WIRE,
)

_RECORDINGS = {
    "anthropic": "anthropic_streams",
    "gemini": "gemini_streams",
    "ollama": "ollama_streams",
    "openai_chat": "openai_streams",
    "openai_responses": "responses_streams",
}


def recorded(wire: Wire) -> dict[str, bytes]:
    """Replies of the format that were recorded, or written after the vendor's documentation."""
    streams: dict[str, bytes] = importlib.import_module(
        f"support.{_RECORDINGS[wire.name]}"
    ).RECORDED
    return streams


def _chat(name: str, raw: str) -> bytes:
    opening = calls(call("", call_id="call_1", name=name))
    return sse(opening, calls(call(raw)), chunk({}, "tool_calls"), usage_chunk())


def _sse(*events: dict[str, object]) -> bytes:
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


def _anthropic(name: str, raw: str) -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 7, "output_tokens": 1}
    block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": raw}
    return _sse(
        {"type": "message_start", "message": {**message, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 3},
        },
        {"type": "message_stop"},
    )


def _responses(name: str, raw: str) -> bytes:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name}
    begun = {**item, "arguments": "", "status": "in_progress"}
    done = {**item, "arguments": raw, "status": "completed"}
    response = {"id": "resp_1", "object": "response", "model": "m"}
    place = {"item_id": "fc_1", "output_index": 0}
    usage = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}
    whole = {**response, "status": "completed", "output": [done], "usage": usage}
    events: list[dict[str, object]] = [
        {
            "type": "response.created",
            "response": {**response, "status": "in_progress", "output": []},
        },
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        {"type": "response.function_call_arguments.delta", **place, "delta": raw},
        {"type": "response.function_call_arguments.done", **place, "arguments": raw},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": whole},
    ]
    return _sse(*({**event, "sequence_number": n} for n, event in enumerate(events)))


RAW_CALLS: dict[str, Callable[[str, str], bytes]] = {
    "anthropic": _anthropic,
    "openai_chat": _chat,
    "openai_responses": _responses,
}
"""Replies of one call by its name and the text of its arguments, in formats that stream text."""
