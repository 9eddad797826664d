"""Builders and recordings of `/responses` streams."""

from __future__ import annotations

import itertools
import json

from pydantic import JsonValue

from agentls.core.events import Event
from agentls.llm.schemes.openai_responses_reader import ResponsesReader
from support import openai_streams
from support.openai_streams import counter

Object = dict[str, JsonValue]

_TEXT_KEYS = {"output_text": "text", "refusal": "refusal"}


def event(kind: str, **fields: JsonValue) -> Object:
    """One event of the stream; what is None is left out."""
    given = {"type": f"response.{kind}", **fields}
    return {key: value for key, value in given.items() if value is not None}


def response(status: str, *output: JsonValue, **fields: JsonValue) -> Object:
    """A response object as OpenAI sends it, as far as clients look at it."""
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": "fake",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
        **fields,
    }


def usage(sent: int = 7, made: int = 3, *, cached: int = 0, thought: int = 0) -> Object:
    """Token counts."""
    return {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": sent + made,
    }


CREATED: list[Object] = [
    event("created", response=response("in_progress")),
    event("in_progress", response=response("in_progress")),
]


def message(item_id: str, said: str, kind: str = "output_text") -> Object:
    """A whole message of one part."""
    part: Object = {"type": kind, _TEXT_KEYS[kind]: said}
    if kind == "output_text":
        part |= {"annotations": [], "logprobs": []}
    return {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [part] if said else [],
    }


def function_call(item_id: str, call_id: str, name: str, arguments: str) -> Object:
    """A whole call."""
    return {
        "type": "function_call",
        "id": item_id,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def reasoning(item_id: str, *summary: str, encrypted: str | None = None) -> Object:
    """Whole thinking."""
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": [{"type": "summary_text", "text": part} for part in summary],
        "encrypted_content": encrypted,
    }


def added(item: Object, index: int | None) -> Object:
    """The event that begins an item, which is empty by then."""
    empty: Object = {"content": [], "summary": [], "arguments": "", "encrypted_content": None}
    begun = {key: empty.get(key, value) for key, value in item.items()}
    if "status" in begun:
        begun["status"] = "in_progress"
    return event("output_item.added", output_index=index, item=begun)


def done(item: Object, index: int | None) -> Object:
    """The event that ends an item."""
    return event("output_item.done", output_index=index, item=item)


def say(item_id: str, index: int, *pieces: str, kind: str = "output_text") -> list[Object]:
    """All events of a message."""
    place: Object = {"item_id": item_id, "output_index": index, "content_index": 0}
    whole = message(item_id, "".join(pieces), kind)
    key = _TEXT_KEYS[kind]
    extra: Object = {"logprobs": []} if kind == "output_text" else {}
    empty: Object = {"type": kind, key: ""} | ({"annotations": []} if extra else {})
    content = whole["content"]
    assert isinstance(content, list)
    return [
        added(whole, index),
        event("content_part.added", **place, part=empty),
        *(event(f"{kind}.delta", **place, delta=piece, **extra) for piece in pieces),
        event(f"{kind}.done", **place, **{key: "".join(pieces)}, **extra),
        *(event("content_part.done", **place, part=part) for part in content),
        done(whole, index),
    ]


def call(
    item_id: str, index: int, name: str, *pieces: str, call_id: str | None = None
) -> list[Object]:
    """All events of a call."""
    place: Object = {"item_id": item_id, "output_index": index}
    whole = function_call(item_id, call_id or f"call_{item_id}", name, "".join(pieces))
    return [
        added(whole, index),
        *(
            event("function_call_arguments.delta", **place, delta=piece, obfuscation="x")
            for piece in pieces
        ),
        event("function_call_arguments.done", **place, name=name, arguments="".join(pieces)),
        done(whole, index),
    ]


def think(item_id: str, index: int, *summary: str, encrypted: str | None = None) -> list[Object]:
    """All events of thinking; each part of the summary comes in two deltas."""
    whole = reasoning(item_id, *summary, encrypted=encrypted)
    events = [added(whole, index)]
    for number, part in enumerate(summary):
        place: Object = {"item_id": item_id, "output_index": index, "summary_index": number}
        half = len(part) // 2
        empty: Object = {"type": "summary_text", "text": ""}
        events += [
            event("reasoning_summary_part.added", **place, part=empty),
            event("reasoning_summary_text.delta", **place, delta=part[:half]),
            event("reasoning_summary_text.delta", **place, delta=part[half:]),
            event("reasoning_summary_text.done", **place, text=part),
            event("reasoning_summary_part.done", **place, part={**empty, "text": part}),
        ]
    return [*events, done(whole, index)]


