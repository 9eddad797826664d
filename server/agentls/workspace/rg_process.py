"""Starts ripgrep: our own binary, no configuration, no shell, in a folder opened beforehand.

Knows how ripgrep is run and stopped, not what is searched. Blocking; for worker threads.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

from agentls.core.errors import ToolError
from agentls.workspace.folders import Folder

_CHUNK = 1 << 18
_ERROR = 2
_MAX_ERROR_BYTES = 10_000
_ENVIRONMENT = ("HOME", "XDG_CONFIG_HOME", "USERPROFILE", "SYSTEMROOT", "LANG", "LC_ALL", "TMPDIR")
"""What ripgrep needs: the user's global ignore file is found through these."""

T = TypeVar("T")


def find_ripgrep() -> Path:
    """The ripgrep that was installed with this package; never one from PATH or the workspace.

    Raises:
        ToolError: the installation is damaged.
    """
    name = "rg.exe" if os.name == "nt" else "rg"
    folders = [
        sysconfig.get_path("scripts"),
        str(Path(sys.executable).parent),
        sysconfig.get_path("scripts", f"{os.name}_user"),
    ]
    for folder in folders:
        path = Path(folder, name)
        if path.is_absolute() and os.access(path, os.X_OK):
            return path
    raise ToolError(
        "ripgrep, which searches the workspace, is missing.", hint="Install agentls again."
    )


class Searcher:
    """The ripgrep processes of one search; `stop` may come from another thread at any time."""

    def __init__(self, executable: Path) -> None:
        """Nothing is started yet."""
        self._executable = executable
        self._guard = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self.stopped = False

    def stop(self) -> None:
        """Kill what runs, and start nothing more."""
        with self._guard:
            self.stopped = True
            for process in self._running:
                process.kill()

    @contextmanager
    def run(
        self, folder: Folder, arguments: Sequence[str], *, stdin: int = subprocess.DEVNULL
    ) -> Iterator[Output]:
        """Run ripgrep in `folder` and hand out what it writes; it is gone when the block ends."""
        process = self._start(folder, arguments, stdin)
        if process is None:
            yield Output(None)
            return
        with process:
            try:
                yield Output(process)
            finally:
                process.kill()
                process.wait()
                with self._guard:
                    self._running.remove(process)

    def _start(
        self, folder: Folder, arguments: Sequence[str], stdin: int
    ) -> subprocess.Popen[bytes] | None:
        with self._guard:
            if self.stopped:
                return None
            try:
                process = subprocess.Popen(  # noqa: S603 - own binary, arguments never parsed by a shell
                    [str(self._executable), "--no-config", "--color=never", *arguments],
                    cwd=folder.as_working_folder,
                    env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,
                )
            except OSError as error:
                raise ToolError(f"ripgrep could not be started: {error.strerror}.") from None
            self._running.append(process)
            return process


class Output:
    """What a process writes. A search that was stopped has none."""

    def __init__(self, process: subprocess.Popen[bytes] | None) -> None:
        """None for a process that was not started any more."""
        self._process = process

    def records(self, separator: bytes) -> Iterator[bytes]:
        """Pieces ended by `separator`; an unfinished last piece is left out."""
        parts: list[bytes] = []
        for chunk in self._chunks():
            *complete, rest = chunk.split(separator)
            for piece in complete:
                if parts:
                    parts.append(piece)
                    piece = b"".join(parts)
                    parts = []
                yield piece
            if rest:
                parts.append(rest)

    def whole(self, max_bytes: int) -> bytes:
        """Everything, or a little more than `max_bytes` of it."""
        chunks: list[bytes] = []
        size = 0
        for chunk in self._chunks():
            chunks.append(chunk)
            size += len(chunk)
            if size > max_bytes:
                break
        return b"".join(chunks)

    def failure(self) -> str:
        """Why the process refused to search, in its own words; empty when it did search."""
        if self._process is None or self._process.wait() != _ERROR or self._process.stderr is None:
            return ""
        text = self._process.stderr.read(_MAX_ERROR_BYTES).decode("utf-8", "replace")
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        return reasons[0] if reasons else lines[0].removeprefix("rg: ") if lines else ""

    def _chunks(self) -> Iterator[bytes]:
        pipe: IO[bytes] | None = None if self._process is None else self._process.stdout
        while pipe is not None and (chunk := pipe.read(_CHUNK)):
            yield chunk


async def supervised(searcher: Searcher, search: Callable[[], T], time_limit_s: float) -> T:
    """Run a search in a thread; at the time limit it stops with what it has.

    Cancelling kills its processes before the cancellation goes on.
    """
    running = asyncio.ensure_future(asyncio.to_thread(search))
    try:
        done, _ = await asyncio.wait([running], timeout=time_limit_s)
        if not done:
            searcher.stop()
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        searcher.stop()
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()
        raise
