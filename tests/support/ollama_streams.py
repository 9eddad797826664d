"""Builders and recordings of `/api/chat` streams, and a way to read them with any slicing."""

from __future__ import annotations

import json

from pydantic import JsonValue

from agentls.core.errors import ModelError
from agentls.core.events import Event
from agentls.llm.schemes.ollama import Ollama
from agentls.llm.wire.scheme import Reader
from support.openai_streams import counter, read

Object = dict[str, JsonValue]

_HEAD: Object = {"model": "m", "created_at": "2026-01-02T03:04:05.678901234Z"}


def delta(content: str = "", *, thinking: str = "", **more: JsonValue) -> Object:
    """A line with a part of the message."""
    message: Object = {"role": "assistant", "content": content}
    if thinking:
        message["thinking"] = thinking
    return {**_HEAD, "message": {**message, **more}, "done": False}


def call(name: str, arguments: JsonValue, **more: JsonValue) -> Object:
    """One entry of `tool_calls`; `more` stands beside the function, as ids do."""
    return {**more, "function": {"name": name, "arguments": arguments}}


def calls(*entries: JsonValue) -> Object:
    """A line with calls."""
    return delta(tool_calls=list(entries))


def done(reason: str | None = "stop", /, **counts: JsonValue) -> Object:
    """The last line; counts of None are left out, as older servers do."""
    last: Object = {
        **_HEAD,
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": reason,
        "total_duration": 5191566416,
        "load_duration": 2154458,
        "prompt_eval_count": 7,
        "prompt_eval_duration": 383809000,
        "eval_count": 3,
        "eval_duration": 4799921000,
        **counts,
    }
    return {key: value for key, value in last.items() if value is not None}


def ndjson(*lines: JsonValue) -> bytes:
    """Lines as a stream."""
    return b"".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for line in lines
    )


def reader(num_ctx: int | None = None) -> Reader:
    """A reader of the provider "fake" that makes ids new-1, new-2, …."""
    body: dict[str, JsonValue] = {} if num_ctx is None else {"options": {"num_ctx": num_ctx}}
    return Ollama("m", provider="fake", num_ctx=num_ctx, new_id=counter()).reader(body)


def heard(*slices: bytes) -> tuple[list[Event], tuple[str, str] | None]:
    """Events of a response, and the code and text of the error it ended with, if any."""
    return read(*slices, reader=reader())


def fault(stream: bytes) -> ModelError:
    """The error a response ends with."""
    made = reader()
    try:
        for _ in (*made.feed(stream), *made.close()):
            pass
    except ModelError as error:
        return error
    raise AssertionError("the reply is whole")


RECORDED: dict[str, bytes] = {
    # In the shape of Ollama's own documentation and server.
    "text": ndjson(delta("Grüße"), delta(" 👋"), delta("\u2028\x85"), done()),
    "thinking, then text": ndjson(
        delta(thinking="Let me "),
        delta(thinking="think."),
        delta("4"),
        done(prompt_eval_cached_count=5),
    ),
    "parallel calls": ndjson(
        delta("I will look."),
        calls(call("read_file", {"path": "ü😀.py", "lines": [1, 2]})),
        calls(call("glob", {"pattern": "*.py"}), call("read_file", {"path": "b.py"})),
        done(),
    ),
    "calls with ids and places": ndjson(
        calls(
            {
                "id": "call_8x0k2jq1",
                "function": {"index": 0, "name": "glob", "arguments": {"pattern": "*"}},
            }
        ),
        calls(
            {
                "id": "call_0p9d7rtz",
                "function": {"index": 1, "name": "bash", "arguments": {"command": "ls"}},
            }
        ),
        done(),
    ),
    "escaped, crlf, blank lines": (
        "\ufeff\r\n"
        + json.dumps(delta("naïve 日本 😀"))
        + "\r\n \r\n"
        + json.dumps(done(prompt_eval_count=None))
        + "\r\n"
    ).encode(),
    "lone cr": ndjson(delta("a"), done()).replace(b"\n", b"\r"),
    "halves of a character": (
        ndjson(delta("a@"), delta("#b@"), done())
        .replace(b"@", b"\\ud83d")
        .replace(b"#", b"\\ude00")
    ),
    "no last line end": ndjson(delta("a"), done()).rstrip(),
    "one line": ndjson({**done(), "message": {"role": "assistant", "content": "not streamed"}}),
    "length inside a call": ndjson(calls(call("write_file", '{"path": "a')), done("length")),
    "cut behind a call": ndjson(delta("I will"), calls(call("glob", {}))),
    "cut within a line": ndjson(delta("a"), delta("b"))[:-20],
    "malformed after text": ndjson(delta("a")) + b"{oops}\n" + ndjson(done()),
    "error inside": ndjson(
        delta("a"), {"error": "an error was encountered while running the model: unexpected EOF"}
    ),
    "error in the last line": ndjson(delta("a"), {**done("error"), "error": "boom"}),
    "error at once": ndjson({"error": "model 'm' not found"}),
    "nothing": b"",
}
