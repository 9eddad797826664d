"""The child process that holds the embedded model.

Run as `python -m agentls.llm.embedded.llama_worker OPTIONS`. Owns loading a GGUF file with
llama.cpp and serving llama.cpp's own HTTP on a Unix socket. Knows nothing of sessions, settings or
the agent. The parent talks to the socket; this process writes one JSON line to its stdout (ready or
error), sends llama.cpp's log to stderr, and ends as soon as its stdin is closed or its parent is
gone.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from agentls.hardening import forbid_inspection

_NICENESS = 2
"""The editor and the user's own builds come first."""
_BATCH_TOKENS = 64
"""Prompt tokens between two looks at whether the request was cancelled."""
_PROMPT_CACHE_MIB = 512
"""Memory for the prompts of other sessions, so that two taking turns do not start afresh."""
_PING_S = 5
"""Keep-alive of a stream that waits for its prompt to be read."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What the parent asks for, as one JSON object in argv.

    `threads` -1 leaves the number to llama.cpp. `parent_pid` is who must be alive.
    """

    model: str
    socket: str
    context_tokens: int
    threads: int
    parent_pid: int

    def to_argument(self) -> str:
        """The form `from_argument` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_argument(cls, text: str) -> WorkerOptions:
        """Read what `to_argument` wrote."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Report:
    """The one line on stdout: `state` "ready", or why there will be no model."""

    state: Literal["ready", "no_engine", "failed"]
    message: str = ""

    def to_line(self) -> str:
        """The form `from_line` reads."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def from_line(cls, line: bytes) -> Report:
        """Read what `to_line` wrote.

        Raises:
            ValueError: the line is something else.
        """
        try:
            return cls(**json.loads(line))
        except TypeError as error:
            raise ValueError(str(error)) from error


def die_with_parent(parent_pid: int) -> None:
    """Let the kernel kill this process when its parent ends, where the kernel can.

    Closing stdin covers the other systems; while a model loads, only this works, for llama.cpp
    then holds the interpreter.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it died before the call above
        os._exit(0)


def stand_back() -> None:
    """Let others come first: for the processor, and to live when memory runs out."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", "ascii")


def load(options: WorkerOptions) -> object:
    """Load the model and start serving; the result must be kept alive.

    Raises:
        ImportError: llama.cpp is not installed.
        RuntimeError: llama.cpp could not load the file; its log says why.
    """
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = options.model
    params.hostnames = [options.socket]
    params.n_ctx = options.context_tokens
    params.n_parallel = 1
    params.n_batch = _BATCH_TOKENS
    params.n_ubatch = _BATCH_TOKENS
    # Repacked weights decode a fifth faster, read prompts slower and cost a second copy in memory.
    params.no_extra_bufts = True
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.sse_ping_interval = _PING_S
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.use_jinja = True
    params.ui = False
    params.offline = True
    params.warmup = False
    params.verbosity = 1  # errors alone: at 3 and above, the log would hold parts of prompts
    return xllamacpp.Server(params)


def wait_for_end() -> None:
    """Return when the parent has closed this process's stdin."""
    while os.read(0, 4096):
        pass


def main() -> None:
    """Run until the parent goes away."""
    options = WorkerOptions.from_argument(sys.argv[1])
    die_with_parent(options.parent_pid)
    # Whatever a library prints goes to stderr: stdout belongs to the report.
    with os.fdopen(os.dup(1), "wb", buffering=0) as reports:
        os.dup2(2, 1)
        stand_back()
        forbid_inspection()  # afterwards, because it takes the right to write to /proc/self away
        try:
            server = load(options)
        except ImportError as error:
            reports.write(Report("no_engine", str(error)).to_line().encode())
            os._exit(1)
        except (RuntimeError, ValueError, MemoryError) as error:
            reports.write(Report("failed", str(error)).to_line().encode())
            os._exit(1)
        reports.write(Report("ready").to_line().encode())
    wait_for_end()
    del server
    os._exit(0)  # llama.cpp's threads would keep a normal exit waiting


if __name__ == "__main__":
    main()
