"""Real programs that speak providers' protocols, started for the tests of one module.

One llama.cpp server answers for all: by itself it speaks three formats, litellm's proxy in front of
it two, and ollama-proxy-plus the last. `.ci/peers` installs the proxies. What is missing is
skipped loudly; where CI runs it fails.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import NoReturn

import httpx
import pytest

from support.llama_server import llama_server

OBEDIENT = Path(__file__).parent / "templates" / "obedient.jinja"
LITELLM_KEY = "sk-not-a-secret-0123456789abcdef0123456789"
_START_S = 90.0


@contextlib.asynccontextmanager
async def obedient_llama(model: Path) -> AsyncGenerator[str, None]:
    """llama.cpp with a model that thinks and calls tools when told so; see the template."""
    async with llama_server(model, context_tokens=2048, template=OBEDIENT) as address:
        yield address


@contextlib.asynccontextmanager
async def litellm_proxy(upstream: str) -> AsyncGenerator[str, None]:
    """The address of litellm's proxy in front of an OpenAI-compatible server."""
    config = (
        "model_list:\n"
        "  - model_name: m\n"
        "    litellm_params:\n"
        f"      {{model: openai/m, api_base: '{upstream}/v1', api_key: none}}\n"
        "litellm_settings: {drop_params: true, num_retries: 0}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(config)
        port = _free_port()
        environment = {
            "LITELLM_MASTER_KEY": LITELLM_KEY,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "DISABLE_ADMIN_UI": "True",
        }
        arguments = ["--config", str(path), "--host", "127.0.0.1", "--port", str(port)]
        command = [peer_program("litellm"), *arguments, "--telemetry", "False"]
        async with _running(command, environment, port, "/health/liveliness", Path(folder)) as url:
            yield url


@contextlib.asynccontextmanager
async def ollama_proxy(base_url: str) -> AsyncGenerator[str, None]:
    """The address of ollama-proxy-plus in front of a server whose base URL ends in /v1.

    Its models are named `peer/NAME`.
    """
    port = _free_port()
    environment = {"PROVIDERS_PEER_API_KEY": "none", "PROVIDERS_PEER_BASE_URL": base_url}
    arguments = ["--host", "127.0.0.1", "--port", str(port)]
    command = [peer_program("ollama-proxy"), *arguments]
    with tempfile.TemporaryDirectory() as folder:
        async with _running(command, environment, port, "/api/version", Path(folder)) as url:
            yield url


def peer_program(name: str) -> str:
    """The path of a program of the peers' environment; skips or fails where it is missing."""
    folder = os.environ.get("AGENTLS_PEERS", "")
    program = Path(folder) / "bin" / name
    if not folder or not program.exists():
        missing(f"{name} is not installed: set AGENTLS_PEERS to what `.ci/peers` prints")
    return str(program)


def missing(reason: str) -> NoReturn:
    """A peer is not there: a failure where CI runs, a loud skip elsewhere."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextlib.asynccontextmanager
async def _running(
    command: list[str], environment: dict[str, str], port: int, health: str, folder: Path
) -> AsyncGenerator[str, None]:
    url = f"http://127.0.0.1:{port}"
    with (folder / "output").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=folder,
            # Only what it needs: peers read keys and settings of their own from the environment.
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(folder), **environment},
            start_new_session=True,
        )
    try:
        async with asyncio.timeout(_START_S):
            await _answers(url + health, process)
        yield url
    except TimeoutError:
        pytest.fail(f"{command[0]} did not start:\n{(folder / 'output').read_text()[-3000:]}")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 15)
            try:
                await asyncio.wait_for(process.wait(), 10)
            except TimeoutError:
                os.killpg(process.pid, 9)
                await process.wait()


async def _answers(url: str, process: asyncio.subprocess.Process) -> None:
    """Wait until a server is up: nothing but asking tells."""
    async with httpx.AsyncClient(trust_env=False) as client:
        while True:
            assert process.returncode is None, "the peer ended while it started"
            with contextlib.suppress(httpx.HTTPError):
                if (await client.get(url)).is_success:
                    return
            await asyncio.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _served(peer: contextlib.AbstractAsyncContextManager[str]) -> Iterator[str]:
    """A peer that outlives the loops of single tests: it has a loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    # Not one that an exit would wait for: what tests of exits look at are the product's own.
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        url = asyncio.run_coroutine_threadsafe(peer.__aenter__(), loop).result()
        try:
            yield url
        finally:
            asyncio.run_coroutine_threadsafe(peer.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def llama_url(smollm2_path: Path) -> Iterator[str]:
    """The address of an obedient llama.cpp."""
    with _served(obedient_llama(smollm2_path)) as url:
        yield url


@pytest.fixture(scope="module")
def litellm_url(llama_url: str) -> Iterator[str]:
    """The address of litellm's proxy in front of it."""
    with _served(litellm_proxy(llama_url)) as url:
        yield url


@pytest.fixture(scope="module")
def ollama_proxy_url(llama_url: str) -> Iterator[str]:
    """The address of ollama-proxy-plus in front of it; its model is "peer/m"."""
    with _served(ollama_proxy(f"{llama_url}/v1")) as url:
        yield url
