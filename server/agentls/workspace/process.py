"""Shell commands: started, watched, ended. Each runs under a `supervisor` that ends all it started.

Owns time limits, output limits and cancellation. Knows nothing of who allowed a command, and
confines nothing: what a command may touch is not decided here.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from agentls.core.errors import InvalidArguments, ToolError
from agentls.core.ports import CommandResult
from agentls.workspace import supervisor
from agentls.workspace.capture import Capture
from agentls.workspace.environment import clean_environment

_SHELLS = (Path("/bin/bash"), Path("/usr/bin/bash"), Path("/bin/sh"))
_MAX_COMMAND_BYTES = 128 * 1024 - 1
"""What Linux takes as one argument."""

_CHUNK = 1 << 16
_EXIT_S = 2.0
"""How long the supervisor may take to end everything; it takes 1.5 s at most, if it gets to run."""

_DRAIN_S = 0.5
_PACED_AFTER_BYTES = 16 << 20
_PACE_S = 0.002
"""A pause between reads once a command has printed very much: it slows down, not the editor."""


class Subprocesses:
    """`core.ports.Shell`: bash, or sh where there is none, with nothing as standard input."""

    def __init__(self, cwd: Path, *, max_output_bytes: int = 200_000) -> None:
        """Of longer output than `max_output_bytes` the middle is left out."""
        self._cwd = cwd
        self._max_output_bytes = max_output_bytes

    async def run(self, command: str, *, timeout_s: float) -> CommandResult:
        """Run to the end or the time limit; see `core.ports.Shell`.

        When it returns, or the cancellation goes on, all processes of the command are gone, those
        in the background and in other sessions too: asked to end, and forced half a second later.
        A command ended by a signal has 128 + its number as exit code, one ended by the time limit
        None.

        Raises:
            InvalidArguments: the command is empty, too long, or not valid Unicode.
            ToolError: it could not be started.
        """
        _require_command(command)
        stop = asyncio.Event()
        running = asyncio.ensure_future(self._supervise(command, timeout_s, stop))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()
            raise

    async def _supervise(
        self, command: str, timeout_s: float, stop: asyncio.Event
    ) -> CommandResult:
        output = _Output(Capture(self._max_output_bytes))
        lifeline, own_end = os.pipe()
        try:
            process = await self._start(command, lifeline, output.writer)
        except BaseException:
            os.close(own_end)
            output.close()
            raise
        finally:
            os.close(lifeline)
            os.close(output.writer)
        ended = asyncio.ensure_future(process.wait())
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await output.connect()
            done, _ = await asyncio.wait(
                {ended, stopped}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            os.close(own_end)
            ended.cancel()
            stopped.cancel()
            code = await _let_end(process)
            await output.drain()
        if not done:
            return CommandResult(exit_code=None, output=output.text(), timed_out=True)
        return CommandResult(exit_code=code if code >= 0 else 128 - code, output=output.text())

    async def _start(self, command: str, stdin: int, stdout: int) -> asyncio.subprocess.Process:
        shell = next((path for path in _SHELLS if os.access(path, os.X_OK)), None)
        if shell is None:
            raise ToolError("There is no shell to run commands with.")
        try:
            return await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                "-S",
                supervisor.__file__,
                str(shell),
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=asyncio.subprocess.STDOUT,
                cwd=self._cwd,
                env=clean_environment(os.environ),
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"The command could not be started: {error.strerror}.") from None


async def _let_end(process: asyncio.subprocess.Process) -> int:
    """Wait for the supervisor, which knows that it is to end everything; gives its exit code."""
    try:
        async with asyncio.timeout(_EXIT_S):
            return await process.wait()
    except TimeoutError:
        # The machine is overloaded, or somebody stopped it. Stopped, it starts nothing more, and
        # what its children leave behind stays below it, where it can be found.
        process.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(supervisor.end_descendants, process.pid)
        process.kill()
        return await process.wait()


class _Output:
    """The pipe that everything a command starts writes to."""

    def __init__(self, capture: Capture) -> None:
        """`writer` is for the child; whoever starts it closes it here."""
        self._capture = capture
        self._reading, self.writer = os.pipe()
        self._transport: asyncio.BaseTransport | None = None
        self._pump: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Start to read."""
        reader = asyncio.StreamReader(limit=_CHUNK)
        self._transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader),
            os.fdopen(self._reading, "rb", buffering=0),
        )
        self._pump = asyncio.create_task(self._read(reader))

    async def drain(self) -> None:
        """Read what is left, but not for long: something that cannot be ended may hold the pipe."""
        if self._pump is not None:
            await asyncio.wait([self._pump], timeout=_DRAIN_S)
            self._pump.cancel()
            with suppress(asyncio.CancelledError):
                await self._pump
        if self._transport is not None:
            self._transport.close()

    def close(self) -> None:
        """Close the reading end when there was nothing to read."""
        os.close(self._reading)

    def text(self) -> str:
        """What was printed, capped."""
        return self._capture.text()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(_CHUNK):
            self._capture.add(data)
            if self._capture.total > _PACED_AFTER_BYTES:
                await asyncio.sleep(_PACE_S)


def _require_command(command: str) -> None:
    if not command.strip():
        raise InvalidArguments("The command is empty.")
    try:
        size = len(command.encode())
    except UnicodeEncodeError:
        size = -1
    if size < 0 or "\0" in command:
        raise InvalidArguments("The command holds a NUL or is not valid Unicode.")
    if size > _MAX_COMMAND_BYTES:
        raise InvalidArguments(
            f"The command is longer than {_MAX_COMMAND_BYTES} bytes.",
            hint="Write a file and run that.",
        )
