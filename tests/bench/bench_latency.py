"""What `agentls serve` adds to each token between the model's server and the editor.

A server on the loopback interface streams tokens that hold the time they were sent. They are read
once straight from the socket with httpx, once as `agent/session/update` from `agentls serve`, in
turns. At a model's usual pace each token is its own update; a flood shows the gathering to 60
updates a second, and what 2,000 tokens cost in processor time.

    python tests/bench latency
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import psutil

from support.frames import RawServer, read_frame

TOKENS = 200
PACE_S = 0.025
FLOOD_TOKENS = 2_000
ROUNDS = 3
TARGETS = {"added_p50_ms": 2.5, "added_p95_ms": 15.0, "flood_cpu_s": 0.3}

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class Tokens:
    """A model's server. Tokens and pace of the next answer are set from outside."""

    def __init__(self) -> None:
        self.count = 0
        self.pace_s = 0.0
        self.port = 0
        self.asked_ns = 0

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Serve from a thread with a loop of its own."""
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(asyncio.start_server(self._answer, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
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
        self.asked_ns = time.perf_counter_ns()
        writer.write(HEAD)
        for _ in range(self.count):
            if self.pace_s:
                await asyncio.sleep(self.pace_s)
            writer.write(event({"content": f"{time.perf_counter_ns()} "}))
            await writer.drain()
        writer.write(event({}, "stop") + b"data: [DONE]\n\n")
        await writer.drain()
        writer.close()


def event(delta: dict[str, str], finish: str | None = None) -> bytes:
    """One chunk of an OpenAI stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


class TimedServer(RawServer):
    """Notes how late each token came."""

    def __init__(self, workspace: Path, env: dict[str, str]) -> None:
        self.delays_ms: list[float] = []
        self.update_count = 0
        super().__init__(workspace, env=env)

    def _read(self) -> None:
        assert self.process.stdout is not None
        while (message := read_frame(self.process.stdout)) is not None:
            now = time.perf_counter_ns()
            update = message.get("params", {}).get("update", {}) if "method" in message else {}
            if update.get("sessionUpdate") == "agent_message_chunk":
                self.update_count += 1
                sent = update["content"]["text"].split()
                self.delays_ms += [(now - int(stamp)) / 1e6 for stamp in sent]
            self._incoming.put(message)
        self._incoming.put(None)


async def direct(tokens: Tokens) -> list[float]:
    """Delays of the same stream read with httpx alone, in ms."""
    delays: list[float] = []
    url = f"http://127.0.0.1:{tokens.port}/v1/chat/completions"
    async with httpx.AsyncClient() as client, client.stream("POST", url, json={}) as response:
        rest = b""
        async for data in response.aiter_bytes():
            now = time.perf_counter_ns()
            *whole, rest = (rest + data).split(b"\n\n")
            for one in whole:
                if one.startswith(b"data: {"):
                    delta = json.loads(one[6:])["choices"][0]["delta"]
                    delays += [
                        (now - int(stamp)) / 1e6 for stamp in delta.get("content", "").split()
                    ]
    return delays


def percentiles(values: list[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    return statistics.median(values), statistics.quantiles(values, n=20)[-1]


def run(tokens: Tokens, server: TimedServer, session_id: str) -> list[float]:
    """Delays of one answer through the language server, in ms."""
    server.delays_ms, server.update_count = [], 0
    result = server.response(server.send_prompt(session_id), 120)["result"]
    assert result["stopReason"] == "end_turn", result
    assert len(server.delays_ms) == tokens.count
    return server.delays_ms


def measure(count: int) -> dict[str, Any]:
    """All figures."""
    tokens = Tokens()
    with tempfile.TemporaryDirectory() as folder, tokens.serving():
        env = {
            "LLM_PROVIDER": "openai",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{tokens.port}/v1",
            "OPENAI_MODEL": "m",
            "OPENAI_API_KEY": "none",
        }
        with TimedServer(Path(folder), env) as server:
            server.initialize(Path(folder))
            session_id = server.new_session()
            tokens.count, tokens.pace_s = 20, 0.01
            run(tokens, server, session_id)
            tokens.count, tokens.pace_s = count, PACE_S
            ours: list[float] = []
            bare: list[float] = []
            firsts: list[float] = []
            requests: list[float] = []
            for _ in range(ROUNDS):
                prompted_ns = time.perf_counter_ns()
                delays = run(tokens, server, session_id)
                requests.append((tokens.asked_ns - prompted_ns) / 1e6)
                firsts.append(delays[0])
                ours += delays
                bare += asyncio.run(direct(tokens))
            tokens.count, tokens.pace_s = FLOOD_TOKENS, 0.0
            process = psutil.Process(server.process.pid)
            before, start = process.cpu_times(), time.perf_counter()
            run(tokens, server, session_id)
            wall, after = time.perf_counter() - start, process.cpu_times()
            updates = server.update_count
    (p50, p95), (bare_p50, bare_p95) = percentiles(ours), percentiles(bare)
    return {
        "benchmark": "latency",
        "tokens": len(ours),
        "pace_ms": PACE_S * 1000,
        "agentls_p50_ms": round(p50, 2),
        "agentls_p95_ms": round(p95, 2),
        "httpx_p50_ms": round(bare_p50, 2),
        "httpx_p95_ms": round(bare_p95, 2),
        "added_p50_ms": round(p50 - bare_p50, 2),
        "added_p95_ms": round(p95 - bare_p95, 2),
        "ratio_p50": round(p50 / bare_p50, 2),
        "first_token_max_ms": round(max(firsts), 2),
        "prompt_to_request_ms": round(statistics.median(requests), 2),
        "flood_tokens": FLOOD_TOKENS,
        "flood_wall_s": round(wall, 3),
        "flood_cpu_s": round(sum(after[:2]) - sum(before[:2]), 3),
        "flood_updates_per_s": round(updates / wall, 1),
        "targets": TARGETS,
    }


def main() -> None:
    """Measure and print."""
    print(json.dumps(measure(TOKENS)))


if __name__ == "__main__":
    main()
