"""Runs the `agentls` command as a user would: a process, a home and a workspace of its own."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pexpect
import psutil

COMMAND = [sys.executable, "-m", "agentls"]
_KEPT = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "SYSTEMROOT", "TMPDIR")


@dataclass(frozen=True)
class Finished:
    """How a run ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.split("\n") if line]

    @property
    def result(self) -> Any:
        """The last JSON line."""
        return self.lines[-1]


@dataclass
class Cli:
    """A user's machine: nothing configured, no model, no Ollama."""

    home: Path
    workspace: Path
    environment: dict[str, str] = field(default_factory=dict)

    @classmethod
    def below(cls, folder: Path) -> Cli:
        """A fresh machine."""
        home, workspace = folder / "home", folder / "workspace"
        home.mkdir()
        (workspace / ".git").mkdir(parents=True)
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment = {
            **kept,
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            "OLLAMA_HOST": f"http://127.0.0.1:{closed_port()}",
        }
        return cls(home, workspace, environment)

    def script(self, *replies: Mapping[str, Any]) -> None:
        """Let the scripted model answer from now on."""
        path = self.home / "script.jsonl"
        path.write_text("".join(json.dumps(reply) + "\n" for reply in replies), "utf-8")
        self.environment |= {"LLM_PROVIDER": "scripted", "AGENTLS_SCRIPT": str(path)}

    def write(self, name: str, text: str) -> Path:
        """Put a file into the workspace."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start the command with pipes."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(
            [*COMMAND, *arguments],
            **{"cwd": self.workspace, "env": self.environment, **pipes, **options},
        )

    def run(self, *arguments: str, stdin: bytes = b"", timeout_s: float = 30) -> Finished:
        """Run the command to its end."""
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(stdin, timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Finished(process.returncode, out.decode(), err.decode())

    def terminal(self, *arguments: str, rows: int = 40, columns: int = 100) -> pexpect.spawn[str]:
        """Start the command in a pseudo-terminal."""
        # prompt_toolkit would wait for a terminal that says where its cursor is.
        environment = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **self.environment}
        return pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], *arguments],
            cwd=str(self.workspace),
            env=environment,
            dimensions=(rows, columns),
            encoding="utf-8",
            timeout=15,
        )


def closed_port() -> int:
    """A port nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(seen: Callable[[], bool], limit_s: float = 10) -> None:
    """Wait for something outside this process, which cannot tell."""
    deadline = time.monotonic() + limit_s
    while not seen():
        assert time.monotonic() < deadline, "it did not happen in time"
        select.select([], [], [], 0.01)


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def asleep(pid: int) -> bool:
    """Whether a process waits for something."""
    return bool(psutil.Process(pid).status() == psutil.STATUS_SLEEPING)
