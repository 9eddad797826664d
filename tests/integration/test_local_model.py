"""The embedded model with real weights in its real child process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import psutil
import pytest

from agentls.agent.turn import Limits
from agentls.core.errors import BadRequest, ModelError, StreamBroken
from agentls.core.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Status,
    Usage,
)
from agentls.core.messages import Message, TextBlock, ToolCall
from agentls.core.requests import ModelRequest, ToolDefinition
from agentls.llm.embedded.local import LocalModel, local_model
from agentls.llm.embedded.local_spec import find
from support.agent_fakes import rig
from support.proofs import proving

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]

LOADING = Status(state="requesting", message="loading smollm2…")


@pytest.fixture
async def model(smollm2_path: Path) -> AsyncGenerator[LocalModel, None]:
    made = local_model("smollm2", smollm2_path.parent, context_tokens=1024)
    assert isinstance(made, LocalModel)
    yield made
    await made.aclose()


def asking(text: str, max_tokens: int = 24) -> ModelRequest:
    return ModelRequest(items=(Message.of("user", text),), max_tokens=max_tokens)


async def reply(model: LocalModel, request: ModelRequest) -> list[Event]:
    return [event async for event in model.stream(request)]


def said(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, BlockDelta))


def children() -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process().children()
        if "agentls.llm.embedded.llama_worker" in child.cmdline()
    ]


def cpu_s(child: psutil.Process) -> float:
    times = child.cpu_times()
    return times.user + times.system


async def is_quiet(child: psutil.Process, within_s: float) -> bool:
    """Whether the child stops computing within the time."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        before = cpu_s(child)
        await asyncio.sleep(0.2)  # a span to measure, not a wait for something to happen
        if cpu_s(child) - before < 0.04:
            return True
    return False


@proving("local", "text", "usage", "cache", peer="llama.cpp in a child")
async def test_real_text_streams(model: LocalModel) -> None:
    events = await reply(model, asking("Write one sentence about the sea."))
    text = said(events)
    assert events[:2] == [LOADING, BlockStart(index=0, block="text")]
    usage, finished = events[-2:]
    assert events[-3] == BlockStop(index=0, item=Message.of("assistant", text))
    assert sum(isinstance(event, BlockDelta) for event in events) > 5
    assert "sea" in text.lower() or "ocean" in text.lower()
    assert isinstance(usage, Usage)
    assert usage.input_tokens > 5
    assert 5 < usage.output_tokens <= 24
    assert isinstance(finished, Status)
    assert finished.state == "finished"
    again = await reply(model, asking("Write one sentence about the sea."))
    assert LOADING not in again
    known = next(event for event in again if isinstance(event, Usage))
    assert known.cache_read_tokens > 5
    assert said(again) == text


async def test_nothing_listens_but_a_private_socket(model: LocalModel) -> None:
    await reply(model, asking("hi", 2))
    (child,) = children()
    assert child.net_connections(kind="inet") == []
    assert os.getpgid(child.pid) != os.getpgid(0)
    folder = Path(child.cwd())
    assert sorted(path.name for path in folder.iterdir()) == ["llm.sock"]
    await model.aclose()
    await model.aclose()
    assert not child.is_running()
    assert not folder.exists()


async def test_a_child_killed_between_requests_is_replaced(model: LocalModel) -> None:
    first = await reply(model, asking("Say hello.", 6))
    (child,) = children()
    child.kill()
    assert await reply(model, asking("Say hello.", 6)) == first


async def test_a_child_killed_in_a_reply_breaks_that_reply_alone(model: LocalModel) -> None:
    with pytest.raises(StreamBroken, match="killed by the system"):
        async for event in model.stream(asking("Tell a long story.", 900)):
            if isinstance(event, BlockDelta):
                for child in children():
                    child.kill()
    assert said(await reply(model, asking("Say hello.", 6)))


@proving("local", "resume", peer="llama.cpp in a child")
async def test_a_turn_goes_on_with_a_new_child(model: LocalModel) -> None:
    killed = False
    talk = rig(model, limits=Limits(max_tokens=24))

    async def sink(event: Event) -> None:
        nonlocal killed
        talk.events.append(event)
        if isinstance(event, BlockDelta) and not killed:
            killed = True
            for child in children():
                child.kill()

    await talk.session.prompt((TextBlock(text="Tell a story."),), sink=sink, approver=talk.approver)
    told = [e for e in talk.events if isinstance(e, Status) and e.state == "retrying"]
    assert len(told) == 1
    text = "".join(e.text for e in talk.events if isinstance(e, BlockDelta))
    assert [item for item in talk.history() if isinstance(item, Message)][1:] == [
        Message.of("assistant", text)
    ]


