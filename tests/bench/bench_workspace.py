"""What the workspace's parts cost: resolving a path, a command, passages of a large tree.

Each beside a raw reference in the same run: `os.path.realpath`, a bare shell, `rg --files`.

    python tests/bench workspace
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from agentls.workspace.documents import Documents
from agentls.workspace.passages import KeywordPassages
from agentls.workspace.process import Subprocesses
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots

ROUNDS = 20
FILES = 7_000


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        print(json.dumps(_resolving(root)))
        print(json.dumps(asyncio.run(_commands(root))))
        print(json.dumps(asyncio.run(_passages(root))))


def _median_ms(act: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        act()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


async def _median_async_ms(act: Callable[[], Awaitable[object]]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        await act()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


def _resolving(root: Path) -> dict[str, object]:
    deep = root.joinpath(*(f"folder{number}" for number in range(12)))
    deep.mkdir(parents=True)
    (root / "link").symlink_to(deep)
    roots = Roots(root)
    ours = _median_ms(lambda: roots.resolve("link/x.py"))
    raw = _median_ms(lambda: os.path.realpath(root / "link" / "x.py"))
    return {
        "benchmark": "resolve",
        "agentls_ms": round(ours, 3),
        "realpath_ms": round(raw, 3),
        "ratio": round(ours / raw, 2),
        "target_ms": 0.2,
    }


async def _commands(root: Path) -> dict[str, object]:
    shell = Subprocesses(root)

    async def bare() -> None:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", "true", stdout=subprocess.DEVNULL
        )
        await process.wait()

    ours = await _median_async_ms(lambda: shell.run("true", timeout_s=10))
    raw = await _median_async_ms(bare)
    return {
        "benchmark": "command",
        "agentls_ms": round(ours, 1),
        "bare_shell_ms": round(raw, 1),
        "added_ms": round(ours - raw, 1),
    }


async def _passages(root: Path) -> dict[str, object]:
    body = "".join(f"def name_{number}(value):\n    return value\n\n" for number in range(40))
    for number in range(FILES):
        folder = root / f"d{number % 70}"
        folder.mkdir(exist_ok=True)
        (folder / f"f{number}.py").write_text(body)
    (root / "d3" / "wanted.py").write_text(f"{body}def resolve_wanted_thing(value):\n    ...\n")
    roots = Roots(root)
    engine = KeywordPassages(roots, Ripgrep(roots), Documents(roots))
    question = "Where is the wanted thing resolved to a value?"
    rg = Path(sys.executable).with_name("rg")

    async def listing() -> None:
        process = await asyncio.create_subprocess_exec(
            rg, "--files", "--no-config", root, stdout=subprocess.DEVNULL
        )
        await process.wait()

    ours = await _median_async_ms(lambda: engine.find(question))
    raw = await _median_async_ms(listing)
    return {
        "benchmark": "passages",
        "files": FILES,
        "agentls_ms": round(ours, 1),
        "rg_files_ms": round(raw, 1),
        "ratio": round(ours / raw, 1),
        "target_ms": 300,
    }
