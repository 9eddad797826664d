"""What goes wrong inside a reply, the same for every wire format, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from agentls.core.errors import ModelError, StreamBroken
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Ping,
    Status,
)
from agentls.core.messages import Message, Reasoning
from agentls.core.requests import ModelRequest
from agentls.llm.scheme import Scheme
from support.fake_server import STALL, FakeServer
from support.fault_proxy import FaultProxy
from support.faults import (
    Delays,
    Fault,
    Nothing,
    PingsOnly,
    Reset,
    Slices,
    Stall,
    Truncate,
)
from support.openai_rig import HI, USAGE, Rig, retrying
from support.reply_events import FINISHED, cut_text, text
from support.stream_rules import called, numbered, problems
from support.wires.all_wires import WIRES
from support.wires.wire import Wire

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

READ = ("c1", "read_file", {"path": "ü😀.py", "lines": [1, 2]})
GLOB = ("c2", "glob", {"pattern": "*.py"})


def two_calls(wire: Wire) -> bytes:
    """A reply of two calls."""
    return wire.called(READ, GLOB)


def offline(scheme: Scheme, *slices: bytes) -> tuple[list[Event], ModelError | None]:
    """What the format's reader alone makes of bytes."""
    reader = scheme.reader()
    events: list[Event] = []
    try:
        for piece in slices:
            events.extend(reader.feed(piece))
        events.extend(reader.close())
    except ModelError as error:
        return events, error
    return events, None


def borders(wire: Wire, body: bytes) -> list[int]:
    """Offsets between frames."""
    return list(itertools.accumulate(len(frame) for frame in wire.frames(body)))[:-1]


def telling(wire: Wire, body: bytes, *, dense: bool) -> list[int]:
    """Offsets worth cutting at: borders of frames, the bytes around them if dense, some others."""
    around = (-2, -1, 0, 1) if dense else (0,)
    near = {at + by for at in borders(wire, body) for by in around}
    rng = random.Random(wire.name)  # noqa: S311 - not a secret
    near |= {rng.randrange(len(body)) for _ in range(15)} | {0, 1, len(body) - 1, len(body)}
    return sorted(at for at in near if 0 <= at <= len(body))


def meaning(events: Iterable[Event]) -> list[Event]:
    """Events without pings, by which readers may tell that something arrived."""
    return [event for event in events if not isinstance(event, Ping)]


async def asked(wire: Wire, body: bytes, fault: Fault) -> tuple[list[Event], ModelError | None]:
    """Events of a reply through a faulty network."""
    async with FakeServer(wire.reply(body)) as server, FaultProxy(server.url, fault) as proxy:
        return await Rig(proxy.url, wire.scheme()).ask()


# --- slicing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_any_slicing_on_the_wire(wire: Wire, size: int) -> None:
    for body in (
        wire.said("hello", " wörld😀\u2028\x85\f"),
        two_calls(wire),
        wire.thought("h😀m", "a"),
    ):
        whole, error = offline(wire.scheme(), body)
        assert (error, problems(whole, error)) == (None, [])
        events, error = await asked(wire, body, Slices(size))
        assert (numbered(events), error) == (numbered(whole), None)


def reframed(wire: Wire, body: bytes) -> dict[str, bytes]:
    """The body as other servers frame it; what it says stays the same."""
    pings = b"".join(frame + wire.ping for frame in wire.frames(body))
    if "event-stream" not in wire.content_type:
        return {
            "crlf": body.replace(b"\n", b"\r\n"),
            "no last line end": body.rstrip(b"\n"),
            "blank lines": body.replace(b"\n", b"\n\n \n"),
            "pings": pings,
        }
    lf = body.replace(b"\r\n", b"\n")
    return {
        "crlf": lf.replace(b"\n", b"\r\n"),
        "lone cr": lf.replace(b"\n", b"\r"),
        "byte order mark": b"\xef\xbb\xbf" + lf,
        "no blank": lf.replace(b"data: ", b"data:"),
        "many lines": lf.replace(b"data: {", b"data: {\ndata: "),
        "comments": b": hello\n\n" + lf.replace(b"data: ", b":\n: data: {}\ndata: "),
        "ids and retries": lf.replace(b"data: ", b"id: 1\nretry: 5\ndata: "),
        "no last line end": lf.rstrip(b"\n"),
        "pings": pings,
    }


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_any_framing(wire: Wire, size: int) -> None:
    for body in (wire.said("hello", " wörld"), two_calls(wire)):
        whole, _ = offline(wire.scheme(), body)
        for name, other in reframed(wire, body).items():
            slices = (other[at : at + size] for at in range(0, len(other), size))
            events, error = offline(wire.scheme(), *slices)
            assert error is None, name
            assert numbered(meaning(events)) == numbered(meaning(whole)), name


