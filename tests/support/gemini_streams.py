"""Builders and recordings of Gemini's streams, and a way to read them with any slicing."""

from __future__ import annotations

import json

from pydantic import JsonValue

from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event
from agentls.core.messages import Item, Reasoning
from agentls.llm.schemes.gemini import GeminiReader
from support import openai_streams
from support.openai_streams import counter

Json = dict[str, JsonValue]
END = "\r\n\r\n"


def text(said: str, *, signature: str | None = None, thought: bool = False) -> Json:
    """A part of prose; empty where it only carries a signature."""
    part: Json = {"text": said}
    if thought:
        part["thought"] = True
    return part if signature is None else {**part, "thoughtSignature": signature}


def call(
    name: str | None,
    args: JsonValue = None,
    *,
    call_id: str | None = None,
    signature: str | None = None,
) -> Json:
    """A part with a call; what is None is left out."""
    function: Json = {"id": call_id, "name": name, "args": args}
    part: Json = {"functionCall": {k: v for k, v in function.items() if v is not None}}
    return part if signature is None else {**part, "thoughtSignature": signature}


def counts(prompt: int = 7, candidates: int = 3, **more: int) -> Json:
    """The usage of a chunk: totals so far."""
    total = prompt + candidates + more.get("thoughtsTokenCount", 0)
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": candidates,
        "totalTokenCount": total,
        **more,
    }


def chunk(*parts: Json, finish: str | None = None, usage: Json | None = None, **more: str) -> Json:
    """A chunk with one candidate; `more` goes into the candidate."""
    candidate: Json = {"index": 0, **more}
    if parts:
        candidate["content"] = {"parts": [*parts], "role": "model"}
    if finish is not None:
        candidate["finishReason"] = finish
    value: Json = {"candidates": [candidate], "modelVersion": "m", "responseId": "r1"}
    return value if usage is None else {**value, "usageMetadata": usage}


def last(*parts: Json, finish: str = "STOP") -> Json:
    """The last chunk of a reply of 7 and 3 tokens."""
    return chunk(*parts, finish=finish, usage=counts())


def sse(*chunks: JsonValue) -> bytes:
    """Chunks as a stream, with the line ends Google sends."""
    return "".join(f"data: {json.dumps(each)}{END}" for each in chunks).encode()


def failure(
    code: int, status: str, message: str, *details: JsonValue, wrapped: bool = True
) -> Json:
    """An error object of Google's."""
    error: Json = {"code": code, "message": message, "status": status}
    if details:
        error["details"] = [*details]
    return {"error": error} if wrapped else error


def read(*slices: bytes) -> tuple[list[Event], tuple[str, str] | None]:
    """Events of a response, and the code and text of the error it ended with, if any."""
    return openai_streams.read(*slices, reader=GeminiReader("fake", counter()))


def opened(index: int, name: str, *pieces: str, call_id: str = "new-1") -> list[Event]:
    """A call that was begun."""
    return [
        BlockStart(index=index, block="tool_call", call_id=call_id, name=name),
        *(BlockDelta(index=index, text=piece) for piece in pieces),
    ]


def sealed(index: int, signature: str) -> list[Event]:
    """A signature alone."""
    item = Reasoning(signature=signature, provider="fake")
    return [BlockStart(index=index, block="thinking"), BlockStop(index=index, item=item)]


def items(events: list[Event]) -> list[Item]:
    """What is complete."""
    return [event.item for event in events if isinstance(event, BlockStop)]


