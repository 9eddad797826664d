"""What a reply costs from the socket to events, in every wire format, beside httpx alone.

Prints one JSON object. A server in a thread of its own sends 2,000 deltas; processor time is that
of the reading thread. `cpu_ratio` is over httpx reading the same bytes and dropping them, in the
same minute; decoder, reader and `httpx_mb_s` take a long stream in slices of 64 KiB. `cancel` is
the time from cancelling a reader of a stalled reply until the server sees its socket closed.

    python tests/bench stream
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from threading import Thread
from typing import Any

import httpx

from agentls.core.events import BlockDelta
from agentls.llm.wire.ndjson import NDJSONDecoder
from agentls.llm.wire.sse import SSEDecoder
from support.fake_server import STALL, FakeServer, Reply
from support.openai_rig import HI, Rig
from support.wires.all_wires import WIRES
from support.wires.wire import Wire

DELTAS = 2_000
LONG_DELTAS = 20_000
ROUNDS = 5
CANCELS = 20
_SLICE = 64 * 1024
TARGETS = {"cpu_s": 0.3, "cancel_p95_ms": 100.0}


class Sender:
    """A server in a thread that answers every request with the same stream."""

    def __init__(self, content_type: str, pieces: Iterable[bytes]) -> None:
        """`pieces` are written one by one."""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n"
        self._pieces = [head.encode(), *pieces]
        self.url = ""

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Serve until the context is left."""
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(asyncio.start_server(self._answer, "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        thread = Thread(target=loop.run_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            server.close()
            loop.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
        await reader.readexactly(int(length or 0))
        for piece in self._pieces:
            writer.write(piece)
            await writer.drain()
        writer.close()


async def through_model(wire: Wire, url: str) -> tuple[float, float]:
    """Processor and wall seconds for one reply as events, the connection included."""
    rig = Rig(url, wire.scheme())
    async with rig.model() as model:
        cpu, wall = time.thread_time(), time.perf_counter()
        deltas = 0
        async for event in model.stream(HI):
            deltas += isinstance(event, BlockDelta)
        spent = time.thread_time() - cpu, time.perf_counter() - wall
    assert deltas == DELTAS, deltas
    return spent


async def through_httpx(url: str) -> float:
    """Processor seconds for the bytes of the same reply, dropped as they come."""
    async with httpx.AsyncClient(trust_env=False) as client:
        cpu = time.thread_time()
        async with client.stream("POST", url, json={}) as response:
            async for _ in response.aiter_bytes():
                pass
        return time.thread_time() - cpu


def best_s(run: Callable[[], int]) -> float:
    """Processor seconds of the fastest of several runs."""
    times = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        assert run() > 0
        times.append(time.thread_time() - start)
    return min(times)


def slices(stream: bytes) -> Iterator[bytes]:
    """The stream as a fast network gives it."""
    return (stream[at : at + _SLICE] for at in range(0, len(stream), _SLICE))


def decoding(wire: Wire, stream: bytes) -> float:
    """Processor seconds of the format's decoder alone."""

    def run() -> int:
        decoder = NDJSONDecoder() if "ndjson" in wire.content_type else SSEDecoder()
        return sum(len(decoder.feed(piece)) for piece in slices(stream))

    return best_s(run)


def reading(wire: Wire, stream: bytes) -> float:
    """Processor seconds of the format's reader: frames, JSON and events."""

    def run() -> int:
        reader = wire.scheme().reader({})
        return sum(1 for piece in slices(stream) for _ in reader.feed(piece))

    return best_s(run)


async def cancelling(wire: Wire) -> list[float]:
    """Milliseconds from cancelling to the closed socket."""
    body = wire.frames(wire.said("a", "b"))[:-1]
    stalled = Reply([*body, STALL], headers={"Content-Type": wire.content_type})
    times = []
    async with FakeServer(*[stalled] * CANCELS) as server:
        for number in range(1, CANCELS + 1):
            async with Rig(server.url, wire.scheme()).model() as model:
                shown = asyncio.Event()

                async def consume() -> None:
                    async with contextlib.aclosing(model.stream(HI)) as events:
                        async for event in events:
                            if isinstance(event, BlockDelta):
                                shown.set()  # noqa: B023

                task = asyncio.create_task(consume())
                exchange = await server.exchange(number)
                await shown.wait()
                start = time.perf_counter()
                task.cancel()
                await exchange.gone.wait()
                times.append((time.perf_counter() - start) * 1000)
                await asyncio.gather(task, return_exceptions=True)
    return times


def measure(wire: Wire) -> dict[str, Any]:
    """All figures of one wire format."""
    words = [f" word{n % 97}" for n in range(LONG_DELTAS)]
    sender = Sender(wire.content_type, wire.frames(wire.said(*words[:DELTAS])))
    ours: list[tuple[float, float]] = []
    bare: list[float] = []
    with sender.serving():
        for _ in range(ROUNDS):
            ours.append(asyncio.run(through_model(wire, sender.url)))
            bare.append(asyncio.run(through_httpx(sender.url)))
    stream = wire.said(*words)
    sender = Sender(wire.content_type, slices(stream))
    with sender.serving():
        raw_s = min(asyncio.run(through_httpx(sender.url)) for _ in range(ROUNDS))
    megabytes = len(stream) / 1e6
    decoder_s, reader_s = decoding(wire, stream), reading(wire, stream)
    cancels = asyncio.run(cancelling(wire))
    cpu_s = min(cpu for cpu, _ in ours)
    return {
        "cpu_s": round(cpu_s, 3),
        "cpu_ratio": round(cpu_s / min(bare), 2),
        "deltas_per_s": round(DELTAS / min(wall for _, wall in ours)),
        "httpx_mb_s": round(megabytes / raw_s),
        "decoder_mb_s": round(megabytes / decoder_s),
        "decoder_over_httpx": round(raw_s / decoder_s, 2),
        "reader_mb_s": round(megabytes / reader_s, 1),
        "cancel_p50_ms": round(statistics.median(cancels), 2),
        "cancel_p95_ms": round(statistics.quantiles(cancels, n=20)[-1], 2),
    }


def main() -> None:
    """Measure and print."""
    figures = {wire.name: measure(wire) for wire in WIRES}
    print(json.dumps({"benchmark": "stream", "deltas": DELTAS, **figures, "targets": TARGETS}))


if __name__ == "__main__":
    main()