async def test_pings_between_delayed_frames(wire: Wire) -> None:
    body = b"".join(wire.ping + frame for frame in wire.frames(wire.said("hello", " world")))
    fault = Delays()
    async with FakeServer(wire.reply(body)) as server, FaultProxy(server.url, fault) as proxy:
        events: list[Event] = []
        async with Rig(proxy.url, wire.scheme()).model() as model:

            async def tick() -> None:
                while True:
                    fault.tick.set()
                    await asyncio.sleep(0)

            ticking = asyncio.create_task(tick())
            async for event in model.stream(HI):
                events.append(event)
            ticking.cancel()
    assert meaning(events) == [*text(0, "hello", " world"), USAGE, FINISHED]
    assert events.count(Ping()) >= 3


async def test_deltas_are_told_before_more_comes(wire: Wire) -> None:
    fault = Delays()
    async with (
        FakeServer(wire.reply(wire.said("a", "b", "c"))) as server,
        FaultProxy(server.url, fault) as proxy,
        Rig(proxy.url, wire.scheme()).model() as model,
    ):
        said: list[str] = []
        fault.tick.set()
        async with contextlib.aclosing(model.stream(HI)) as events:
            stepping = asyncio.create_task(_until(fault.tick, lambda: bool(said)))
            async for event in events:
                if isinstance(event, BlockDelta):
                    said.append(event.text)
                    if said == ["a"]:
                        await stepping
                        assert said == ["a"]  # nothing else had been let through
                        stepping = asyncio.create_task(_until(fault.tick, lambda: False))
        stepping.cancel()
    assert said == ["a", "b", "c"]


async def _until(tick: asyncio.Event, done: Callable[[], bool]) -> None:
    """Let frames through one by one until `done()`."""
    while not done():
        tick.set()
        await asyncio.sleep(0.001)


# --- ends ------------------------------------------------------------------------------------


def judged(
    wire: Wire, body: bytes, at: int, events: list[Event], error: ModelError | None
) -> list[str]:
    """What is wrong with the reply to a request whose first answer was cut at an offset."""
    expected, broke = offline(wire.scheme(), body[:at])
    shown = meaning(expected)
    if broke is not None and not shown:
        # Nothing was said: it was asked for again, and the answer was whole.
        first = next(i for i, e in enumerate(events) if isinstance(e, Status))
        assert len(retrying(events)) == 1
        expected, broke = offline(wire.scheme(), body)
        events = events[first + 1 :]
    found = problems(events, error)
    if numbered(meaning(events)) != numbered(meaning(expected)):
        found.append("events differ from those of the bytes that arrived")
    if (error is None) != (broke is None):
        found.append(f"{error!r} instead of {broke!r}")
    if error is not None and (not isinstance(error, StreamBroken) or error.provider != "fake"):
        found.append(f"the error is {error!r} of {error.provider!r}")
    return found


@pytest.mark.parametrize("kind", ["reset", "closed", "ended"])
async def test_a_reply_that_ends_at_any_byte(wire: Wire, kind: str) -> None:
    faults: dict[str, Callable[[int], Fault]] = {
        "reset": Reset,
        "closed": Truncate,
        "ended": lambda at: Truncate(at, ended=True),
    }
    async with FakeServer() as server, FaultProxy(server.url) as proxy:
        for body in (wire.said("one", " two", " three"), two_calls(wire), wire.thought("hm", "so")):
            for at in telling(wire, body, dense=kind == "reset"):
                server.replies.extend([wire.reply(body), wire.reply(body)])
                proxy.meet(faults[kind](at), Nothing())
                events, error = await Rig(proxy.url, wire.scheme()).ask()
                server.replies.clear()
                assert judged(wire, body, at, events, error) == [], (at, body[:at])


async def test_the_last_frames_alone_say_that_a_reply_is_whole(wire: Wire) -> None:
    """Cut in front of the first frame that ends it, a reply is incomplete whatever it held."""
    for body in (wire.said("one", " two"), two_calls(wire)):
        cuts = [offline(wire.scheme(), body[:at])[1] is None for at in [*borders(wire, body)]]
        # Once whole it stays whole, and at least everything up to the last words is needed.
        assert cuts == sorted(cuts)
        assert not cuts[0]
        said = [offline(wire.scheme(), body[:at])[0] for at in borders(wire, body)]
        for whole, events in zip(cuts, said, strict=True):
            if whole:
                assert called(events) == [] or len(called(events)) == 2


