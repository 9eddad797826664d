"""Standard input and output: taken over for the protocol, read and written by threads.

Threads, because they work for pipes, sockets, files and on every platform, and leave the
descriptors blocking: non-blocking mode would be shared with whoever else holds the same pipe. All
methods are called on the loop's thread unless they say otherwise.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

from agentls.lsp.frames import BadFrame, FrameReader

_READ_BYTES = 64 * 1024
_READ_AHEAD = 16
"""How many reads may be waiting for the loop; enough to see the end behind a blocked loop."""

_HIGH_WATER_BYTES = 64 * 1024
"""Above this, `drain` makes producers wait."""

_STOP_READING_BYTES = 32 * 1024 * 1024
"""Above this, no more requests are taken in: their replies are not being read."""


_PATIENCE_S = 2.0


def take_stdio() -> tuple[int, int]:
    """Keep standard input and output for the protocol alone; gives private descriptors for them.

    Afterwards whatever a library or a child prints goes to standard error, and nobody else can
    swallow protocol bytes.
    """
    try:
        os.fstat(2)
    except OSError:
        # An editor may start servers with standard error closed; 2 must not become the protocol.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    fd_in, fd_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if sys.stdout is not None:
        sys.stdout.flush()
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return fd_in, fd_out


class Outbox:
    """Bytes on their way to the client, in order."""

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        """`on_broken` is called once, on the loop, when the client does not take bytes any more."""
        self._fd = fd
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._queue: deque[bytes] = deque()
        self._pending_bytes = 0
        self._broken = False
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        threading.Thread(target=self._run, name="lsp-writer", daemon=True).start()

    @property
    def pending_bytes(self) -> int:
        """How much has been written here and not been taken by the client."""
        return self._pending_bytes

    def write(self, data: bytes) -> None:
        """Queue bytes; they are dropped when the client is gone."""
        with self._changed:
            if not self._broken:
                self._queue.append(data)
                self._pending_bytes += len(data)
                self._changed.notify()

    async def drain(self, limit_bytes: int = _HIGH_WATER_BYTES) -> None:
        """Wait until at most `limit_bytes` are pending: a slow reader slows the writer down."""
        with self._changed:
            if self._pending_bytes <= limit_bytes:
                return
            taken: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append((limit_bytes, taken))
        try:
            await taken
        except asyncio.CancelledError:
            with self._changed:
                self._waiting = [entry for entry in self._waiting if entry[1] is not taken]
            raise

    def _run(self) -> None:
        try:
            while True:
                self._write_all(self._next_batch())
        except OSError:
            with self._changed:
                self._broken = True
                self._queue.clear()
                self._taken(self._pending_bytes)
            self._call(self._on_broken)

    def _next_batch(self) -> bytes:
        with self._changed:
            while not self._queue:
                self._changed.wait()
            batch = self._queue.popleft() if len(self._queue) == 1 else b"".join(self._queue)
            self._queue.clear()
            return batch

    def _write_all(self, batch: bytes) -> None:
        rest = memoryview(batch)
        while rest:
            count = os.write(self._fd, rest)
            rest = rest[count:]
            with self._changed:
                self._taken(count)

    def _taken(self, count: int) -> None:
        """Account for bytes that left and wake who waited for that. The lock is held."""
        self._pending_bytes -= count
        ready = [future for limit, future in self._waiting if self._pending_bytes <= limit]
        if ready:
            self._waiting = [entry for entry in self._waiting if entry[1] not in ready]
            self._call(lambda: _resolve(ready))

    def _call(self, callback: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop is closed: the process is about to end and nobody waits.
            return


class Inbox:
    """Frames from the client, handed over on the loop in order."""

    def __init__(
        self,
        fd: int,
        outbox: Outbox,
        *,
        on_frame: Callable[[bytes | BadFrame], None],
        on_end: Callable[[], None],
        on_stuck: Callable[[], None] | None = None,
    ) -> None:
        """Start reading. `on_end` is called once, when no more can come.

        `on_stuck` is called from another thread if the process is still there two seconds later:
        then the loop is blocked, and nothing on it can end the process.
        """
        self._fd = fd
        self._outbox = outbox
        self._on_frame = on_frame
        self._on_end = on_end
        self._on_stuck = on_stuck
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(_READ_AHEAD)
        self._tasks: set[asyncio.Task[None]] = set()
        threading.Thread(target=self._run, name="lsp-reader", daemon=True).start()

    def _run(self) -> None:
        frames = FrameReader()
        try:
            while data := self._read():
                if ready := frames.feed(data):
                    # A client that floods waits in its own pipe.
                    self._room.acquire()
                    self._loop.call_soon_threadsafe(self._deliver, ready)
            self._loop.call_soon_threadsafe(self._on_end)
        except RuntimeError:
            # The loop is closed: the process is about to end.
            return
        if self._on_stuck is not None:
            time.sleep(_PATIENCE_S)
            self._on_stuck()

    def _read(self) -> bytes:
        try:
            return os.read(self._fd, _READ_BYTES)
        except OSError:
            return b""

    def _deliver(self, frames: list[bytes | BadFrame]) -> None:
        try:
            for frame in frames:
                self._on_frame(frame)
        finally:
            if self._outbox.pending_bytes <= _STOP_READING_BYTES:
                self._room.release()
            else:
                task = self._loop.create_task(self._resume())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _resume(self) -> None:
        try:
            await self._outbox.drain(_STOP_READING_BYTES)
        finally:
            self._room.release()


def _resolve(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
