"""Builders and recordings of chat-completion streams, and a way to read them with any slicing."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

from pydantic import JsonValue

from agentls.core.errors import ModelError
from agentls.core.events import Event
from agentls.llm.schemes.openai_chat_reader import ChatReader
from agentls.llm.wire.scheme import Reader

DONE = b"data: [DONE]\n\n"


def chunk(
    delta: dict[str, JsonValue] | None = None,
    finish: str | None = None,
    **extra: JsonValue,
) -> dict[str, JsonValue]:
    """One chunk with one choice."""
    choice: dict[str, JsonValue] = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake",
        "choices": [choice],
        **extra,
    }


def usage_chunk(prompt: int = 7, completion: int = 3, **details: JsonValue) -> dict[str, JsonValue]:
    """The last chunk of OpenAI's streams."""
    usage: dict[str, JsonValue] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **details,
    }
    return {**chunk(), "choices": [], "usage": usage}


def call(
    arguments: JsonValue = None,
    *,
    index: int | None = 0,
    call_id: str | None = None,
    name: str | None = None,
) -> dict[str, JsonValue]:
    """One entry of `delta.tool_calls`; what is None is left out."""
    function: dict[str, JsonValue] = {"name": name, "arguments": arguments}
    function = {key: value for key, value in function.items() if value is not None}
    entry: dict[str, JsonValue] = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in entry.items() if value is not None}


def calls(*entries: JsonValue) -> dict[str, JsonValue]:
    """A chunk with pieces of tool calls."""
    return chunk({"tool_calls": list(entries)})


def sse(*chunks: JsonValue, done: bool = True) -> bytes:
    """Chunks as a stream."""
    frames = b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in chunks)
    return frames + (DONE if done else b"")


def counter() -> Callable[[], str]:
    """Ids in order: new-1, new-2, …"""
    numbers = itertools.count(1)
    return lambda: f"new-{next(numbers)}"


def read(
    *slices: bytes, reader: Reader | None = None
) -> tuple[list[Event], tuple[str, str] | None]:
    """Events of a response, and the code and text of the error it ended with, if any."""
    reader = reader or ChatReader("fake", counter())
    events: list[Event] = []
    try:
        for piece in slices:
            for event in reader.feed(piece):
                events.append(event)
        for event in reader.close():
            events.append(event)
    except ModelError as error:
        return events, (error.code, error.message)
    return events, None


def _llama_cpp() -> bytes:
    # Recorded from llama.cpp's server (xllamacpp 2026.10), names shortened.
    def frame(choices: str, rest: str = "") -> bytes:
        return (
            f'data: {{"choices":[{choices}],"created":1796059738,"id":"chatcmpl-z",'
            f'"model":"m.gguf","system_fingerprint":"b0-unknown",'
            f'"object":"chat.completion.chunk"{rest}}}\n\n'
        ).encode()

    return b"".join(
        [
            frame('{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}'),
            frame('{"finish_reason":null,"index":0,"delta":{"content":"H"}}'),
            frame('{"finish_reason":null,"index":0,"delta":{"content":"mm"}}'),
            frame('{"finish_reason":"length","index":0,"delta":{}}'),
            frame(
                "",
                ',"usage":{"completion_tokens":4,"prompt_tokens":32,"total_tokens":36,'
                '"prompt_tokens_details":{"cached_tokens":0}},'
                '"timings":{"cache_n":0,"prompt_n":32,"prompt_ms":251.608}',
            ),
            DONE,
        ]
    )


RECORDED: dict[str, bytes] = {
    "llama.cpp": _llama_cpp(),
    "openai calls": sse(
        chunk({"role": "assistant", "content": None}),
        calls(call("", call_id="call_a", name="read_file")),
        calls(call('{"pa')),
        calls(call('th": "ü😀"}')),
        calls(call("", index=1, call_id="call_b", name="glob")),
        calls(call('{"pattern": "*.py"}', index=1)),
        chunk({}, "tool_calls"),
        usage_chunk(prompt_tokens_details={"cached_tokens": 5}),
    ),
    "deepseek reasoning": b": keep-alive\n\n"
    + sse(
        chunk({"role": "assistant", "content": None, "reasoning_content": "Let me "}),
        chunk({"content": None, "reasoning_content": "think."}),
        chunk({"content": "Grüße 👋", "reasoning_content": None}),
        chunk({"content": ""}, "stop"),
    ),
    "raw utf-8, crlf, comments": (
        "\ufeff: hello\r\n\r\nevent: message\r\n"
        'data:{"choices":[{"index":0,"delta":{"content":"naïve 日本\u2028\x85\\f 😀"}}]}\r\n\r\n'
        ': ping\r\n\r\ndata: {"choices":[{"index":0,\r\ndata: "delta":{},"finish_reason":"stop"}]}'
        "\r\n\r\ndata: [DONE]\r\n\r\n"
    ).encode(),
    "lone cr": b'data: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\r\r:x\r'
    b"data: [DONE]\r\r",
    "halves of a character": sse(
        chunk({"content": "a\ud83d"}), chunk({"content": "\ude00b\ud83d"}), chunk({}, "stop")
    ),
    "no done mark, no last line end": sse(chunk({"content": "a"}, "stop"), done=False).rstrip(),
    "cut inside a call": sse(
        chunk({"content": "I will"}),
        calls(call('{"path": "a', call_id="call_a", name="write_file")),
        done=False,
    ),
    "malformed after text": sse(chunk({"content": "a"}), done=False) + b"data: {oops}\n\n" + DONE,
    "error inside": sse(chunk({"content": "a"}), {"error": {"message": "boom"}}, done=False),
    "not streamed": json.dumps(
        {
            "object": "chat.completion",
            "choices": [
                {
                    "index": 0,
                    "message": {
                        "role": "assistant",
                        "content": "hi",
                        "tool_calls": [
                            {
                                "id": "c1",
                                "type": "function",
                                "function": {"name": "f", "arguments": '{"a": 1}'},
                            }
                        ],
                    },
                    "finish_reason": "tool_calls",
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        }
    ).encode(),
    "error document": b'\n {"error": {"message": "nope", "type": "invalid_request_error"}}',
    "nothing": b"",
}
