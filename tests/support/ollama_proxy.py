"""The real `ollama-proxy-plus` in a child process: Ollama's API in front of chat completions.

It lives in an environment of its own, the folder AGENTLS_PEERS, since its requirements would get in
the way of ours. Where there is none, tests that need it are skipped with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

PREFIX = "peer"
"""Models are named `peer/NAME`."""

_PATIENCE_S = 60


def proxy_python() -> Path:
    """The Python that has it.

    Calls `pytest.skip` with the reason when there is none.
    """
    folder = os.environ.get("AGENTLS_PEERS", "")
    if not folder:
        pytest.skip("AGENTLS_PEERS names no environment with ollama-proxy-plus==0.1.0")
    scripts = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    python = Path(folder, *scripts)
    package = "Lib/site-packages" if sys.platform == "win32" else "lib/python3*/site-packages"
    if not python.is_file() or not [*Path(folder).glob(f"{package}/ollama_proxy/__main__.py")]:
        pytest.skip(f"{folder} (AGENTLS_PEERS) has no ollama-proxy-plus==0.1.0")
    return python


@contextlib.asynccontextmanager
async def ollama_proxy(base_url: str) -> AsyncGenerator[str, None]:
    """The address of a proxy in front of a server whose base URL ends in /v1."""
    python = proxy_python()
    # Only what it needs: it reads keys and settings from the environment and the current folder.
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "PROVIDERS_PEER_API_KEY": "none",
        "PROVIDERS_PEER_BASE_URL": base_url,
        "PYTHONUNBUFFERED": "1",
    }
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        child = await asyncio.create_subprocess_exec(
            str(python),
            *("-m", "ollama_proxy", "--host", "127.0.0.1", "--port", str(port)),
            cwd=folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert child.stderr is not None
        draining: asyncio.Task[None] | None = None
        try:
            await asyncio.wait_for(_started(child.stderr), _PATIENCE_S)
            draining = asyncio.create_task(_drain(child.stderr))
            yield f"http://127.0.0.1:{port}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
            try:
                await asyncio.wait_for(child.wait(), 10)
            except TimeoutError:
                child.kill()
                await child.wait()
            if draining is not None:
                await draining


async def _started(stderr: asyncio.StreamReader) -> None:
    """Until uvicorn says that it listens."""
    said = b""
    async for line in stderr:
        said += line
        if b"Uvicorn running on" in line:
            return
    raise AssertionError(f"ollama-proxy did not start: {said.decode(errors='replace')}")


async def _drain(stderr: asyncio.StreamReader) -> None:
    while await stderr.read(65536):
        pass
