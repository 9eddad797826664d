"""Servers of the OpenAI format that behave in ways nobody should."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from agentls.core.errors import SettingsError, StreamBroken
from agentls.core.events import BlockStop
from agentls.core.messages import ToolCall
from agentls.llm.http.endpoint import Endpoint
from support.openai_rig import HELLO, Rig, retrying
from support.openai_server import CUT, RESET, STALL, OpenAIServer, Reply, said, streamed
from support.openai_streams import call, calls, chunk, sse

ROLE = sse(chunk({"role": "assistant", "content": ""}), done=False)
NOTHING_YET = {
    "after the headers": [],
    "after a ping": [b": ping\n\n"],
    "after the role": [ROLE],
    "after a usage": [sse({"choices": [], "usage": {"prompt_tokens": 3}}, done=False)],
    "within a chunk": [ROLE, b'data: {"choices": [{"delta": {"content": "hel'],
}


@pytest.mark.parametrize("end", [CUT, RESET])
@pytest.mark.parametrize("steps", NOTHING_YET.values(), ids=list(NOTHING_YET))
async def test_a_reply_lost_before_it_said_anything_is_tried_again(
    steps: list[bytes], end: object
) -> None:
    lost = Reply([*steps, end])  # type: ignore[list-item]  # CUT or RESET
    async with OpenAIServer(lost, lost, said("hello world")) as server:
        rig = Rig(server.url)
        events, error = await rig.ask()
    assert error is None
    assert events[-len(HELLO) :] == HELLO
    assert (rig.waits, len(server.exchanges), len(retrying(events))) == ([0.5, 1.0], 3, 2)


@pytest.mark.parametrize(
    "reply",
    [
        Reply([]),
        Reply([sse(done=True)]),
        streamed({"choices": []}),
        Reply([b"data: null\n\n"]),
        Reply([b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n']),
        Reply([b'{"error": "try later"}'], headers={"Content-Type": "application/json"}),
    ],
)
async def test_an_answer_that_is_none_is_asked_for_four_times(reply: Reply) -> None:
    async with OpenAIServer(*[reply] * 5) as server:
        events, error = await Rig(server.url).ask()
    assert isinstance(error, StreamBroken)
    assert (len(server.exchanges), len(retrying(events))) == (4, 3)


async def test_a_reply_that_stalls_before_it_said_anything_is_not_waited_for_again() -> None:
    async with OpenAIServer(Reply([ROLE, STALL]), said("never")) as server:
        events, error = await Rig(server.url, idle_s=0.2).ask()
    assert isinstance(error, StreamBroken)
    assert (retrying(events), len(server.exchanges)) == ([], 1)


def call_of(events: list[object]) -> ToolCall:
    items = [event.item for event in events if isinstance(event, BlockStop)]
    (item,) = [item for item in items if isinstance(item, ToolCall)]
    return item


@pytest.mark.parametrize("index", ["9" * 5000, -1, True, 1.5, "x", "٣", [], {"a": 1}, 10**30])
async def test_an_index_that_is_none(index: JsonValue) -> None:
    function: JsonValue = {"name": "f", "arguments": '{"a": 1}'}
    fragment: JsonValue = {"index": index, "id": "c", "function": function}
    async with OpenAIServer(streamed(calls(fragment), chunk({}, "tool_calls"))) as server:
        events, error = await Rig(server.url).ask()
    assert error is None
    assert call_of([*events]) == ToolCall(call_id="c", name="f", arguments={"a": 1})


@pytest.mark.parametrize("depth", [101, 254, 300, 800])
@pytest.mark.parametrize("whole", [False, True])
async def test_arguments_nested_too_deeply_are_the_model_s_to_repair(
    depth: int, whole: bool
) -> None:
    raw = '{"a":' * depth + "1" + "}" * depth
    given = raw if whole else json.dumps(raw)
    fragment = f'{{"index": 0, "id": "c", "function": {{"name": "f", "arguments": {given}}}}}'
    line = f'data: {{"choices": [{{"delta": {{"tool_calls": [{fragment}]}}}}]}}\n\n'
    steps = [line.encode(), sse(chunk({}, "tool_calls"))]
    async with OpenAIServer(Reply(steps)) as server:
        events, error = await Rig(server.url).ask()
    assert error is None
    item = call_of([*events])
    assert (item.arguments, (item.invalid or "").replace(" ", "")) == ({}, raw)
    assert json.loads(BlockStop(index=0, item=item).model_dump_json())


async def test_half_a_character_in_a_name_or_an_id_is_replaced() -> None:
    fragment = call("{}", call_id="c\ud800", name="read\udc00file")
    async with OpenAIServer(streamed(calls(fragment), chunk({}, "tool_calls"))) as server:
        events, error = await Rig(server.url).ask()
    assert error is None
    assert call_of([*events]) == ToolCall(call_id="c\ufffd", name="read\ufffdfile")


@pytest.mark.parametrize("port", ["99999", "65536", "0"])
def test_a_port_that_no_address_has(port: str) -> None:
    with pytest.raises(SettingsError, match="no address of a server"):
        Endpoint(f"http://127.0.0.1:{port}/v1", provider="p")


async def test_a_proxy_with_a_port_that_no_address_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:hunter2@127.0.0.1:99999")
    monkeypatch.setenv("NO_PROXY", "")
    rig = Rig("http://model.example/v1")
    with pytest.raises(SettingsError, match="proxy") as caught:
        await rig.ask()
    assert "hunter2" not in str(caught.value)
