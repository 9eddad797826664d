"""How fast the SSE decoder is, beside httpx reading the same bytes over loopback.

Prints one JSON object. The reference runs in the same process and the same minute, so the ratio
holds on any machine; the reader's figure adds JSON and events on top of the decoder.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable

import httpx

from agentls.llm.schemes.openai_chat_reader import ChatReader
from agentls.llm.wire.sse import SSEDecoder

_SLICE = 64 * 1024
_ROUNDS = 5


def stream_of(events: int) -> bytes:
    """A stream as servers send it: one short delta an event."""
    frames = []
    for number in range(events):
        delta = {"content": f" word{number % 97}"}
        chunk = {
            "id": "chatcmpl-abcdefghijklmnopqrstuvwxyz123456",
            "object": "chat.completion.chunk",
            "created": 1_796_059_738,
            "model": "some-model-name-2026",
            "system_fingerprint": "fp_0123456789",
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}],
        }
        frames.append(f"data: {json.dumps(chunk)}\n\n")
    frames.append('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
    return "".join([*frames, "data: [DONE]\n\n"]).encode()


def best_s(run: Callable[[], int]) -> float:
    """Seconds of the fastest of several runs."""
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        assert run() > 0
        times.append(time.perf_counter() - start)
    return min(times)


def decode(stream: bytes, size: int = _SLICE) -> int:
    """Frames found, fed in slices."""
    decoder = SSEDecoder()
    return sum(len(decoder.feed(stream[at : at + size])) for at in range(0, len(stream), size))


def read(stream: bytes) -> int:
    """Events found, fed in slices."""
    reader = ChatReader("bench", lambda: "id")
    return sum(
        sum(1 for _ in reader.feed(stream[at : at + _SLICE]))
        for at in range(0, len(stream), _SLICE)
    )


async def over_loopback(stream: bytes) -> float:
    """Seconds httpx takes to read the stream and do nothing with it, the fastest of several."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(stream))
        for at in range(0, len(stream), _SLICE):
            writer.write(stream[at : at + _SLICE])
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    times = []
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server, httpx.AsyncClient(trust_env=False) as client:
        for _ in range(_ROUNDS):
            start = time.perf_counter()
            async with client.stream("GET", url) as response:
                size = 0
                async for piece in response.aiter_bytes():
                    size += len(piece)
            assert size == len(stream)
            times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Measure and print."""
    stream = stream_of(40_000)
    megabytes = len(stream) / 1e6
    decoder = megabytes / best_s(lambda: decode(stream))
    tokens = megabytes / best_s(lambda: decode(stream, 290))
    reader_s = best_s(lambda: read(stream))
    httpx_alone = megabytes / asyncio.run(over_loopback(stream))
    print(
        json.dumps(
            {
                "stream_mb": round(megabytes, 1),
                "decoder_mb_s": round(decoder),
                "decoder_small_slices_mb_s": round(tokens),
                "httpx_aiter_bytes_mb_s": round(httpx_alone),
                "decoder_over_httpx": round(decoder / httpx_alone, 2),
                "reader_mb_s": round(megabytes / reader_s),
                "reader_deltas_s": round(40_000 / reader_s),
            }
        )
    )


if __name__ == "__main__":
    main()
