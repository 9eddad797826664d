"""The embedded engine's child process: started, watched, ended.

Owns the process, its private folder with the socket, and what its log says about a failure. Knows
nothing of requests; `llama_worker` is what runs in the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from agentls.core.errors import ModelError, NoModel
from agentls.llm.embedded.llama_worker import Report, WorkerOptions

_PREFIX = "agentls-llm-"
_SOCKET_NAME = "llm.sock"
"""llama.cpp tells a socket by this ending."""
_MAX_SOCKET_PATH_BYTES = 100
"""Of 104 (macOS) or 108 (Linux) that a Unix socket's address holds."""
_LOAD_S = 600.0
_END_S = 1.0
_MAX_LOG_LINES, _MAX_LINE_CHARS = 50, 300
_LOG_HEAD = re.compile(r"^[\d.]+ [A-Z] +\w*(?: +[\w ]*)?: *")
_INHERITED = re.compile(
    r"PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|TEMP|TMP|SYSTEMROOT|VIRTUAL_ENV|PYTHON[A-Z0-9]+"
    r"|LD_LIBRARY_PATH|DYLD_\w+|(?:OMP|GOMP|GGML|CUDA|HIP|ROCR|HSA|GPU)_\w+"
)
_SPINS = {"GOMP_SPINCOUNT": "500"}
"""How often a thread that waits for another looks before it sleeps; GNU OpenMP's own is 300,000.

llama.cpp's threads wait hundreds of times a token. With anything else running, those that spin take
the time of the one they wait for, and a reply comes three to twenty times slower; never to spin
would cost a quarter of the speed where nothing else runs. A variable, because OpenMP reads it once,
when it is loaded; llama.cpp's own `poll` means nothing where it was built with OpenMP.
"""


class LlamaProcess:
    """One running child that has loaded a model and listens on `socket`."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, model: str) -> None:
        """Use `start` to get one."""
        self.socket = folder / _SOCKET_NAME
        self._process = process
        self._folder = folder
        self._model = model
        self._log: deque[str] = deque(maxlen=_MAX_LOG_LINES)
        self._reading = asyncio.create_task(self._read_log())

    @classmethod
    async def start(
        cls, weights: Path, *, model: str, context_tokens: int, threads: int
    ) -> LlamaProcess:
        """Load the weights, an absolute path, in a new child; `model` is the name for messages.

        Cancelling ends the child.

        Raises:
            NoModel: the engine is not installed, or this platform cannot run it.
            ModelError: the weights cannot be loaded; the text says why.
        """
        _need_sockets()
        folder = _private_folder()
        options = WorkerOptions(
            model=str(weights),
            socket=str(folder / _SOCKET_NAME),
            context_tokens=context_tokens,
            threads=threads,
            parent_pid=os.getpid(),
        )
        try:
            process = await _spawn(options, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        started = cls(process, folder, model)
        try:
            await started._loaded()
        except BaseException:
            await started.stop()
            raise
        return started

    @property
    def running(self) -> bool:
        """Whether the child has not ended, as far as is known."""
        return self._process.returncode is None

    async def death(self, within_s: float) -> str | None:
        """How the child ended, as a sentence, if it does within the time; else None."""
        try:
            async with asyncio.timeout(within_s):
                code = await self._process.wait()
                await self._reading
        except TimeoutError:
            return None
        return self._said(code)

    async def stop(self) -> None:
        """End the child and remove its folder. Stopping again does nothing."""
        stdin = self._process.stdin
        if stdin is not None:
            stdin.close()
        try:
            async with asyncio.timeout(_END_S):
                await self._process.wait()
        except TimeoutError:
            pass
        finally:
            if self.running:
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
            shutil.rmtree(self._folder, ignore_errors=True)
        await self._process.wait()
        await self._reading

    async def _loaded(self) -> None:
        """Wait for the child's report, and for it to be a good one."""
        try:
            async with asyncio.timeout(_LOAD_S):
                report = await self._report()
        except TimeoutError:
            raise self._failed(f"it did not load within {_LOAD_S:.0f} s.") from None
        if report is None:
            raise self._failed(await self.death(_END_S) or "it did not start.")
        if report.state == "ready":
            return
        if report.state == "no_engine":
            raise NoModel(
                f"The engine of the embedded model is not installed ({report.message}).",
                hint="Install agentls with its extra `local`: in its clone, "
                "`pip install '.[local]'`.",
                provider="local",
            )
        await self.death(_END_S)  # so that the log is whole
        raise self._failed(self._reason() or report.message)

    async def _report(self) -> Report | None:
        """The child's one line; None when it ended without.

        What a `sitecustomize` or the like prints before the worker has stdout to itself is skipped.
        """
        stdout = _pipe(self._process.stdout)
        while True:
            try:
                line = await stdout.readline()
                if not line:
                    return None
                return Report.from_line(line)
            except ValueError:  # another line, or one too long to be read
                continue

    async def _read_log(self) -> None:
        """Keep the end of the child's log; reading it all keeps the child from blocking."""
        stderr = _pipe(self._process.stderr)
        rest = b""
        while data := await stderr.read(4096):
            *lines, rest = (rest + data).split(b"\n")
            rest = rest[-_MAX_LINE_CHARS:]
            self._log += (line[:_MAX_LINE_CHARS].decode("utf-8", "replace") for line in lines)
        if rest:
            self._log.append(rest.decode("utf-8", "replace"))

    def _reason(self) -> str:
        """What llama.cpp's log names as the first thing that went wrong."""
        for line in self._log:
            if "insufficient memory" in line or "failed to allocate" in line:
                return "there is not enough memory for it."
        for line in self._log:
            if "error loading model" in line or "failed to" in line:
                return _LOG_HEAD.sub("", line).removeprefix("error loading model: ") + "."
        return ""

    def _said(self, code: int) -> str:
        if code == -signal.SIGKILL:
            return "it was killed by the system, most likely for want of memory."
        if code < 0:
            return f"it crashed ({signal.Signals(-code).name})."
        last = next((line for line in reversed(self._log) if line.strip()), "")
        return f"it ended by itself with code {code}{f': {last.strip()}' if last else ''}."

    def _failed(self, reason: str) -> ModelError:
        memory = "memory" in reason
        return ModelError(
            f"The embedded model {self._model} could not be loaded: {reason}",
            hint="Choose a smaller model or a smaller context."
            if memory
            else f"If the file is damaged, delete it and run `agentls model pull {self._model}`.",
            provider="local",
        )