UNAVAILABLE = failure(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")

_FLASH = (
    'data: {"candidates": [{"content": {"parts": [{"text": "**Weighing the question**\\n\\nI\'m '
    'looking at it.\\n\\n\\n","thought": true}],"role": "model"},"index": 0}],"usageMetadata": '
    '{"promptTokenCount": 1031,"totalTokenCount": 1098,"cachedContentTokenCount": 1007,'
    '"promptTokensDetails": [{"modality": "TEXT","tokenCount": 1031}],"cacheTokensDetails": '
    '[{"modality": "TEXT","tokenCount": 1007}],"thoughtsTokenCount": 67},"modelVersion": '
    '"gemini-2.5-flash","responseId": "zA"}\r\n\r\n'
    'data: {"candidates": [{"content": {"parts": [{"text": "Grüße"}],"role": "model"},"index": 0}],'
    '"usageMetadata": {"promptTokenCount": 1031,"candidatesTokenCount": 2,"totalTokenCount": 1100,'
    '"cachedContentTokenCount": 1007,"thoughtsTokenCount": 67},"modelVersion": "gemini-2.5-flash"'
    ',"responseId": "zA"}\r\n\r\n'
    'data: {"candidates": [{"content": {"parts": [{"text": " 👋 aus\u2028dem Netz."}],"role": '
    '"model"},"finishReason": "STOP","index": 0}],"usageMetadata": {"promptTokenCount": 1031,'
    '"candidatesTokenCount": 9,"totalTokenCount": 1107,"cachedContentTokenCount": 1007,'
    '"thoughtsTokenCount": 67},"modelVersion": "gemini-2.5-flash","responseId": "zA"}\r\n\r\n'
).encode()

RECORDED: dict[str, bytes] = {
    "2.5 thinking and text": _FLASH,
    "3 parallel calls": sse(
        chunk(text("Looking at both.", thought=True), usage={"promptTokenCount": 7}),
        chunk(
            call("read_file", {"path": "ü😀.py"}, call_id="8f2b1", signature="CpYB+sig/A=="),
            call("glob", {"pattern": "*.py"}, call_id="8f2b2"),
        ),
        chunk(call("read_file", {}, call_id="8f2b1")),
        last(text("")),
    ),
    "3 signed text": sse(
        chunk(text("Hm. ", thought=True)),
        chunk(text("Done", thought=True, signature="T1")),
        chunk(text("All is ")),
        chunk(text("well.")),
        last(text("", signature="S1")),
    ),
    "signature on the text": sse(chunk(text("a")), last(text("b", signature="S2"))),
    "calls without ids": sse(
        chunk(text("I will."), call("f", {"a": [1, None, {"b": "ü"}]})), last(call("f", {"a": 2}))
    ),
    "usage behind the end": sse(
        chunk(text("hi"), finish="STOP", usage=counts(5, 1)),
        {"usageMetadata": counts(5, 2, cachedContentTokenCount=4), "modelVersion": "m"},
    ),
    "max tokens": sse(chunk(text("I wi")), chunk(call("f", {"a": 1})), last(finish="MAX_TOKENS")),
    "safety": sse(chunk(text("Well, ")), last(finish="SAFETY")),
    "blocked prompt": sse(
        {
            "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
            "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
        }
    ),
    "halves of a character": sse(
        chunk(text("a\ud83d")), chunk(text("\ude00b\ud83d")), last(text(""))
    ),
    "lf, comments, lone cr": b': x\n\ndata:{"candidates":[{"content":\ndata: {"parts":[{"text":'
    b'"a"}]}}]}\n\ndata: {"candidates":[{"finishReason":"STOP"}]}\r\r',
    "error inside": sse(chunk(text("a")), UNAVAILABLE),
    "bare error inside": sse(chunk(text("a")), chunk(call("f", {})))
    + json.dumps(UNAVAILABLE, indent=2).encode(),
    "cut": sse(chunk(text("I will")), chunk(call("f", {"a": 1}))),
    "malformed call": sse(chunk(text("Now.")), last(finish="MALFORMED_FUNCTION_CALL")),
    "malformed chunk": sse(chunk(text("a"))) + b"data: {oops}\r\n\r\n" + sse(last()),
    "array": json.dumps(
        [chunk(text("hel")), chunk(text("lo"), call("f", {"a": 1})), last()], indent=1
    ).encode(),
    "one document": json.dumps(last(text("hello"))).encode(),
    "error in an array": json.dumps([UNAVAILABLE], indent=2).encode(),
    "error document": json.dumps(UNAVAILABLE).encode(),
    "nothing": b"",
}
