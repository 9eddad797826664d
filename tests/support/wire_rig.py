"""What tests of all wire formats share: replies through faults, and where to cut them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

from agentls.core.errors import ModelError
from agentls.core.events import (
    Event,
    Ping,
)
from agentls.llm.wire.scheme import Scheme
from support.fake_server import FakeServer
from support.fault_proxy import FaultProxy
from support.faults import (
    Fault,
)
from support.openai_rig import Rig
from support.wires.wire import Wire

READ = ("c1", "read_file", {"path": "ü😀.py", "lines": [1, 2]})
GLOB = ("c2", "glob", {"pattern": "*.py"})


def two_calls(wire: Wire) -> bytes:
    """A reply of two calls."""
    return wire.called(READ, GLOB)


def offline(scheme: Scheme, *slices: bytes) -> tuple[list[Event], ModelError | None]:
    """What the format's reader alone makes of bytes."""
    reader = scheme.reader({})
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
