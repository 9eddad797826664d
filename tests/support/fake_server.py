"""A server on loopback that answers exactly the bytes a test asks for, and notes what it was sent.

It speaks just enough HTTP/1.1. Each request takes the next queued `Reply`; one that nobody queued
is answered with 418, which no client tries again. What it sends is judged by the vendors' own SDKs
in tests/integration/test_*_sdk.py, so that it is fair.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from pydantic import JsonValue

STALL: Literal["stall"] = "stall"
"""Say nothing more until the client goes away."""
CUT: Literal["cut"] = "cut"
"""Close the connection without ending the body."""
RESET: Literal["reset"] = "reset"
"""Reset the connection."""

Step = bytes | asyncio.Event | Literal["stall", "cut", "reset"]
"""Bytes to send, an event to wait for, or one of the ends above."""

_NO_REPLY = b'{"error": {"message": "the test queued no reply for this request"}}'


@dataclass(frozen=True)
class Reply:
    """One response. `framing` "chunked" sends each piece of bytes as a chunk of its own."""

    steps: Sequence[Step] = ()
    status: int = 200
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"Content-Type": "text/event-stream"}
    )
    framing: Literal["chunked", "close"] = "chunked"


@dataclass
class Exchange:
    """A request as it came, and when its client went away (or its reply was over)."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.body)


def refused(status: int, body: JsonValue = None, **headers: str) -> Reply:
    """An error with a JSON body; `retry_after="1"` becomes the header Retry-After."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    document = [] if body is None else [json.dumps(body).encode()]
    return Reply(document, status, {"Content-Type": "application/json", **named})


class FakeServer:
    """Use as an async context manager; `url` is its address, without a path."""

    def __init__(self, *replies: Reply) -> None:
        """Queue replies now or later."""
        self.replies = deque(replies)
        self.exchanges: list[Exchange] = []
        self.url = ""
        self.connections = 0
        self._arrived = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
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

    async def all_closed(self) -> None:
        """Wait until clients have closed every connection."""
        await asyncio.gather(*self._tasks)

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
        self.connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._serve(reader, writer):
                    pass
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One exchange; False when the connection is over."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        exchange = Exchange(method, path, headers, body)
        self.exchanges.append(exchange)
        async with self._arrived:
            self._arrived.notify_all()
        json_type = {"Content-Type": "application/json"}
        reply = self.replies.popleft() if self.replies else Reply([_NO_REPLY], 418, json_type)
        watch = asyncio.ensure_future(_end_of(reader, exchange.gone))
        try:
            return await _answer(reply, writer, exchange.gone)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)
            if reply.framing == "close" or writer.is_closing():
                exchange.gone.set()


async def _end_of(reader: asyncio.StreamReader, gone: asyncio.Event) -> None:
    # A client sends nothing while it waits for its reply, so whatever ends this is the end.
    with contextlib.suppress(ConnectionError):
        await reader.read(1)
    gone.set()


async def _answer(reply: Reply, writer: asyncio.StreamWriter, gone: asyncio.Event) -> bool:
    headers = dict(reply.headers)
    chunked = reply.framing == "chunked"
    headers["Transfer-Encoding" if chunked else "Connection"] = reply.framing
    lines = [f"HTTP/1.1 {reply.status} Status", *(f"{k}: {v}" for k, v in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    for step in reply.steps:
        match step:
            case bytes():
                writer.write(b"%x\r\n%b\r\n" % (len(step), step) if chunked else step)
                await writer.drain()
            case asyncio.Event():
                if not await _either(step, gone):
                    return False
            case "stall":
                await gone.wait()
                return False
            case "cut":
                return False
            case "reset":
                await writer.drain()
                raw = writer.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
                return False
    if chunked:
        writer.write(b"0\r\n\r\n")
    await writer.drain()
    return chunked


async def _either(step: asyncio.Event, gone: asyncio.Event) -> bool:
    """Wait for the first; False when the client went away before."""
    waits = [asyncio.ensure_future(each.wait()) for each in (step, gone)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    return step.is_set()
