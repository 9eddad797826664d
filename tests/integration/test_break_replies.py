"""Answers under 200 that are no reply: errors in odd shapes, pages, bytes nobody can read.

What a provider, a gateway or a proxy says has to reach the user, and its kind decides whether
another try makes sense.
"""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Mapping

import pytest
from pydantic import JsonValue, SecretStr

from agentls.core.errors import BadRequest, ModelError, RateLimited, StreamBroken
from agentls.core.events import Event, Status
from agentls.core.messages import Message, Reasoning
from agentls.core.requests import ModelRequest
from agentls.llm.provider import ProviderConfig
from agentls.llm.registry import create
from support.fake_server import RESET, STALL, FakeServer, Reply, Step
from support.openai_rig import HELLO, KEY, Rig, retrying
from support.openai_streams import chunk, sse, usage_chunk
from support.reply_events import FINISHED
from support.wire_rig import meaning, offline
from support.wires.all_wires import WIRES
from support.wires.wire import Wire

each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
each_event_stream = pytest.mark.parametrize(
    "wire", [wire for wire in WIRES if wire.name != "ollama"], ids=lambda wire: wire.name
)

SPENT = json.dumps({"error": {"message": "slow down", "code": 429}})
EVENTS = {"Content-Type": "text/event-stream"}


def failure(wire: Wire, body: str) -> tuple[type[ModelError], str]:
    raw = body.encode()
    events, error = offline(wire.scheme(), raw)
    sliced, same = offline(wire.scheme(), *(raw[at : at + 1] for at in range(len(raw))))
    assert (meaning(events), meaning(sliced)) == ([], [])
    assert error is not None
    assert (type(same), str(same)) == (type(error), str(error))
    return type(error), error.message


# --- errors in odd shapes --------------------------------------------------------------------


@each_wire
@pytest.mark.parametrize(
    "body",
    [
        f"[{SPENT}]",
        f"\n[\n{json.dumps(json.loads(SPENT), indent=1)}\n]\n",
        json.dumps({"error": [{"message": "slow down", "code": 429}]}),
        json.dumps({"errors": [{"message": "slow down", "code": 429}]}),
        json.dumps({"message": "slow down", "status": 429}),
        json.dumps({"error": SPENT}),
        json.dumps(SPENT),
    ],
    ids=["array", "array over lines", "error array", "errors", "flat", "error text", "text"],
)
def test_an_error_under_200_is_told_whatever_shape_it_has(wire: Wire, body: str) -> None:
    assert failure(wire, body) == (RateLimited, "fake reported an error: slow down.")


@each_event_stream
@pytest.mark.parametrize(
    "body",
    [
        f"data: [{SPENT}]\n\n",
        f"data: {json.dumps(SPENT)}\n\n",
        f": working\n\n{SPENT}\n",
        f": working\r\n\r\n{json.dumps(json.loads(SPENT), indent=2)}",
        f": working\n\nerror: {SPENT}\n\n",
    ],
    ids=["array", "text", "bare", "bare over lines", "field"],
)
def test_an_error_inside_an_event_stream_is_told(wire: Wire, body: str) -> None:
    assert failure(wire, body) == (RateLimited, "fake reported an error: slow down.")


@each_wire
def test_plain_text_in_place_of_a_reply_is_told(wire: Wire) -> None:
    kind, said = failure(wire, "upstream connect error or disconnect before headers")
    assert kind is StreamBroken
    assert "upstream connect error or disconnect before headers" in said


@each_event_stream
def test_lines_that_are_no_events_harm_no_whole_reply(wire: Wire) -> None:
    body = wire.said("hello", " world")
    events, error = offline(wire.scheme(), b"x-proxy: warm\n\n" + body + b"\n\nbye\n")
    assert (meaning(events), error) == (HELLO, None)


@pytest.mark.parametrize("what", ["reply", "error"])
async def test_a_whole_document_does_not_wait_for_its_connection_to_close(what: str) -> None:
    message = {"role": "assistant", "content": "hello {}"}
    reply = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    body = json.dumps(reply if what == "reply" else {"error": {"message": "bad", "code": 400}})
    half = len(body) // 2
    steps: list[Step] = [body[:half].encode(), body[half:].encode(), STALL]
    async with FakeServer(Reply(steps, 200, {"Content-Type": "application/json"})) as server:
        async with asyncio.timeout(10):
            events, error = await Rig(server.url).ask()
        await asyncio.wait_for(server.exchanges[0].gone.wait(), 10)
    if what == "reply":
        assert (error, meaning(events)[-1]) == (None, FINISHED)
    else:
        assert str(error) == "fake reported an error: bad."


# --- pages -----------------------------------------------------------------------------------


