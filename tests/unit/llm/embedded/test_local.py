"""Which weights a name means, and how the embedded model deals with its child."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import pytest

from agentls.core.errors import ModelError, NoModel, SettingsError
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest
from agentls.llm.embedded.catalogue import CATALOGUE
from agentls.llm.embedded.constrained import ConstrainedModel
from agentls.llm.embedded.llama_process import LlamaProcess
from agentls.llm.embedded.local import LocalModel, local_model
from agentls.llm.embedded.local_spec import LocalSpec, default_weights, find, names_weights
from agentls.llm.embedded.processors import physical_cores


def sparse(path: Path, size: int) -> None:
    """A GGUF file of a size that says nothing of its context."""
    with path.open("wb") as file:
        file.write(b"GGUF")
        file.truncate(size)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("qwen0.5b", "smollm2"):
        sparse(tmp_path / CATALOGUE[name].file, CATALOGUE[name].size_bytes)
    return tmp_path


def test_names_of_embedded_models() -> None:
    assert [names_weights(n) for n in ("qwen1.5b", "smollm2", "x/y.GGUF", "gpt-5", "")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_the_best_that_is_installed_is_the_default(folder: Path, tmp_path: Path) -> None:
    assert default_weights(folder) == "qwen0.5b"
    assert default_weights(tmp_path / "empty") is None
    assert find("", folder).info.name == "qwen0.5b"


def test_a_catalogue_model(folder: Path) -> None:
    spec = find("qwen0.5b", folder, threads=3)
    assert spec == LocalSpec(
        weights=folder / CATALOGUE["qwen0.5b"].file,
        info=ModelInfo(
            provider="local",
            name="qwen0.5b",
            capabilities=Capabilities(tool_calling="constrained", context_window=4096),
        ),
        context_tokens=4096,  # what is assumed when the file does not say
        max_reply_tokens=1024,
        threads=3,
    )


@pytest.mark.parametrize(("size", "calling"), [(1000, "none"), (400_000_000, "constrained")])
def test_a_file_by_its_path(tmp_path: Path, size: int, calling: str) -> None:
    path = tmp_path / "My Model.gguf"
    sparse(path, size)
    spec = find(str(path), tmp_path, context_tokens=1024)
    assert (spec.weights, spec.info.name, spec.context_tokens) == (path, "My Model", 1024)
    assert spec.info.capabilities == Capabilities(
        tool_calling=calling,
        context_window=1024,
    )


def test_what_is_not_there_is_said_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(NoModel, match=r"Run `agentls model pull qwen1\.5b` \(1,117 MB\)"):
        find("qwen1.5b", tmp_path)
    with pytest.raises(NoModel, match=r"model pull qwen1\.5b"):
        find("", tmp_path)
    with pytest.raises(SettingsError, match="no embedded model named 'gpt-5'"):
        find("gpt-5", tmp_path)
    with pytest.raises(SettingsError, match="cannot be read"):
        find(str(tmp_path / "none.gguf"), tmp_path)


def test_only_models_held_to_a_schema_are_wrapped(folder: Path) -> None:
    assert isinstance(local_model("qwen0.5b", folder), ConstrainedModel)
    assert isinstance(local_model("smollm2", folder), LocalModel)


def test_threads_are_at_most_the_processors_this_process_may_use() -> None:
    assert physical_cores() == -1 or 1 <= physical_cores() <= len(os.sched_getaffinity(0))


# --- the child -------------------------------------------------------------------------------


class Child:
    """Stands in for a `LlamaProcess` on whose socket nobody listens."""

    def __init__(self, folder: Path, *, running: bool = True) -> None:
        self.socket = folder / "llm.sock"
        self.running = running
        self.stops = 0

    async def death(self, within_s: float) -> str | None:
        return None if self.running else "it was killed."

    async def stop(self) -> None:
        self.stops += 1


def spec(folder: Path) -> LocalSpec:
    info = ModelInfo(provider="local", name="m")
    return LocalSpec(weights=folder / "m.gguf", info=info, context_tokens=512)


async def drain(events: AsyncGenerator[object, None]) -> list[object]:
    return [event async for event in events]


async def test_a_start_that_fails_is_tried_again_by_the_next_request(tmp_path: Path) -> None:
    starts = 0

    async def start() -> LlamaProcess:
        nonlocal starts
        starts += 1
        raise ModelError(f"No memory ({starts}).")

    model = LocalModel(spec(tmp_path), start=start)
    for number in (1, 2):
        with pytest.raises(ModelError, match=rf"No memory \({number}\)"):
            await drain(model.stream(ModelRequest()))
    await model.aclose()


async def test_a_child_that_died_unseen_is_replaced_once(tmp_path: Path) -> None:
    children = [Child(tmp_path, running=False) for _ in range(3)]
    left = iter(children)

    async def start() -> LlamaProcess:
        return cast(LlamaProcess, next(left))

    model = LocalModel(spec(tmp_path), start=start)
    with pytest.raises(ModelError, match="The embedded model m stopped: it was killed"):
        await drain(model.stream(ModelRequest()))
    assert [child.stops for child in children] == [1, 0, 0]
    await model.aclose()
    assert [child.stops for child in children] == [1, 1, 0]


async def test_cancelling_the_one_who_waits_lets_the_loading_go_on(tmp_path: Path) -> None:
    loading, loaded, child = asyncio.Event(), asyncio.Event(), Child(tmp_path)
    starts = 0

    async def start() -> LlamaProcess:
        nonlocal starts
        starts += 1
        loading.set()
        await loaded.wait()
        return cast(LlamaProcess, child)

    model = LocalModel(spec(tmp_path), start=start)
    first = asyncio.create_task(drain(model.stream(ModelRequest())))
    await loading.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(drain(model.stream(ModelRequest())))
    loaded.set()
    with pytest.raises(ModelError):  # nobody listens on the socket
        await second
    assert starts == 1
    await model.aclose()
    assert child.stops == 1


async def test_closing_while_it_loads_ends_the_loading(tmp_path: Path) -> None:
    loading, ended = asyncio.Event(), asyncio.Event()

    async def start() -> LlamaProcess:
        loading.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    model = LocalModel(spec(tmp_path), start=start)
    reply = asyncio.create_task(drain(model.stream(ModelRequest())))
    await loading.wait()
    await model.aclose()
    assert ended.is_set()
    with pytest.raises(ModelError, match="shut down"):
        await reply
    with pytest.raises(ModelError, match="shut down"):
        await drain(model.stream(ModelRequest()))
    await model.aclose()
