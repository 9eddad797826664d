"""Builders and recordings of streams of `/v1/messages`, in the shapes that real servers send."""

from __future__ import annotations

import json

from pydantic import JsonValue

Event = dict[str, JsonValue]

STOP: Event = {"type": "message_stop"}
PING: Event = {"type": "ping"}


def start(**usage: JsonValue) -> Event:
    """The first event; 7 input tokens unless told otherwise."""
    counts: Event = {"input_tokens": 7, "output_tokens": 1, **usage}
    message: Event = {
        "id": "msg_01",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counts,
    }
    return {"type": "message_start", "message": message}


def opened(index: int | None, kind: str, **more: JsonValue) -> Event:
    """The start of a block; with None it has no index."""
    return {**_at("content_block_start", index), "content_block": {"type": kind, **more}}


def delta(index: int | None, kind: str, **more: JsonValue) -> Event:
    """A piece of a block."""
    return {**_at("content_block_delta", index), "delta": {"type": f"{kind}_delta", **more}}


def closed(index: int | None) -> Event:
    """The end of a block."""
    return _at("content_block_stop", index)


def ended(reason: str | None, output_tokens: int = 3, **usage: JsonValue) -> Event:
    """Why the reply stops, and what it cost."""
    counts: Event = {"output_tokens": output_tokens, **usage}
    said: Event = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": said, "usage": counts}