def _need_sockets() -> None:
    if not hasattr(socket, "AF_UNIX"):
        raise NoModel(
            "The embedded model needs Unix sockets, which this platform has not.",
            hint="Install Ollama instead, or set OPENAI_BASE_URL to a server of your own.",
            provider="local",
        )


async def _spawn(options: WorkerOptions, folder: Path) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "agentls.llm.embedded.llama_worker", options.to_argument()),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
        env=_environment(os.environ),
        # A Ctrl-C at the terminal stops a turn and must not take the model down.
        start_new_session=True,
    )


def _pipe(stream: asyncio.StreamReader | None) -> asyncio.StreamReader:
    if stream is None:
        raise RuntimeError("the child was started without pipes")
    return stream


def _private_folder() -> Path:
    """A new folder that only this user can enter, short enough for a socket's address."""
    folder = Path(tempfile.gettempdir())
    name = f"{_PREFIX}{os.getpid()}-"
    if len(os.fsencode(folder / f"{name}xxxxxxxx" / _SOCKET_NAME)) > _MAX_SOCKET_PATH_BYTES:
        folder = Path("/tmp")  # noqa: S108 - the folder made in it is private
    _sweep(folder)
    return Path(tempfile.mkdtemp(prefix=name, dir=folder))


def _sweep(folder: Path) -> None:
    """Remove the folders of processes that were killed before they could."""
    for left in folder.glob(f"{_PREFIX}*-*"):
        pid = left.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if pid.isdecimal() and left.stat().st_uid == os.getuid() and not _alive(int(pid)):
                shutil.rmtree(left, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the child needs of the environment; keys and tokens are not in it.

    How threads wait is the user's to say, by either variable of OpenMP.
    """
    inherited = {name: value for name, value in environ.items() if _INHERITED.fullmatch(name)}
    return inherited if "OMP_WAIT_POLICY" in inherited else _SPINS | inherited
