"""What goes wrong inside a reply, in every wire format: slices, breaks, garbage, errors."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest

from agentls.core.errors import ModelError, StreamBroken
from agentls.core.events import (
    BlockDelta,
    Event,
    Ping,
    Status,
)
from support.fake_server import STALL, FakeServer
from support.fault_proxy import FaultProxy
from support.faults import (
    Delays,
    Fault,
    Nothing,
    Reset,
    Slices,
    Truncate,
)
from support.openai_rig import HI, USAGE, Rig, retrying
from support.reply_events import FINISHED, cut_text, text
from support.stream_rules import called, numbered, problems
from support.wire_rig import asked, borders, meaning, offline, telling, two_calls
from support.wires.all_wires import WIRES
from support.wires.wire import Wire

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

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
    reader = wire.scheme().reader({})
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