def error(kind: str, message: str) -> Event:
    """An error, inside a stream or as a body."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def words(index: int | None, *pieces: str) -> list[Event]:
    """A whole block of text."""
    deltas = [delta(index, "text", text=piece) for piece in pieces]
    return [opened(index, "text", text=""), *deltas, closed(index)]


def thoughts(index: int | None, *pieces: str, signature: str = "c2ln") -> list[Event]:
    """A whole block of thinking; an empty signature is none."""
    deltas = [delta(index, "thinking", thinking=piece) for piece in pieces]
    signed = [delta(index, "signature", signature=signature)] if signature else []
    block = opened(index, "thinking", thinking="", signature="")
    return [block, *deltas, *signed, closed(index)]


def use(index: int | None, call_id: str, name: str, *pieces: str) -> list[Event]:
    """A whole call, its arguments in pieces."""
    deltas = [delta(index, "input_json", partial_json=piece) for piece in pieces]
    return [opened(index, "tool_use", id=call_id, name=name, input={}), *deltas, closed(index)]


def sse(*events: Event) -> bytes:
    """Events as a stream."""
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events
    )


def whole(*blocks: Event, reason: str | None = "end_turn") -> Event:
    """A reply that was not streamed."""
    message = start(output_tokens=3)["message"]
    assert isinstance(message, dict)
    return {**message, "content": list(blocks), "stop_reason": reason}


def _at(kind: str, index: int | None) -> Event:
    return {"type": kind} if index is None else {"type": kind, "index": index}


def _llama_cpp(*frames: tuple[str, str]) -> bytes:
    return b"".join(
        f'event: {kind}\ndata: {{"type":"{kind}"{rest}}}\n\n'.encode() for kind, rest in frames
    )


# Recorded from llama.cpp's server (xllamacpp 2026.10), names and text shortened.
_LLAMA_CPP_TEXT = _llama_cpp(
    (
        "message_start",
        ',"message":{"id":"chatcmpl-z","type":"message","role":"assistant","content":[],'
        '"model":"m.gguf","stop_reason":null,"stop_sequence":null,'
        '"usage":{"cache_read_input_tokens":19,"input_tokens":1,"output_tokens":0}}',
    ),
    ("content_block_start", ',"index":0,"content_block":{"type":"text","text":""}'),
    ("content_block_delta", ',"index":0,"delta":{"type":"text_delta","text":"Hello"}'),
    ("content_block_delta", ',"index":0,"delta":{"type":"text_delta","text":"!"}'),
    ("content_block_stop", ',"index":0'),
    (
        "message_delta",
        ',"delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":6}',
    ),
    ("message_stop", ""),
)
_LLAMA_CPP_CALL = _llama_cpp(
    (
        "message_start",
        ',"message":{"id":"chatcmpl-y","type":"message","role":"assistant","content":[],'
        '"model":"m.gguf","stop_reason":null,"stop_sequence":null,'
        '"usage":{"cache_read_input_tokens":0,"input_tokens":154,"output_tokens":0}}',
    ),
    (
        "content_block_start",
        ',"index":0,"content_block":{"type":"tool_use","id":"8ehmnFsRfeCH2WKq","name":"glob"}',
    ),
    *(
        (
            "content_block_delta",
            f',"index":0,"delta":{{"type":"input_json_delta","partial_json":{json.dumps(piece)}}}',
        )
        for piece in ("{", '"', "pattern", '":', ' "*.', "py", '"}')
    ),
    ("content_block_stop", ',"index":0'),
    (
        "message_delta",
        ',"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":20}',
    ),
    ("message_stop", ""),
)

RECORDED: dict[str, bytes] = {
    "text": sse(start(), PING, *words(0, "Grüße ", "👋"), ended("end_turn"), STOP),
    "llama.cpp text": _LLAMA_CPP_TEXT,
    "llama.cpp call": _LLAMA_CPP_CALL,
    "thinking, text and two calls": sse(
        start(cache_creation_input_tokens=100, cache_read_input_tokens=900),
        *thoughts(0, "Let me ", "think.", signature="EqQBCgIYAhIM/+=="),
        opened(1, "redacted_thinking", data="EmwKAhgBEgy3"),
        closed(1),
        *words(2, "I will look."),
        *use(3, "toolu_a", "read_file", "", '{"pa', 'th": "ü😀"}'),
        PING,
        *use(4, "toolu_b", "glob", '{"pattern": "*.py"}'),
        ended("tool_use", 40, output_tokens_details={"thinking_tokens": 12}),
        STOP,
    ),
    "thinking that is not shown": sse(
        start(), *thoughts(0, signature="c2VjcmV0"), *words(1, "a"), ended("end_turn"), STOP
    ),
    "tools of the server": sse(
        start(),
        *words(0, "I will search. "),
        opened(1, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        delta(1, "input_json", partial_json='{"query": "x"}'),
        closed(1),
        opened(2, "web_search_tool_result", tool_use_id="srvtoolu_1", content=[]),
        closed(2),
        opened(3, "text", text="", citations=[]),
        delta(3, "citations", citation={"type": "web_search_result_location", "url": "u"}),
        delta(3, "text", text="Found."),
        closed(3),
        ended("end_turn", server_tool_use={"web_search_requests": 1}),
        STOP,
    ),
    "raw utf-8, crlf, comments": (
        "\ufeff: hello\r\n\r\nevent: content_block_start\r\n"
        'data:{"type":"content_block_start","index":0,\r\n'
        'data: "content_block":{"type":"text","text":"naïve 日本\u2028\x85\\f 😀"}}\r\n\r\n'
        'data: {"type": "ping"}\r\n\r\n: ping\r\n\r\n'
        'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\r\n\r\n'
        'data: {"type":"message_stop"}\r\n\r\n'
    ).encode(),
    "halves of a character": sse(
        start(), *words(0, "a\ud83d", "\ude00b\ud83d"), ended("end_turn"), STOP
    ),
    "no end mark, no last line end": sse(start(), *words(0, "a"), ended("end_turn")).rstrip(),
    "token limit inside a call": sse(
        start(), *use(0, "toolu_a", "write_file", '{"path": "a'), ended("max_tokens"), STOP
    ),
    "cut inside a call": sse(start(), *words(0, "I will"), *use(1, "t", "f", '{"a": 1}')),
    "malformed after text": sse(start(), *words(0, "a"))
    + b"event: content_block_delta\ndata: {oops}\n\n"
    + sse(ended("end_turn"), STOP),
    "error inside": sse(start(), *words(0, "a"), error("overloaded_error", "Overloaded")),
    "not streamed": json.dumps(
        whole(
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
            reason="tool_use",
        )
    ).encode(),
    "error document": json.dumps(error("invalid_request_error", "nope")).encode(),
    "pings only": sse(PING, PING),
    "nothing": b"",
}
