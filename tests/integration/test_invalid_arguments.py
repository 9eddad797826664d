"""Arguments that are no JSON object, in the formats that send them as text."""

from __future__ import annotations

import pytest

from agentls.core.messages import ToolCall, ToolResult
from agentls.core.requests import ModelRequest
from support import history_rules
from support.fake_server import FakeServer
from support.openai_rig import HI, Rig
from support.stream_rules import called, problems
from support.wires.all_wires import RAW_CALLS, WIRES
from support.wires.wire import Wire

RAWS = {
    "cut": '{"path": "a',
    "a list": "[1]",
    "a text": '"a"',
    "null": "null",
    "python": "{'a': 1}",
    "nan": '{"a": NaN}',
    "half a character": '{"a": "\\ud83d"}',
    "twice": '{"a": 1}{"a": 1}',
    "prose": "I would like to read a.py",
}


@pytest.mark.parametrize("name", RAWS)
@pytest.mark.parametrize("wire", [w for w in WIRES if w.name in RAW_CALLS], ids=lambda w: w.name)
async def test_they_are_the_model_s_to_repair_and_the_history_stays_valid(
    wire: Wire, name: str
) -> None:
    raw = RAWS[name]
    async with FakeServer(wire.reply(RAW_CALLS[wire.name]("read_file", raw))) as server:
        events, error = await Rig(server.url, wire.scheme()).ask()
    assert (error, problems(events, error)) == (None, [])
    (call,) = called(events)
    assert (call.name, call.arguments, call.invalid) == ("read_file", {}, raw)
    result = ToolResult(call_id=call.call_id, name=call.name, content="Error: no", is_error=True)
    for author in (wire, *WIRES):
        body = author.scheme().build(ModelRequest(items=(*HI.items, call, result)))
        assert history_rules.problems(author.name, body) == []


@pytest.mark.parametrize("raw", ["", " ", "{}", "{ }\n"])
@pytest.mark.parametrize("wire", [w for w in WIRES if w.name in RAW_CALLS], ids=lambda w: w.name)
async def test_no_arguments_are_an_empty_object(wire: Wire, raw: str) -> None:
    async with FakeServer(wire.reply(RAW_CALLS[wire.name]("glob", raw))) as server:
        events, error = await Rig(server.url, wire.scheme()).ask()
    assert (error, problems(events, error)) == (None, [])
    (call,) = called(events)
    assert call == ToolCall(call_id=call.call_id, name="glob")
