"""Notices that the client's process has died, also when its end of the pipe stays open."""

from __future__ import annotations

import asyncio
import os
import sys

_POLL_S = 1.0


async def until_dead(pid: int) -> None:
    """Return when the process has ended; at once if there is none with this id.

    Linux tells at once, other systems are asked every second. Windows cannot be asked without
    opening the process: there only the end of standard input counts, and this never returns.
    """
    if sys.platform == "win32":
        await asyncio.Event().wait()
    if sys.platform == "linux":
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        except OSError:
            # A kernel or a sandbox without this call.
            await _poll(pid)
        else:
            await _until_readable(fd)
    else:
        await _poll(pid)


async def _until_readable(fd: int) -> None:
    """A descriptor of a process becomes readable when the process ends, reaped or not."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(fd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(fd)
        os.close(fd)


async def _poll(pid: int) -> None:
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        except PermissionError:
            # It lives, under another user.
            pass
        await asyncio.sleep(_POLL_S)
