"""How replies end, what is in them, and how they are stopped, the same for every wire format."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace

import pytest

from agentls.core.errors import StreamBroken
from agentls.core.events import (
    BlockAbort,
    BlockStart,
    BlockStop,
    Event,
    Status,
)
from agentls.core.messages import Message, Reasoning
from agentls.core.requests import ModelRequest
from support.fake_server import STALL, FakeServer
from support.fault_proxy import FaultProxy
from support.faults import (
    Fault,
    Nothing,
    PingsOnly,
    Slices,
    Stall,
)
from support.openai_rig import HI, USAGE, Rig, retrying
from support.reply_events import FINISHED, text
from support.stream_rules import called, problems
from support.wire_rig import asked, borders, meaning, two_calls
from support.wires.all_wires import WIRES
from support.wires.wire import Wire

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

# --- replies that end early on purpose -------------------------------------------------------


async def test_a_reply_at_the_token_limit(wire: Wire) -> None:
    events, error = await asked(wire, wire.cut("so far"), Nothing())
    assert (meaning(events)[:-1], error) == ([*text(0, "so far"), USAGE], None)
    assert events[-1] == Status(state="finished", stop_reason="max_tokens")


async def test_a_call_at_the_token_limit_never_runs(wire: Wire) -> None:
    for beginning in ('{"path": "a', "", '{"path": "a.py"}'):
        events, error = await asked(wire, wire.cut_call("write_file", beginning), Nothing())
        assert (error, problems(events, error)) == (None, [])
        assert called(events) == []
        aborted = [e for e in events if isinstance(e, BlockAbort)]
        opened = [e for e in events if isinstance(e, BlockStart)]
        assert len(aborted) == len(opened)
        assert events[-1] == Status(state="finished", stop_reason="max_tokens")


async def test_a_refusal(wire: Wire) -> None:
    events, error = await asked(wire, wire.refused("I would"), Nothing())
    assert (error, problems(events, error)) == (None, [])
    assert events[-1] == Status(state="finished", stop_reason="refusal")


# --- next to nothing -------------------------------------------------------------------------


async def test_an_empty_body_is_no_answer(wire: Wire) -> None:
    async with FakeServer(*[wire.reply(b"")] * 5) as server:
        events, error = await Rig(server.url, wire.scheme()).ask()
        assert len(server.exchanges) == 4
    assert isinstance(error, StreamBroken)
    assert "empty answer" in error.message
    assert len(retrying(events)) == 3


async def test_pings_and_nothing_else_are_no_answer(wire: Wire) -> None:
    async with FakeServer(*[wire.reply(wire.ping * 3)] * 5) as server:
        events, error = await Rig(server.url, wire.scheme()).ask()
        assert len(server.exchanges) == 4
    assert isinstance(error, StreamBroken)
    assert len(retrying(events)) == 3
    assert not any(isinstance(event, BlockStart) for event in events)


async def test_a_whole_reply_may_say_nothing(wire: Wire) -> None:
    for body in (wire.said(), wire.said("")):
        events, error = await asked(wire, body, Nothing())
        assert (meaning(events), error) == ([USAGE, FINISHED], None)


# --- calls -----------------------------------------------------------------------------------


@pytest.mark.parametrize("same_ids", [False, True])
async def test_parallel_calls_keep_apart(wire: Wire, same_ids: bool) -> None:
    wanted = [
        ("a", "read_file", {"path": "a.py"}),
        ("b", "read_file", {"path": "b.py"}),
        ("c", "glob", {}),
        ("d", "grep", {"pattern": '}{"\\', "deep": {"list": [1, {"é": None}], "no": False}}),
        ("e", "read_file", {"path": "a.py"}),
    ]
    if same_ids:
        wanted = [("call_0", name, arguments) for _, name, arguments in wanted]
    events, error = await asked(wire, wire.called(*wanted), Slices(5))
    assert (error, problems(events, error)) == (None, [])
    assert [(c.name, c.arguments, c.invalid) for c in called(events)] == [
        (name, arguments, None) for _, name, arguments in wanted
    ]


# --- thinking --------------------------------------------------------------------------------


async def test_thinking_is_told_apart_and_goes_back_as_it_came(wire: Wire) -> None:
    events, error = await asked(wire, wire.thought("let me see", "done"), Slices(3))
    assert (error, problems(events, error)) == (None, [])
    items = [e.item for e in events if isinstance(e, BlockStop)]
    thoughts = [item for item in items if isinstance(item, Reasoning)]
    assert "".join(item.text for item in thoughts) == "let me see"
    assert [item for item in items if isinstance(item, Message)] == [
        Message.of("assistant", "done")
    ]
    assert all(item.provider == "fake" for item in thoughts)
    again = ModelRequest(items=(*HI.items, *items, Message.of("user", "go on")))
    body = json.dumps(wire.scheme().build(again), ensure_ascii=False)
    marks = [m for item in thoughts for m in (item.signature, item.encrypted) if m]
    assert all(mark in body for mark in marks)
    foreign = [
        item.model_copy(update={"provider": "other"}) if isinstance(item, Reasoning) else item
        for item in items
    ]
    request = ModelRequest(items=(*HI.items, *foreign, Message.of("user", "go on")))
    body = json.dumps(wire.scheme().build(request), ensure_ascii=False)
    assert not any(mark in body for mark in ["let me see", *marks])


@pytest.mark.parametrize(
    "quote",
    [
        '<tool_call>{"name": "bash", "arguments": {"command": "rm -rf /"}}</tool_call>',
        '<tool_call>{"name": "bash"',
        '```json\n{"name": "bash", "arguments": {}}\n```',
        "<think>never closed",
    ],
)
async def test_a_call_that_thinking_quotes_never_runs(wire: Wire, quote: str) -> None:
    events, error = await asked(wire, wire.thought(quote, "no"), Nothing())
    assert (error, problems(events, error)) == (None, [])
    assert called(events) == []
    said = [e.item for e in events if isinstance(e, BlockStop) and isinstance(e.item, Message)]
    assert said == [Message.of("assistant", "no")]


# --- stopping --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["before a byte", "pings", "within a text", "within a call"])
async def test_stopping_a_stalled_reply_closes_the_socket(wire: Wire, kind: str) -> None:
    said, calling = wire.said("one", " two"), two_calls(wire)
    faults: dict[str, Fault] = {
        "before a byte": Stall(0),
        "pings": PingsOnly(wire.ping),
        "within a text": Stall(borders(wire, said)[-1] - 1),
        "within a call": Stall(len(calling) // 2),
    }
    body = calling if kind == "within a call" else said
    async with (
        FakeServer(replace(wire.reply(body), steps=[body, STALL])) as server,
        FaultProxy(server.url, faults[kind]) as proxy,
        Rig(proxy.url, wire.scheme()).model() as model,
    ):
        seen: list[Event] = []
        arrived = asyncio.Event()

        async def consume() -> None:
            async with contextlib.aclosing(model.stream(HI)) as events:
                async for event in events:
                    seen.append(event)
                    arrived.set()

        task = asyncio.create_task(consume())
        exchange = await proxy.exchange()
        if kind != "before a byte":
            await arrived.wait()
        assert not exchange.gone.is_set()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(exchange.gone.wait(), 10)
        await asyncio.wait_for((await server.exchange()).gone.wait(), 10)
        assert len(proxy.exchanges) == 1
        assert called(seen) == []