def items_of(events: list[Object]) -> list[JsonValue]:
    """The items that ended."""
    return [e["item"] for e in events if e["type"] == "response.output_item.done"]


def ended(events: list[Object], status: str = "completed", **fields: JsonValue) -> list[Object]:
    """A whole stream: what comes before and behind the events of the items."""
    fields = {"usage": usage(), **fields}
    last = event(status, response=response(status, *items_of(events), **fields))
    return [*CREATED, *events, last]


def sse(*events: JsonValue) -> bytes:
    """Events as a stream, numbered."""
    frames = []
    for number, each in enumerate(events):
        assert isinstance(each, dict)
        data = json.dumps({**each, "sequence_number": number})
        frames.append(f"event: {each['type']}\ndata: {data}\n\n".encode())
    return b"".join(frames)


def without(events: list[Object], *keys: str) -> list[Object]:
    """The events as a server sends them that leaves fields out, of events and of items."""
    shorn = []
    for each in events:
        kept = {key: value for key, value in each.items() if key not in keys}
        item = kept.get("item")
        if isinstance(item, dict) and "item_id" in keys:
            kept["item"] = {key: value for key, value in item.items() if key != "id"}
        shorn.append(kept)
    return shorn


def only(events: list[Object], *endings: str) -> list[Object]:
    """The events whose type ends like this."""
    return [each for each in events if str(each["type"]).endswith(endings)]


def read(*slices: bytes) -> tuple[list[Event], tuple[str, str] | None]:
    """As `openai_streams.read`."""
    return openai_streams.read(*slices, reader=ResponsesReader("fake", counter()))


def _llama_cpp(thoughts: list[str], pieces: list[str], tokens: str) -> bytes:
    """Recorded from llama.cpp's server (xllamacpp 2026.10), with shorter ids.

    Its thinking ends only when all of the text was told.
    """
    begun = '"response":{"id":"resp_R","object":"response","status":"in_progress"}'
    thought = (
        '{"id":"rs_1","summary":[],"type":"reasoning","content":[{"text":'
        f'{json.dumps("".join(thoughts))},"type":"reasoning_text"}}],"encrypted_content":""}}'
    )
    said = json.dumps("".join(pieces))
    part = f'{{"type":"output_text","annotations":[],"logprobs":[],"text":{said}}}'
    message = (
        f'{{"type":"message","status":"completed","id":"msg_2","content":[{part}],'
        '"role":"assistant"}'
    )
    thinking = [
        (
            "output_item.added",
            '"item":{"id":"rs_1","summary":[],"type":"reasoning","content":[],'
            '"encrypted_content":"","status":"in_progress"}',
        ),
        *(("reasoning_text.delta", f'"delta":{json.dumps(p)},"item_id":"rs_1"') for p in thoughts),
    ]
    output = f"{thought},{message}" if thoughts else message
    frames = [
        ("created", begun),
        ("in_progress", begun),
        *(thinking if thoughts else ()),
        (
            "output_item.added",
            '"item":{"content":[],"id":"msg_2","role":"assistant","status":"in_progress",'
            '"type":"message"}',
        ),
        ("content_part.added", '"item_id":"msg_2","part":{"type":"output_text","text":""}'),
        *(("output_text.delta", f'"item_id":"msg_2","delta":{json.dumps(p)}') for p in pieces),
        *([("output_item.done", f'"item":{thought}')] if thoughts else ()),
        ("output_text.done", f'"item_id":"msg_2","text":{said}'),
        ("content_part.done", f'"item_id":"msg_2","part":{part}'),
        ("output_item.done", f'"item":{message}'),
        (
            "completed",
            '"response":{"id":"resp_R","object":"response","created_at":1796070421,'
            f'"status":"completed","model":"m.gguf","output":[{output}],"usage":{{{tokens}}}}},'
            '"timings":{"cache_n":5,"prompt_n":41,"prompt_ms":232.631}',
        ),
    ]
    return "".join(
        f'event: response.{kind}\ndata: {{"type":"response.{kind}",{rest}}}\n\n'
        for kind, rest in frames
    ).encode()


def _interleaved() -> list[Object]:
    """Two texts and two calls whose events come in turn."""
    ways = (
        say("msg_a", 0, "a", "b"),
        call("fc_a", 1, "f", '{"a":', " 1}"),
        say("msg_b", 2, "c", "d"),
        call("fc_b", 3, "g", "{}"),
    )
    return [each for turn in itertools.zip_longest(*ways) for each in turn if each is not None]


