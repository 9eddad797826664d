"""A real llama.cpp server in a child process.

Run as `python llama_server.py MODEL HOST CONTEXT_TOKENS [TEMPLATE_FILE]`. Serves llama.cpp's own
HTTP on HOST, an address or a path for a Unix socket; prints the address as one line when it is
ready and ends when its stdin is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from pathlib import Path


@contextlib.asynccontextmanager
async def llama_server(
    model: Path,
    *,
    context_tokens: int = 512,
    host: str = "127.0.0.1",
    template: Path | None = None,
) -> AsyncGenerator[str, None]:
    """The address of a running server; `template` stands in for the model's own."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        __file__,
        str(model),
        host,
        str(context_tokens),
        *([] if template is None else [str(template)]),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        address = (await asyncio.wait_for(child.stdout.readline(), 60)).decode().strip()
        assert address, "llama.cpp's server did not start"
        yield address
    finally:
        child.stdin.close()
        try:
            await asyncio.wait_for(child.wait(), 10)
        except TimeoutError:
            child.kill()
            await child.wait()


def main() -> None:
    """The child's side."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = sys.argv[1]
    params.hostnames = [sys.argv[2]]
    params.port = 0
    params.n_ctx = int(sys.argv[3])
    params.n_parallel = 1
    params.use_jinja = True
    params.ui = False
    if len(sys.argv) > 4:
        params.chat_template = Path(sys.argv[4]).read_text("utf-8")
    params.warmup = False
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
