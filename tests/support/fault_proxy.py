"""A proxy on loopback that does to replies what networks and servers do to them.

It stands between a client and any server of HTTP/1.1, fake or real, takes bodies out of the
server's framing and sends them on in its own, with a fault. Pieces keep the borders they had as
chunks. Each request goes to the server over a connection of its own, which is closed as soon as
the client's is. Without a fault it changes nothing a client can read: test_stream_faults has the
vendor's own SDK judge that.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from support.fake_server import Exchange
from support.faults import (
    ErrorUnder200,
    Fault,
    Nothing,
    PingsOnly,
    Reset,
    Stall,
    Status,
    Truncate,
    applied,
)


@dataclass(frozen=True)
class _Answer:
    head: bytes
    body: AsyncGenerator[bytes, None]


class FaultProxy:
    """Use as an async context manager; `url` stands for the server's.

    The first request meets the first fault and so on; those behind the last meet the last.
    `exchanges` holds what clients sent, and for each request the event of its client's socket
    being closed.
    """

    def __init__(self, upstream_url: str, *faults: Fault) -> None:
        """Nothing is opened yet."""
        parts = urlsplit(upstream_url)
        assert parts.hostname is not None
        self._upstream = (parts.hostname, parts.port or 80)
        self._base_path = parts.path
        self.meet(*faults)
        self.exchanges: list[Exchange] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived = asyncio.Condition()

    def meet(self, *faults: Fault) -> None:
        """What the requests from now on meet."""
        self._faults = deque(faults or (Nothing(),))

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}{self._base_path}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close all connections."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def exchange(self, number: int = 1) -> Exchange:
        """The request with this number, as soon as it has come."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.exchanges) >= number)
        return self.exchanges[number - 1]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        early: bytes | None = b""
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while early is not None:
                    early = await self._serve(early, reader, writer)
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(
        self, early: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bytes | None:
        """One exchange, whose first bytes are `early`.

        Gives what has come of the next one; None when the connection is over.
        """
        first, headers = _parsed(early + await reader.readuntil(b"\r\n\r\n"))
        method, path, _ = first.split(" ")
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        exchange = Exchange(method, path, headers, body)
        self.exchanges.append(exchange)
        async with self._arrived:
            self._arrived.notify_all()
        answering = asyncio.ensure_future(self._answer(exchange, writer))
        watching = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((answering, watching), return_when=asyncio.FIRST_COMPLETED)
            early = b""
            if watching.done():
                early = watching.result()
                if not early:
                    exchange.gone.set()
                    return None
            return early if await answering else None
        except ConnectionError:
            exchange.gone.set()
            return None
        finally:
            for task in (answering, watching):
                task.cancel()
            await asyncio.gather(answering, watching, return_exceptions=True)

    async def _answer(self, exchange: Exchange, writer: asyncio.StreamWriter) -> bool:
        """Send the reply; False when the connection is over with it."""
        fault = self._faults.popleft() if len(self._faults) > 1 else self._faults[0]
        match fault:
            case Status():
                writer.write(_refusal(fault))
                return True
            case ErrorUnder200():
                writer.write(_head(200, ("Content-Type", fault.content_type)))
                writer.write(_chunk(fault.body) + _END)
                return True
            case _:
                pass
        async with self._asked(exchange) as answer:
            writer.write(answer.head)
            async with contextlib.aclosing(applied(answer.body, fault)) as pieces:
                async for piece in pieces:
                    if piece:
                        writer.write(_chunk(piece))
                        await writer.drain()
            match fault:
                case Stall() | PingsOnly():
                    await asyncio.Event().wait()
                case Reset():
                    _reset(writer)
                    return False
                case Truncate(ended=False):
                    return False
                case _:
                    writer.write(_END)
                    await writer.drain()
        return True

    @contextlib.asynccontextmanager
    async def _asked(self, exchange: Exchange) -> AsyncGenerator[_Answer, None]:
        reader, writer = await asyncio.open_connection(*self._upstream)
        try:
            writer.write(_forwarded(exchange, self._upstream))
            await writer.drain()
            first, headers = _parsed(await reader.readuntil(b"\r\n\r\n"))
            status = int(first.split(" ")[1])
            kept = [(k, v) for k, v in headers.items() if k not in _FRAMING]
            async with contextlib.aclosing(_body(reader, headers)) as body:
                yield _Answer(_head(status, *kept), body)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


_FRAMING = frozenset({"connection", "keep-alive", "content-length", "transfer-encoding"})
_END = b"0\r\n\r\n"


def _parsed(head: bytes) -> tuple[str, dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return first, {name.lower(): value.strip() for name, _, value in pairs}


def _head(status: int, *headers: tuple[str, str]) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers]
    text = "\r\n".join([f"HTTP/1.1 {status} Status", *lines, "Transfer-Encoding: chunked", "", ""])
    return text.encode("latin-1")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


def _refusal(fault: Status) -> bytes:
    headers = [("Content-Type", "application/json"), *fault.headers]
    if fault.retry_after is not None:
        headers.append(("Retry-After", fault.retry_after))
    return _head(fault.code, *headers) + _chunk(fault.body) + _END


def _forwarded(exchange: Exchange, upstream: tuple[str, int]) -> bytes:
    kept = {k: v for k, v in exchange.headers.items() if k not in {"host", *_FRAMING}}
    lines = [
        f"{exchange.method} {exchange.path} HTTP/1.1",
        f"Host: {upstream[0]}:{upstream[1]}",
        "Connection: close",
        f"Content-Length: {len(exchange.body)}",
        *(f"{name}: {value}" for name, value in kept.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + exchange.body


async def _body(
    reader: asyncio.StreamReader, headers: dict[str, str]
) -> AsyncGenerator[bytes, None]:
    """The body in the pieces it comes in, chunks as they were made."""
    if headers.get("transfer-encoding") == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
            yield (await reader.readexactly(size + 2))[:-2]
        return
    left = int(headers["content-length"]) if "content-length" in headers else None
    while left != 0 and (piece := await reader.read(min(left or 65536, 65536))):
        left = None if left is None else left - len(piece)
        yield piece


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
