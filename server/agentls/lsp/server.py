"""`agentls serve`: the language server's process.

Light by itself, so that the command line can import it; pygls comes in when serving begins. Owns
the process: its standard streams, its log, its signals and its end.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from agentls.lsp import garbage

_log = logging.getLogger(__name__)


def serve(workspace: Path, *, flags: Mapping[str, Any], verbose: int) -> NoReturn:
    """Speak LSP on standard input and output until the client leaves.

    `workspace` counts when the client opens no folder; `flags` are as in `settings.load`. `verbose`
    0 logs warnings, 1 information, 2 everything; never what was said.

    The process ends here, because waiting for threads and tearing down the interpreter would keep
    it alive after its client. Its exit status is 0 after `shutdown` and `exit`, 1 when the client
    left in any other way, 128 and the signal's number after a signal.
    """
    _log_to_stderr(verbose)
    garbage.pause()
    import asyncio

    from agentls.lsp.language_server import AgentServer
    from agentls.lsp.stdio import take_stdio

    fd_in, fd_out = take_stdio()

    async def main() -> int:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_unforeseen)
        server = AgentServer(workspace, flags)
        if sys.platform != "win32":
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, server.leave, 128 + number)
        server.connect(fd_in, fd_out, on_stuck=lambda: os._exit(1))
        return await server.run()

    code = asyncio.new_event_loop().run_until_complete(main())
    with contextlib.suppress(OSError):
        if sys.stderr is not None:
            sys.stderr.flush()
    os._exit(code)


def _log_to_stderr(verbose: int) -> None:
    """Log to standard error; libraries only warnings, since pygls logs whole messages."""
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("agentls").setLevel(level)
    logging.getLogger("pygls").setLevel(logging.WARNING)


def _log_unforeseen(_: object, context: dict[str, Any]) -> None:
    """What asyncio found: a task that failed with nobody waiting. Its text may quote secrets."""
    from agentls.lsp.failures import log_unforeseen

    error = context.get("exception")
    if isinstance(error, BaseException):
        log_unforeseen(error, "a background task")
    else:
        _log.error("asyncio: %s", context.get("message"))
