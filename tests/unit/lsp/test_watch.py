from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from agentls.lsp import watch


def child() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


async def test_a_death_is_noticed_even_while_nobody_reaps_the_dead() -> None:
    with child() as process:
        watching = asyncio.create_task(watch.until_dead(process.pid))
        await asyncio.sleep(0.05)
        assert not watching.done()
        os.kill(process.pid, 9)
        async with asyncio.timeout(2):
            await watching


async def test_a_process_that_is_not_there_counts_as_dead() -> None:
    with child() as process:
        process.kill()
        process.wait()
        async with asyncio.timeout(2):
            await watch.until_dead(process.pid)


async def test_where_the_system_does_not_tell_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_POLL_S", 0.01)
    with child() as process:
        watching = asyncio.create_task(watch._poll(process.pid))
        await asyncio.sleep(0.05)
        assert not watching.done()
        process.kill()
        process.wait()
        async with asyncio.timeout(2):
            await watching