@proving("local", "cancel", peer="llama.cpp in a child")
async def test_cancelling_stops_the_engine_too(model: LocalModel) -> None:
    events = model.stream(asking("Tell a long story.", 900))
    async for event in events:
        if isinstance(event, BlockDelta):
            break
    (child,) = children()
    started = time.monotonic()
    await events.aclose()
    assert time.monotonic() - started < 0.5
    assert await is_quiet(child, within_s=5)
    assert said(await reply(model, asking("Say hello.", 6)))


async def test_cancelling_stops_the_reading_of_a_prompt(model: LocalModel) -> None:
    await reply(model, asking("hi", 2))
    (child,) = children()
    before = cpu_s(child)
    request = asking("Sum this up: " + "The quick brown fox jumps over the lazy dog. " * 90)
    task = asyncio.create_task(reply(model, request))
    async with asyncio.timeout(30):
        while cpu_s(child) - before < 0.2:  # noqa: ASYNC110 - the kernel sends no event for it
            await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await is_quiet(child, within_s=10)


async def test_two_requests_at_once_are_both_answered(model: LocalModel) -> None:
    requests = [asking("Count from one to five."), asking("Name a colour.")]
    alone = [said(await reply(model, request)) for request in requests]
    together = await asyncio.gather(*(reply(model, request) for request in requests))
    assert [said(events) for events in together] == alone


async def test_two_first_requests_load_one_model(model: LocalModel) -> None:
    both = await asyncio.gather(*(reply(model, asking("hi", 3)) for _ in range(2)))
    assert [events[0] for events in both] == [LOADING, LOADING]
    assert len(children()) == 1


async def test_a_prompt_beyond_the_context_is_refused(model: LocalModel) -> None:
    with pytest.raises(BadRequest, match="context"):
        await reply(model, asking("word " * 3000))
    assert said(await reply(model, asking("Say hello.", 6)))


async def test_a_truncated_file_is_said_so(smollm2_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    with smollm2_path.open("rb") as whole:
        path.write_bytes(whole.read(50_000_000))
    model = LocalModel(find(str(path), tmp_path))
    with pytest.raises(ModelError, match=r"could not be loaded: .*corrupted or incomplete"):
        await reply(model, asking("hi"))
    await model.aclose()
    assert children() == []


# --- the parent's end ------------------------------------------------------------------------

_PARENT = """
import asyncio, sys
from pathlib import Path
from agentls.core.messages import Message
from agentls.core.requests import ModelRequest
from agentls.llm.embedded.local import local_model

async def main():
    model = local_model("smollm2", Path(sys.argv[1]))
    request = ModelRequest(items=(Message.of("user", "Tell a long story."),), max_tokens=900)
    async for event in model.stream(request):
        print(event.type, flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("moment", ["status", "block_delta"])
@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
async def test_the_child_dies_with_its_parent(
    smollm2_path: Path, moment: str, ending: signal.Signals
) -> None:
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _PARENT, str(smollm2_path.parent)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    while (await parent.stdout.readline()).decode().strip() != moment:
        pass
    watched = psutil.Process(parent.pid)
    async with asyncio.timeout(30):
        while not (found := watched.children()):  # noqa: ASYNC110 - nor for this
            await asyncio.sleep(0.005)
    parent.send_signal(ending)
    started = time.monotonic()
    await parent.wait()
    while any(map(runs, found)) and time.monotonic() < started + 2:  # noqa: ASYNC110 - nor for this
        await asyncio.sleep(0.005)
    alive = [child for child in found if runs(child)]
    for child in alive:
        child.kill()
    assert alive == []


def runs(child: psutil.Process) -> bool:
    """Whether a process is there and alive: init may take its time to collect a dead one."""
    try:
        return child.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# --- tool calls ------------------------------------------------------------------------------

READ = ToolDefinition(
    name="read_file",
    description="Read a text file, or its lines start_line to end_line.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "start_line": {"type": "integer"},
            "end_line": {"type": "integer"},
        },
        "required": ["path"],
    },
)
GREP = ToolDefinition(
    name="grep",
    description="Search file contents for a regular expression.",
    parameters={
        "type": "object",
        "properties": {"pattern": {"type": "string"}},
        "required": ["pattern"],
    },
)


@proving("local", "tools", peer="llama.cpp in a child")
async def test_a_model_held_to_a_schema_picks_the_tool(qwen_path: Path) -> None:
    model = local_model("qwen1.5b", qwen_path.parent, context_tokens=1024)
    request = ModelRequest(
        system="You are a coding agent. Paths are relative to the workspace.",
        items=(Message.of("user", "Show setup.py"),),
        tools=(GREP, READ),
    )
    try:
        events = [event async for event in model.stream(request)]
    finally:
        await model.aclose()
    (item,) = [event.item for event in events if isinstance(event, BlockStop)]
    assert isinstance(item, ToolCall)
    assert (item.name, item.arguments) == ("read_file", {"path": "setup.py"})
    assert events[-1] == Status(state="finished", stop_reason="tool_use")
