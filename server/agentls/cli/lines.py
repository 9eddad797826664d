"""Lines of standard input for a program that must be able to leave at any time.

Reads the descriptor in a thread that an exit need not wait for, and not `sys.stdin`: the lock of
its buffer, held by a thread that is still reading, would crash the interpreter on its way out.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import threading
from collections.abc import AsyncIterator


async def piped_lines(descriptor: int) -> AsyncIterator[str]:
    """Lines of a pipe or file, without their ends, as they come; text is UTF-8, mended."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    pending = ""
    while chunk := await _read_chunk(descriptor):
        pending += decoder.decode(chunk)
        *lines, pending = pending.split("\n")
        for line in lines:
            yield line
    pending += decoder.decode(b"", final=True)
    if pending:
        yield pending


async def _read_chunk(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    chunk: asyncio.Future[bytes] = loop.create_future()

    def give(data: bytes) -> None:
        if not chunk.done():
            chunk.set_result(data)

    def read() -> None:
        try:
            data = os.read(descriptor, 65536)
        except OSError:
            data = b""
        with contextlib.suppress(RuntimeError):  # the loop is gone: nobody waits any more
            loop.call_soon_threadsafe(give, data)

    threading.Thread(target=read, name="agentls-stdin", daemon=True).start()
    return await chunk