_TURN = [
    *think("rs_a", 0, "**Plan**\n\nLook.", "Then write.", encrypted="gAAA"),
    *say("msg_a", 1, "I will ", "look. ü😀"),
    *call("fc_a", 2, "read_file", '{"pa', 'th": "ü😀"}'),
    *call("fc_b", 3, "glob", "", "{}"),
]
_OWN_TOOL: Object = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x"},
}
_CUSTOM: Object = {
    "type": "custom_tool_call",
    "id": "ctc_1",
    "call_id": "call_c",
    "name": "shell",
    "input": "rm .",
}

RECORDED: dict[str, bytes] = {
    "llama.cpp": _llama_cpp(
        [],
        ["Hello", "!"],
        '"input_tokens":46,"output_tokens":2,"total_tokens":48,'
        '"input_tokens_details":{"cached_tokens":5}',
    ),
    "llama.cpp thinking": _llama_cpp(
        ["The", " word", " is", " delta", ".", "\n"],
        ["It", " is", " delta", "."],
        '"input_tokens":160,"output_tokens":20,"total_tokens":180,'
        '"input_tokens_details":{"cached_tokens":0}',
    ),
    "openai text": sse(*ended(say("msg_a", 0, "Hello", " world", "!"))),
    "openai turn": sse(
        *ended(_TURN, usage=usage(100, 40, cached=64, thought=20)),
    ),
    "thinking between calls": sse(
        *ended(
            [
                *think("rs_a", 0, "one", encrypted="A"),
                *call("fc_a", 1, "f", "{}"),
                *think("rs_b", 2, encrypted="B"),
                *call("fc_b", 3, "g", "{}"),
                *say("msg_a", 4, "so"),
            ]
        )
    ),
    "interleaved": sse(*ended(_interleaved())),
    "no ids": sse(*ended(without(_TURN, "item_id"))),
    "no places": sse(*ended(without(_TURN, "output_index", "content_index", "summary_index"))),
    "wholes of parts only": sse(*ended([e for e in _TURN if "delta" not in e])),
    "wholes of items only": sse(*ended(only(_TURN, "item.done"))),
    "whole response only": sse(*CREATED, ended(_TURN)[-1]),
    "refusal": sse(*ended(say("msg_a", 0, "I can", "not.", kind="refusal"))),
    "tools of the server": sse(
        *ended(
            [
                event("output_item.added", output_index=0, item=_OWN_TOOL),
                event("web_search_call.searching", output_index=0, item_id="ws_1"),
                event("output_item.done", output_index=0, item=_OWN_TOOL),
                event("output_item.added", output_index=1, item={**_CUSTOM, "input": ""}),
                event(
                    "custom_tool_call_input.delta", output_index=1, item_id="ctc_1", delta="rm ."
                ),
                event("output_item.done", output_index=1, item=_CUSTOM),
                *say("msg_a", 2, "found"),
            ]
        )
    ),
    "cut in a call": sse(
        *ended(
            [*say("msg_a", 0, "I will"), *call("fc_a", 1, "write_file", '{"path": "a')[:2]],
            "incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        )
    ),
    "failed": sse(
        *CREATED,
        *say("msg_a", 0, "a", "b")[:-2],
        event(
            "failed",
            response=response("failed", error={"code": "server_error", "message": "boom"}),
        ),
    ),
    "error event": sse(*CREATED, *say("msg_a", 0, "a")[:3])
    + b'event: error\ndata: {"type":"error","code":"rate_limit_exceeded","message":"slow",'
    b'"param":null,"sequence_number":5}\n\n',
    "ends without its end": sse(*CREATED, *_TURN),
    "malformed after text": sse(*CREATED, *say("msg_a", 0, "a")) + b"data: {oops}\n\n",
    "halves of a character": sse(
        *CREATED,
        *(
            event("output_text.delta", item_id="m", output_index=0, delta=piece)
            for piece in ("a\ud83d", "\ude00b\ud83d")
        ),
        event("completed", response=response("completed")),
    ),
    "raw utf-8, crlf, comments": (
        "\ufeff: hello\r\n\r\nevent: response.output_text.delta\r\n"
        'data:{"type":"response.output_text.delta","delta":"naïve 日本\u2028\x85 😀"}\r\n\r\n'
        ': ping\r\n\r\ndata: {"type":"response.completed",\r\ndata: "response":{}}\r\n\r\n'
    ).encode(),
    "not streamed": json.dumps(response("completed", *items_of(_TURN), usage=usage())).encode(),
    "error document": b'\n {"error": {"message": "nope", "type": "invalid_request_error"}}',
    "nothing": b"",
}
