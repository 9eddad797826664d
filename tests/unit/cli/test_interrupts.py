from __future__ import annotations

import array
import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import termios
import textwrap
from collections.abc import Callable

import pytest

from agentls.cli.interrupts import Interrupts


def kill(signum: int) -> None:
    os.kill(os.getpid(), signum)


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_cancels_and_cleaning_up_is_awaited(signum: int, code: int) -> None:
    steps: list[str] = []

    async def body() -> int:
        kill(signum)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")
        return 0

    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]
    assert Interrupts().run(body()) == code
    assert steps == ["cleaned up"]
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_without_a_signal_the_code_or_the_error_comes_through() -> None:
    async def body() -> int:
        return 7

    async def broken() -> int:
        raise LookupError("x")

    assert Interrupts().run(body()) == 7
    with pytest.raises(LookupError):
        Interrupts().run(broken())


def talk(check: Callable[[Interrupts], object]) -> int:
    """Run a conversation of one cancellable step under a fresh `Interrupts`."""
    interrupts = Interrupts()

    async def body() -> int:
        interrupts.spare_program()
        check_result = check(interrupts)
        if asyncio.iscoroutine(check_result):
            await check_result
        return 5

    return interrupts.run(body())


def test_ctrl_c_aimed_at_a_task_spares_the_program_however_often() -> None:
    async def scene(interrupts: Interrupts) -> None:
        kill(signal.SIGINT)
        await asyncio.sleep(0)
        cancelled = 0

        async def step() -> None:
            nonlocal cancelled
            try:
                for _ in range(3):
                    kill(signal.SIGINT)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled += 1
                await asyncio.sleep(0)
                raise

        task = asyncio.create_task(step())
        with interrupts.aimed_at(task):
            await asyncio.wait({task})
        assert (task.cancelled(), cancelled) == (True, 1)

    assert talk(scene) == 5


def test_a_key_in_raw_mode_does_the_same() -> None:
    async def scene(interrupts: Interrupts) -> None:
        task = asyncio.create_task(asyncio.Event().wait())
        with interrupts.aimed_at(task):
            interrupts.interrupt()
            await asyncio.wait({task})
        assert task.cancelled()

    assert talk(scene) == 5


_BEFORE = """
import asyncio, os, signal, sys, threading, time
from agentls.cli.interrupts import Interrupts
from agentls.cli.streams import Output
output = Output(sys.stdout)
interrupts = Interrupts(output)
def ready(): os.write(2, b"ready\\n")
"""
_AFTER = "sys.exit(interrupts.run(body()))"


def run_script(body: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _BEFORE + textwrap.dedent(body) + _AFTER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_for_full_pipe(descriptor: int) -> None:
    """Return once a pipe holds as much as it can: only then its writer is stuck."""
    capacity = fcntl.fcntl(descriptor, fcntl.F_GETPIPE_SZ)
    held = array.array("i", [0])
    while held[0] <= capacity - 4096:
        fcntl.ioctl(descriptor, termios.FIONREAD, held)


@pytest.mark.parametrize(
    ("body", "limit_s"),
    [
        # A thread that cannot be stopped, such as one that loads a model.
        (
            """
            async def body():
                work = asyncio.create_task(asyncio.to_thread(time.sleep, 60))
                await asyncio.sleep(0)
                ready()
                await work
            """,
            1.5,
        ),
        # A reader that has stopped reading.
        (
            """
            async def body():
                ready()
                while True:
                    output.line("x" * 1000)
                    await asyncio.sleep(0)
            """,
            3.5,
        ),
        # A cleanup that never ends.
        (
            """
            async def body():
                try:
                    ready()
                    await asyncio.Event().wait()
                finally:
                    await asyncio.Event().wait()
            """,
            5,
        ),
    ],
    ids=["thread", "reader", "cleanup"],
)
def test_what_does_not_end_is_left_behind(body: str, limit_s: float) -> None:
    with run_script(body) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stderr.readline() == b"ready\n"
            if "output.line" in body:
                wait_for_full_pipe(process.stdout.fileno())
            process.send_signal(signal.SIGTERM)
            assert process.wait(limit_s) == 143
            assert b"Traceback" not in process.stderr.read()
        finally:
            process.kill()