# --- garbage and errors inside ---------------------------------------------------------------


def garbage(wire: Wire) -> dict[str, bytes]:
    """Frames that make no sense."""
    texts = {
        "not json": b"{oops}",
        "cut json": b'{"a": [1, 2',
        "a list": b"[1, 2]",
        "a number": b"17",
        "null": b"null",
        "broken utf-8": b'{"a": "\xff\xfe"}',
        "nested too deeply": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "a page": b"<html><body>502 Bad Gateway</body></html>",
    }
    if "event-stream" in wire.content_type:
        return {name: b"data: " + data + b"\n\n" for name, data in texts.items()}
    return {name: data + b"\n" for name, data in texts.items()}


async def test_a_malformed_frame_is_an_error_and_never_skipped(wire: Wire) -> None:
    for body in (wire.said("one", " two", " three"), two_calls(wire)):
        whole_from = [at for at in borders(wire, body) if offline(wire.scheme(), body[:at])[1]]
        for at in whole_from:
            for name, bad in garbage(wire).items():
                events, error = offline(wire.scheme(), body[:at] + bad + body[at:])
                assert isinstance(error, StreamBroken), (name, at)
                assert problems(events, error) == [], (name, at)
                before, _ = offline(wire.scheme(), body[:at])
                assert numbered(meaning(events)) == numbered(meaning(before)), (name, at)


async def test_garbage_midway_over_http(wire: Wire) -> None:
    body = wire.said("one", " two", " three")
    middle = borders(wire, body)[-1]
    for at in borders(wire, body):
        if any(isinstance(e, BlockDelta) for e in offline(wire.scheme(), body[:at])[0]):
            middle = at
            break
    events, error = await asked(wire, body[:middle] + garbage(wire)["not json"], Nothing())
    assert meaning(events) == cut_text("one")
    assert isinstance(error, StreamBroken)
    assert error.provider == "fake"


async def test_an_error_inside_is_classified_and_ends_every_block(wire: Wire) -> None:
    for body in (wire.said("one", " two", " three"), two_calls(wire)):
        for at in borders(wire, body):
            before, broke = offline(wire.scheme(), body[:at])
            if broke is None:
                continue
            events, error = offline(wire.scheme(), body[:at] + wire.error("so busy") + body[at:])
            assert error is not None
            assert (error.retryable, error.provider) == (True, "fake")
            assert error.status in (503, 529)
            assert "so busy" in error.message
            assert problems(events, error) == []
            assert numbered(meaning(events)) == numbered(meaning(before))


async def test_an_error_midway_is_a_broken_stream_and_says_nothing_twice(wire: Wire) -> None:
    body = wire.said("one", " two")
    frames = wire.frames(body)
    told = next(
        n
        for n in range(1, len(frames))
        if any(isinstance(e, BlockDelta) for e in offline(wire.scheme(), b"".join(frames[:n]))[0])
    )
    cut = b"".join(frames[:told]) + wire.error("so busy")
    async with FakeServer(wire.reply(cut), wire.reply(body)) as server:
        events, error = await Rig(server.url, wire.scheme()).ask()
        assert len(server.exchanges) == 1
    assert meaning(events) == cut_text("one")
    assert isinstance(error, StreamBroken)
    assert error.status in (503, 529)


async def test_a_frame_without_end_is_an_error_before_it_fills_the_memory(wire: Wire) -> None:
    start = wire.frames(wire.said("one", " two"))[0].rstrip()
    reader = wire.scheme().reader()
    endless = itertools.chain([start[: len(start) // 2]], itertools.repeat(b"x" * 1_000_000, 100))
    fed = 0
    with pytest.raises(StreamBroken, match="than any reply should"):
        for piece in endless:
            fed += len(piece)
            for _ in reader.feed(piece):
                pass
    assert fed < 70_000_000


async def test_a_connection_left_open_behind_a_whole_reply_is_not_waited_for(wire: Wire) -> None:
    body = wire.said("hello", " world")
    reply = replace(wire.reply(body), steps=[body, STALL])
    async with FakeServer(reply) as server, asyncio.timeout(20):  # of 30 s idle time
        events, error = await Rig(server.url, wire.scheme()).ask()
        await (await server.exchange()).gone.wait()
    assert (meaning(events), error) == ([*text(0, "hello", " world"), USAGE, FINISHED], None)


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
