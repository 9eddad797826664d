"""Signals become the cancellation of a task; nothing else in the command line handles signals.

The first Ctrl-C, SIGTERM or SIGHUP cancels. What then does not end, because a reader stopped
reading or a library holds the thread, is left behind after `GRACE_S` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Any

from agentls.cli.streams import Output, OutputLost, discard

GRACE_S = 3
_TICK_S = 1.0
_JOIN_S = 0.3
_PATIENCE_S = 2.0
"""How long a cancelled task may take before another Ctrl-C ends the program."""


class Interrupts:
    """Cancels the program's task on a signal, or for Ctrl-C a narrower one set by `aimed_at`.

    `signum` is the signal that ends the program, None while it goes on.
    """

    def __init__(self, *outputs: Output) -> None:
        """`outputs` are the streams a write may be stuck in."""
        self.signum: int | None = None
        self._outputs = outputs
        self._task: asyncio.Task[int] | None = None
        self._aim: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._aimed_s = 0.0
        self._spared = False
        self._ticks = 0

    def run(self, body: Coroutine[Any, Any, int]) -> int:
        """Run `body` in a loop to its exit code, or to 128 + the signal that cancelled it."""
        with self._installed():
            return asyncio.run(self._guard(body))

    @property
    def exit_code(self) -> int:
        """As a shell counts signals: 130 for Ctrl-C."""
        return 128 + (self.signum or signal.SIGINT)

    def spare_program(self) -> None:
        """From now on Ctrl-C ends no more than the task it is aimed at."""
        self._spared = True

    @contextmanager
    def aimed_at(self, task: asyncio.Task[Any]) -> Iterator[None]:
        """While inside, Ctrl-C cancels this task; only one that does not end takes all with it."""
        self._aim, self._aimed_s = task, 0.0
        try:
            yield
        finally:
            self._aim = None

    def interrupt(self) -> None:
        """Do what Ctrl-C does; for keys read in raw mode."""
        self._receive(signal.SIGINT)

    async def _guard(self, body: Coroutine[Any, Any, int]) -> int:
        self._loop = asyncio.get_running_loop()
        executor = ThreadPoolExecutor(thread_name_prefix="agentls")
        self._loop.set_default_executor(executor)
        self._task = asyncio.create_task(body)
        await asyncio.wait({self._task})
        if self.signum is None:
            return self._task.result()
        if not self._task.cancelled() and isinstance(self._task.exception(), OutputLost):
            # What is still in the buffer would wait for the same reader.
            for output in self._outputs:
                discard(output.stream)
        executor.shutdown(wait=False, cancel_futures=True)
        _leave_threads_behind(self.exit_code)
        return self.exit_code

    @contextmanager
    def _installed(self) -> Iterator[None]:
        names = ("SIGINT", "SIGTERM", "SIGHUP")
        numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
        # What nohup made deaf to a hang-up stays deaf.
        numbers = [
            number
            for number in numbers
            if number == signal.SIGINT or signal.getsignal(number) is not signal.SIG_IGN
        ]
        before = {number: signal.signal(number, self._handle) for number in numbers}
        if sys.platform != "win32":
            before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._tick)
        try:
            yield
        finally:
            if sys.platform != "win32":
                signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signature
        if self._loop is None:
            raise KeyboardInterrupt
        with contextlib.suppress(RuntimeError):  # the loop is closed: the program is ending anyway
            self._loop.call_soon_threadsafe(self._receive, signum)
        if self._ends_program(signum):
            # Here and not in `_receive`: the loop may be stuck in a write and never get to it.
            self._watch()

    def _ends_program(self, signum: int) -> bool:
        if signum != signal.SIGINT:
            return True
        if self._aim is None:
            return not self._spared
        return self._aimed_s > 0 and time.monotonic() - self._aimed_s > _PATIENCE_S

    def _receive(self, signum: int) -> None:
        if not self._ends_program(signum):
            if self._aim is not None and not self._aimed_s:
                self._aimed_s = time.monotonic()
                self._aim.cancel()
            return
        if self.signum is None:
            self.signum = signum
        self._watch()
        if self._task is not None and not self._task.cancelling():
            self._task.cancel()

    def _watch(self) -> None:
        if sys.platform != "win32" and signal.getitimer(signal.ITIMER_REAL)[0] == 0:
            signal.setitimer(signal.ITIMER_REAL, _TICK_S, _TICK_S)

    def _tick(self, signum: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signature
        self._ticks += 1
        if self._ticks >= GRACE_S / _TICK_S:
            self._abandon()
        for output in self._outputs:
            if output.writing and not select.select([], [output], [], 0)[1]:
                raise InterruptedError(f"nobody reads {output.stream.name}")

    def _abandon(self) -> None:
        for output in self._outputs:
            if output.isatty() and select.select([], [output], [], 0)[1]:
                os.write(output.fileno(), b"\x1b[?25h")  # a live display may have hidden the cursor
        os._exit(self.exit_code)


def _leave_threads_behind(code: int) -> None:
    """End at once where a thread would hold the exit up.

    A thread that loads a model cannot be stopped; waiting for it would hold the prompt for seconds.
    """
    deadline = time.monotonic() + _JOIN_S
    for thread in threading.enumerate():
        if thread is threading.main_thread() or thread.daemon:
            continue
        thread.join(max(deadline - time.monotonic(), 0))
        if thread.is_alive():
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError, ValueError):
                    stream.flush()
            os._exit(code)
