"""What networks and servers do to replies. `fault_proxy` carries it out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Nothing:
    """Pass everything on as it comes."""


@dataclass(frozen=True)
class Slices:
    """The body in chunks of `size` bytes."""

    size: int = 1


@dataclass(frozen=True)
class Delays:
    """Each piece but the first waits for `tick`, which is cleared again."""

    tick: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class Stall:
    """Silence behind `after_bytes` of the body, until the client goes away."""

    after_bytes: int = 0


@dataclass(frozen=True)
class PingsOnly:
    """In place of the body `count` frames that say nothing, then silence."""

    ping: bytes
    count: int = 3


@dataclass(frozen=True)
class Reset:
    """The connection is reset behind `after_bytes` of the body."""

    after_bytes: int = 0


@dataclass(frozen=True)
class Truncate:
    """Nothing more behind `after_bytes` of the body.

    The connection is closed; `ended` says that this was all in the terms of HTTP.
    """

    after_bytes: int = 0
    ended: bool = False


@dataclass(frozen=True)
class Status:
    """A status and a body; the request does not reach the server."""

    code: int
    retry_after: str | None = None
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ErrorUnder200:
    """Status 200 and this body; the request does not reach the server."""

    body: bytes
    content_type: str = "application/json"


Fault = Nothing | Slices | Delays | Stall | PingsOnly | Reset | Truncate | Status | ErrorUnder200


async def applied(body: AsyncGenerator[bytes, None], fault: Fault) -> AsyncGenerator[bytes, None]:
    """The pieces of a body with a fault in it; how the connection ends is the proxy's to do."""
    match fault:
        case Slices(size=size):
            async for piece in body:
                for at in range(0, len(piece), size):
                    yield piece[at : at + size]
        case Delays(tick=tick):
            first = True
            async for piece in body:
                if not first:
                    await tick.wait()
                    tick.clear()
                first = False
                yield piece
        case Stall() | Reset() | Truncate():
            left = fault.after_bytes
            async for piece in body:
                yield piece[:left]
                left -= len(piece)
                if left <= 0:
                    break
        case PingsOnly():
            for _ in range(fault.count):
                yield fault.ping
        case _:
            async for piece in body:
                yield piece