@each_wire
@pytest.mark.parametrize("kind", ["Text/HTML; charset=UTF-8", "text/plain", "text/event-stream"])
async def test_a_page_under_200_is_asked_for_once(wire: Wire, kind: str) -> None:
    page = b"<!DOCTYPE html>\n<html>\n<body>data: Sign in to the hotel</body></html>"
    async with FakeServer(Reply([page], 200, {"Content-Type": kind})) as server:
        events, error = await Rig(server.url, wire.scheme()).ask()
        assert (events, len(server.exchanges)) == ([], 1)
    assert isinstance(error, BadRequest)
    assert "did not answer as an API does" in error.message
    assert "hotel" not in str(error)
    assert "base URL" in error.hint


# --- bytes that cannot be read ---------------------------------------------------------------


@each_wire
async def test_a_compressed_answer_is_read_although_none_was_asked_for(wire: Wire) -> None:
    packed = gzip.compress(wire.said("hello", " world"))
    headers = {"Content-Type": wire.content_type, "Content-Encoding": "gzip"}
    pieces = [packed[at : at + 7] for at in range(0, len(packed), 7)]
    async with FakeServer(Reply(pieces, 200, headers)) as server:
        events, error = await Rig(server.url, wire.scheme()).ask()
        assert server.exchanges[0].headers["accept-encoding"] == "identity"
    assert (meaning(events), error) == (HELLO, None)


@pytest.mark.parametrize(
    "headers", [{"Content-Encoding": "gzip"}, {"Content-Encoding": "br"}], ids=["not", "unknown"]
)
async def test_an_answer_that_cannot_be_unpacked_says_so(headers: Mapping[str, str]) -> None:
    reply = Reply([b"\x1b\x03\x00\xf8\xff" * 9], 200, {**EVENTS, **headers})
    async with FakeServer(reply) as server:
        _, error = await Rig(server.url).ask()
        assert len(server.exchanges) == 1
    assert error is not None
    assert not error.retryable
    assert "compressed" in error.message
    assert headers["Content-Encoding"] in error.message


async def test_what_is_packed_and_no_answer_keeps_its_status() -> None:
    reply = Reply([b"\x1b\x03\x00\xf8\xff" * 9], 400, {**EVENTS, "Content-Encoding": "br"})
    async with FakeServer(reply) as server:
        _, error = await Rig(server.url).ask()
    assert isinstance(error, BadRequest)
    assert error.message == "fake answered 400 (bad request)."


# --- words before the reply ------------------------------------------------------------------


def progress(percent: int) -> JsonValue:
    told: JsonValue = {
        "total": 100,
        "cache": 0,
        "processed": percent,
        "time_ms": 100 * percent + 5000,
    }
    return {"choices": [], "prompt_progress": told}


@pytest.mark.parametrize("end", ["reset", "error"])
async def test_a_prompt_that_was_only_being_read_is_sent_again(end: str) -> None:
    busy = sse({"error": {"code": 503, "message": "slot gone", "type": "unavailable_error"}})
    reading = sse(progress(10), done=False)
    first = Reply([reading, RESET if end == "reset" else busy], 200, EVENTS)
    whole = sse(
        chunk({"content": "hello"}),
        chunk({"content": " world"}),
        chunk(finish="stop"),
        usage_chunk(),
    )
    async with FakeServer(first, Reply([whole], 200, EVENTS)) as server:
        rig = Rig(server.url)
        events, error = await rig.ask()
    said: Event = Status(state="requesting", message="reading the prompt, 10 %")
    assert (error, rig.waits, events[0]) == (None, [0.5], said)
    assert len(retrying(events)) == 1
    assert meaning(events[2:]) == HELLO


# --- thinking that is refused ----------------------------------------------------------------


async def test_a_model_that_takes_no_effort_is_not_asked_to_think_less() -> None:
    said = {"message": "The encrypted content could not be verified.", "code": "invalid_request"}
    refusal = Reply([json.dumps({"error": said}).encode()], 400)
    whole = sse({"type": "response.completed", "response": {"status": "completed", "output": []}})
    request = ModelRequest(
        items=(
            Message.of("user", "hi"),
            Reasoning(encrypted="AAA", provider="openai-responses"),
            Message.of("assistant", "hello"),
            Message.of("user", "go on"),
        )
    )
    async with FakeServer(refusal, Reply([whole], 200, EVENTS)) as server:
        config = ProviderConfig(base_url=server.url, api_key=SecretStr(KEY), model="gpt-4o")
        model = await create("openai-responses", config)
        events = [event async for event in model.stream(request)]
        await model.aclose()
        first, second = (exchange.json for exchange in server.exchanges)
    assert len(retrying(events)) == 1
    thoughts = [item for item in first["input"] if item["type"] == "reasoning"]
    assert len(thoughts) == 1
    assert second == first | {"input": [i for i in first["input"] if i not in thoughts]}
