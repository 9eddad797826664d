"""Whole turns over every wire format: whatever happens, each request is one its provider takes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Awaitable
from dataclasses import dataclass, field

import pytest
from pydantic import JsonValue

from agentls.agent.turn import Limits
from agentls.core.errors import ModelError, StreamBroken, ToolError
from agentls.core.events import BlockDelta, BlockStart, Event, Status
from agentls.core.messages import Item, Message, Reasoning, ToolCall, ToolResult
from support import history, history_rules
from support.agent_fakes import FakeTool, rig
from support.agent_fakes import Rig as Talk
from support.fake_server import CUT, STALL, FakeServer, Reply, refused
from support.openai_rig import Rig
from support.wires.all_wires import RAW_CALLS, WIRES
from support.wires.wire import Call, Wire

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

LOOK: Call = ("c1", "look", {"at": "ü😀"})
FAIL: Call = ("c2", "fail", {})


@dataclass
class Watched(Talk):
    """Tells when the first delta was told."""

    told: asyncio.Event = field(default_factory=asyncio.Event)

    async def sink(self, event: Event) -> None:
        await super().sink(event)
        if isinstance(event, BlockDelta):
            self.told.set()


@dataclass
class Bench:
    """A conversation, the server that plays its model, and what a tool waits for."""

    talk: Watched
    server: FakeServer
    wire: Wire
    looking: asyncio.Event
    go: asyncio.Event

    def answers(self, *bodies: bytes | Reply) -> None:
        """Queue replies of the model."""
        self.server.replies.extend(
            body if isinstance(body, Reply) else self.wire.reply(body) for body in bodies
        )

    async def fails(self, text: str) -> ModelError:
        """Ask; the turn has to fail with a model error."""
        with pytest.raises(ModelError) as caught:
            await self.talk.ask(text)
        return caught.value

    async def stopped(self, text: str, when: Awaitable[object]) -> None:
        """Ask, and cancel the turn as soon as something has happened."""
        task = asyncio.create_task(self.talk.ask(text))
        await asyncio.wait_for(when, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    def sent(self, number: int) -> str:
        """The text of a request, from 1; -1 is the last."""
        body = self.server.exchanges[number - 1 if number > 0 else number].json
        return json.dumps(body, ensure_ascii=False)


@contextlib.asynccontextmanager
async def conversation(
    wire: Wire, *bodies: bytes | Reply, limits: Limits | None = None, past: tuple[Item, ...] = ()
) -> AsyncGenerator[Bench, None]:
    """A conversation with the tools `look` and `fail`; at its end all requests are judged."""
    looking, go = asyncio.Event(), asyncio.Event()
    go.set()

    async def look(arguments: dict[str, JsonValue]) -> str:
        looking.set()
        await go.wait()
        return "seen"

    async def fail(arguments: dict[str, JsonValue]) -> str:
        raise ToolError("it is locked.")

    tools = FakeTool("look", look), FakeTool("fail", fail)
    async with FakeServer() as server, Rig(server.url, wire.scheme()).model() as model:
        talk = Watched(rig(model, *tools, limits=limits).session)
        talk.session.history.extend(past)
        bench = Bench(talk, server, wire, looking, go)
        bench.answers(*bodies)
        yield bench
        assert server.exchanges
        for number, exchange in enumerate(server.exchanges, start=1):
            found = history_rules.problems(wire.name, exchange.json)
            assert found == [], (number, found, exchange.json)
        assert history.problems(talk.history()) == []
        assert not server.replies


def begun(wire: Wire, body: bytes, frames: int, *end: object) -> Reply:
    """The first frames of a reply, and how it ends."""
    return Reply(
        [*wire.frames(body)[:frames], *end],  # type: ignore[list-item]  # CUT or STALL
        headers={"Content-Type": wire.content_type},
    )


def until_said(wire: Wire, body: bytes) -> int:
    """How many frames it takes until a delta was told."""
    frames = wire.frames(body)
    reader = wire.scheme().reader({})
    for number, frame in enumerate(frames, start=1):
        if any(isinstance(event, BlockDelta) for event in reader.feed(frame)):
            return number
    raise AssertionError("nothing is said")


async def test_plain(wire: Wire) -> None:
    async with conversation(wire, wire.said("hello", " you"), wire.said("bye")) as bench:
        assert await bench.talk.ask("hi") == "hello you"
        assert await bench.talk.ask("more") == "bye"
        assert "hello you" in bench.sent(2)


async def test_parallel_tools_of_which_one_fails(wire: Wire) -> None:
    async with conversation(wire, wire.called(LOOK, FAIL, LOOK), wire.said("done")) as bench:
        assert await bench.talk.ask("hi") == "done"
        results = [item for item in bench.talk.history() if isinstance(item, ToolResult)]
        assert [(r.name, r.content) for r in results] == [
            ("look", "seen"),
            ("fail", "Error: it is locked."),
            ("look", "seen"),
        ]
        assert bench.sent(2).count("seen") == 2
        assert "it is locked" in bench.sent(2)
        bench.answers(wire.said("bye"))
        assert await bench.talk.ask("and now?") == "bye"


async def test_thinking_then_text_then_calls(wire: Wire) -> None:
    replies = (wire.thought("hm", "first"), wire.called(LOOK), wire.thought("aha", "done"))
    async with conversation(wire, *replies) as bench:
        assert await bench.talk.ask("hi") == "first"
        assert await bench.talk.ask("go on") == "done"
        bench.answers(wire.said("bye"))
        assert await bench.talk.ask("thanks") == "bye"


async def test_tools_that_do_not_exist_and_arguments_that_are_none(wire: Wire) -> None:
    odd = wire.called(("c1", "no such tool! ü", {}), ("c2", "x" * 200, {"a": [None]}))
    replies = [odd, wire.said("sorry")]
    if wire.name in RAW_CALLS:
        replies.insert(1, RAW_CALLS[wire.name]("look", '{"at": "a'))
    async with conversation(wire, *replies) as bench:
        assert await bench.talk.ask("hi") == "sorry"
        assert "there is no tool named" in bench.sent(2)
        if wire.name in RAW_CALLS:
            assert "not a JSON object" in bench.sent(3)


@pytest.mark.parametrize("frames", ["none", "text", "all but the end"])
async def test_stopped_within_a_text(wire: Wire, frames: str) -> None:
    body = wire.said("one", " two", " three")
    told = until_said(wire, body)
    count = {"none": 0, "text": told, "all but the end": told + 1}[frames]
    async with conversation(wire, begun(wire, body, count, STALL)) as bench:
        when = bench.server.exchange() if frames == "none" else bench.talk.told.wait()
        await bench.stopped("hi", when)
        await asyncio.wait_for(bench.server.exchanges[0].gone.wait(), 10)
        bench.answers(wire.said("bye"))
        assert await bench.talk.ask("go on") == "bye"
        assert ("one" in bench.sent(2)) == (frames != "none")


async def test_stopped_within_a_call(wire: Wire) -> None:
    body = wire.called(LOOK, LOOK)
    count = len(wire.frames(body)) // 2
    async with conversation(wire, begun(wire, body, count, STALL)) as bench:
        await bench.stopped("hi", bench.server.exchange())
        bench.answers(wire.said("bye"))
        assert await bench.talk.ask("go on") == "bye"
        assert not bench.looking.is_set()
        assert not any(isinstance(i, ToolCall) for i in bench.talk.history())


async def test_stopped_while_a_tool_runs(wire: Wire) -> None:
    async with conversation(wire, wire.called(LOOK, FAIL, LOOK)) as bench:
        bench.go.clear()
        await bench.stopped("hi", bench.looking.wait())
        bench.answers(wire.said("bye"))
        assert await bench.talk.ask("go on") == "bye"
        results = [item for item in bench.talk.history() if isinstance(item, ToolResult)]
        assert [result.is_error for result in results] == [True] * 3
        assert "cancelled by the user" in bench.sent(2)


async def test_a_call_that_was_cut_is_asked_for_again(wire: Wire) -> None:
    replies = (wire.cut_call("look", '{"at": "a'), wire.called(LOOK), wire.said("done"))
    async with conversation(wire, *replies) as bench:
        assert await bench.talk.ask("hi") == "done"
        assert "token limit inside a tool call" in bench.sent(2)
        assert sum(isinstance(item, ToolCall) for item in bench.talk.history()) == 1


async def test_a_text_that_was_cut(wire: Wire) -> None:
    async with conversation(wire, wire.cut("so far"), wire.said("and on")) as bench:
        assert await bench.talk.ask("hi") == "so far"
        assert await bench.talk.ask("go on") == "and on"


async def test_a_refusal(wire: Wire) -> None:
    async with conversation(wire, wire.refused("I would"), wire.said("fine")) as bench:
        await bench.talk.ask("bad")
        assert await bench.talk.ask("good") == "fine"


async def test_a_text_that_breaks_is_gone_on_with(wire: Wire) -> None:
    body = wire.said("one", " two", " three")
    broken = begun(wire, body, until_said(wire, body) + 1, CUT)
    async with conversation(wire, broken, broken, wire.said("one", " two", " four")) as bench:
        assert await bench.talk.ask("hi") == "one two four"
        assert "Go on with your reply exactly where it stopped" in bench.sent(2)
        said = "".join(e.text for e in bench.talk.events if isinstance(e, BlockDelta))
        assert said == "one two four"
        bench.answers(wire.said("bye"))
        assert await bench.talk.ask("thanks") == "bye"


async def test_a_text_that_breaks_for_good_is_kept(wire: Wire) -> None:
    body = wire.said("one", " two", " three")
    broken = begun(wire, body, until_said(wire, body), CUT)
    async with conversation(wire, *[broken] * 4) as bench:
        assert isinstance(await bench.fails("hi"), StreamBroken)
        bench.answers(wire.said("bye"))
        assert await bench.talk.ask("go on") == "bye"
        assert "one" in bench.sent(5)


async def test_a_call_that_breaks_is_dropped_and_asked_for_again(wire: Wire) -> None:
    body = wire.called(LOOK, LOOK)
    reader = wire.scheme().reader({})
    frames = wire.frames(body)
    shown = next(
        number
        for number, frame in enumerate(frames, start=1)
        if any(isinstance(event, BlockStart) for event in reader.feed(frame))
    )
    broken = begun(wire, body, shown, CUT)
    async with conversation(wire, broken, wire.called(LOOK), wire.said("done")) as bench:
        assert await bench.talk.ask("hi") == "done"
        assert sum(isinstance(item, ToolCall) for item in bench.talk.history()) == 1
        told = [e.message for e in bench.talk.events if isinstance(e, Status)]
        assert any("Asking again" in message for message in told)


async def test_the_limit_of_requests_and_going_on(wire: Wire) -> None:
    replies = (wire.called(LOOK), wire.called(FAIL), wire.said("done"))
    async with conversation(wire, *replies, limits=Limits(max_iterations=2)) as bench:
        assert await bench.talk.ask("hi") == ""
        assert await bench.talk.ask("go on") == "done"


SIGNATURE = {
    "error": {
        "type": "invalid_request_error",
        "message": "messages.1.content.0: Invalid `signature` in `thinking` block",
    }
}


async def test_thinking_that_is_refused_is_left_out_once(wire: Wire) -> None:
    async with conversation(wire, wire.thought("my thoughts", "first")) as bench:
        assert await bench.talk.ask("hi") == "first"
        bench.answers(refused(400, SIGNATURE), wire.said("second"))  # type: ignore[arg-type]  # JSON
        assert await bench.talk.ask("go on") == "second"
        assert len(bench.server.exchanges) == 3
        assert "my thoughts" not in bench.sent(3)
        assert "first" in bench.sent(3)
        bench.answers(wire.thought("new thoughts", "third"))
        assert await bench.talk.ask("and on") == "third"
        assert "my thoughts" not in bench.sent(4)  # what was refused once is not tried again
        bench.answers(refused(400, SIGNATURE), refused(400, SIGNATURE))  # type: ignore[arg-type]  # JSON
        error = await bench.fails("again")
        assert (error.status, len(bench.server.exchanges)) == (400, 6)


# --- histories that another provider wrote ---------------------------------------------------


async def written_by(wire: Wire) -> tuple[Item, ...]:
    """A history with everything in it, of a provider named like the format."""
    replies = (
        wire.thought("their thoughts", "first"),
        wire.called(LOOK, FAIL),
        wire.thought("their other thoughts", "second"),
        wire.called(("c3", "no such tool!", {})),
        wire.cut_call("look", '{"at": "a'),
        wire.said("third"),
        wire.called(LOOK),
    )
    async with conversation(wire, *replies) as bench:
        for question, answer in (("1", "first"), ("2", "second"), ("3", "third")):
            assert await bench.talk.ask(question) == answer
        bench.go.clear()
        bench.looking.clear()
        await bench.stopped("4", bench.looking.wait())
        return tuple(
            item.model_copy(update={"provider": wire.name}) if isinstance(item, Reasoning) else item
            for item in bench.talk.history()
        )


@pytest.mark.parametrize("author", WIRES, ids=lambda wire: f"of_{wire.name}")
async def test_a_history_that_another_provider_wrote(wire: Wire, author: Wire) -> None:
    past = await written_by(author)
    assert any(isinstance(item, Reasoning) for item in past)
    replies = (wire.called(LOOK, FAIL), wire.thought("own thoughts", "done"))
    async with conversation(wire, *replies, past=past) as bench:
        assert await bench.talk.ask("and now?") == "done"
        assert "their thoughts" not in bench.sent(1)
        for said in ("first", "second", "third", "seen", "it is locked"):
            assert said in bench.sent(1)
        assert bench.talk.history()[: len(past)] == list(past)
        bench.answers(wire.said("bye"))
        assert await bench.talk.ask("thanks") == "bye"
        assert Message.of("user", "thanks") in bench.talk.history()
