"""What a person sees while the embedded engine reads a long prompt: its own stream, replayed."""

from __future__ import annotations

import asyncio
import io
import sys
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from agentls.cli.plain import PlainView
from agentls.cli.streams import Output
from agentls.core.events import Event, Ping, Status, Usage
from agentls.core.requests import ModelInfo, ModelRequest
from agentls.llm.embedded.llama_process import LlamaProcess
from agentls.llm.embedded.local import LocalModel
from agentls.llm.embedded.local_spec import LocalSpec
from support.openai_streams import chunk, read, sse, usage_chunk
from support.reply_events import FINISHED, text

ANSWER = [
    chunk({"role": "assistant", "content": None}),
    chunk({"content": "hi"}),
    chunk({}, "stop"),
    usage_chunk(),
]
ANSWERED = [*text(0, "hi"), Usage(input_tokens=7, output_tokens=3), FINISHED]


def progress(processed: JsonValue, time_ms: JsonValue, cache: int = 0) -> dict[str, JsonValue]:
    """A chunk as the engine sends one for each batch of the prompt, here of 1000 tokens."""
    known: dict[str, JsonValue] = {"total": 1000, "cache": cache, "processed": processed}
    delta: dict[str, JsonValue] = {"role": "assistant", "content": None}
    return chunk(delta, prompt_progress={**known, "time_ms": time_ms})


def reading(*percents: int) -> list[Event]:
    return [Status(state="requesting", message=f"reading the prompt, {n} %") for n in percents]


def shown(*chunks: dict[str, JsonValue]) -> list[Event]:
    events, error = read(sse(*chunks, *ANSWER))
    assert error is None
    assert events[-len(ANSWERED) :] == ANSWERED
    return events[: -len(ANSWERED)]


def test_a_long_reading_is_told_every_five_seconds_and_not_at_its_end() -> None:
    batches = [progress(n * 10, n * 200) for n in range(101)]  # 20 s, five batches a second
    assert shown(*batches) == reading(25, 50, 75)


@pytest.mark.parametrize("took_ms", [100, 2999, 4999])
def test_a_short_reading_is_not_told(took_ms: int) -> None:
    assert shown(*(progress(n * 100, n * took_ms // 10) for n in range(11))) == []


def test_what_was_in_the_cache_does_not_count() -> None:
    assert shown(progress(800, 0, 800), progress(850, 6000, 800)) == reading(25)


def test_a_slow_batch_is_told_when_it_is_done() -> None:
    assert shown(progress(0, 0), progress(64, 30_000), progress(128, 31_000)) == reading(6)


@pytest.mark.parametrize(
    "odd",
    [
        None,
        [],
        "x",
        {},
        {"total": "1000", "processed": 1, "cache": 0, "time_ms": 9000},
        {"total": 0, "processed": 0, "cache": 0, "time_ms": 9000},
        {"total": 10, "processed": 1, "cache": 5, "time_ms": 9000},
        {"total": 10, "processed": 11, "cache": 0, "time_ms": 9000},
        {"total": 10, "processed": 5, "cache": 0, "time_ms": None},
        {"total": float("nan"), "processed": 5, "cache": 0, "time_ms": 9000},
    ],
)
def test_progress_that_makes_no_sense_is_left_out(odd: JsonValue) -> None:
    assert shown(chunk({"content": None}, prompt_progress=odd)) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs Unix sockets")
async def test_the_terminal_shows_loading_reading_and_the_answer(tmp_path: Path) -> None:
    """Over a real socket, through the model, to the lines a person reads."""
    stream = sse(*(progress(n * 100, n * 1500) for n in range(11)), *ANSWER)
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split()[0])
        asked.append(await reader.readexactly(length))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + stream)
        await writer.drain()
        writer.close()

    class Child:
        socket = tmp_path / "llm.sock"
        running = True

        async def stop(self) -> None:
            """Nothing runs."""

    async def start() -> LlamaProcess:
        return cast(LlamaProcess, Child())

    spec = LocalSpec(
        weights=tmp_path / "m.gguf",
        info=ModelInfo(provider="local", name="m"),
        context_tokens=2048,
    )
    model = LocalModel(spec, start=start)
    async with await asyncio.start_unix_server(answer, Child.socket):
        events = [event async for event in model.stream(ModelRequest())]
    await model.aclose()
    loading = Status(state="requesting", message="loading m…")
    told = [event for event in events if not isinstance(event, Ping)]
    assert told == [loading, *reading(40, 80), *ANSWERED]
    assert b'"return_progress": true' in asked[0]
    raw = io.BytesIO()
    stderr = Output(io.TextIOWrapper(raw, encoding="utf-8", newline=""))
    view = PlainView(Output(io.TextIOWrapper(io.BytesIO())), stderr)
    for event in events:
        await view.take(event)
    stderr.flush()
    assert raw.getvalue().decode() == (
        "· loading m…\n· reading the prompt, 40 %\n· reading the prompt, 80 %\n"
    )
