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
from pathlib import Path
from typing import Any, Protocol

from agentls.lsp import garbage

_log = logging.getLogger(__name__)


class Options(Protocol):
    """What the command line says; None where it says nothing."""

    @property
    def workspace(self) -> Path | None:
        """Where to work when the client opens no folder."""

    @property
    def mode(self) -> str | None:
        """The mode of new sessions."""

    @property
    def model(self) -> str | None:
        """The model to use."""

    @property
    def verbose(self) -> int:
        """0 logs warnings, 1 information, 2 everything; never what was said."""


def serve(options: Options) -> int:
    """Speak LSP on standard input and output until the client leaves.

    Returns only when it cannot start. Otherwise the process ends here, because waiting for threads
    and tearing down the interpreter would keep it alive after its client. Its exit status is 0
    after `shutdown` and `exit`, 1 when the client left in any other way, 128 and the signal's
    number after a signal.
    """
    _log_to_stderr(options.verbose)
    workspace = _workspace(options.workspace)
    if workspace is None:
        _log.error("the workspace is not a folder")
        return 1
    garbage.pause()
    import asyncio

    from agentls.lsp.language_server import AgentServer
    from agentls.lsp.stdio import take_stdio

    fd_in, fd_out = take_stdio()

    async def main() -> int:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_unforeseen)
        server = AgentServer(workspace, _flags(options))
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


def _workspace(given: Path | None) -> Path | None:
    """The given folder, else the enclosing repository, else the current folder."""
    if given is not None:
        return given.resolve() if given.is_dir() else None
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def _flags(options: Options) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    if options.model:
        flags["llm"] = {"model": options.model}
    if options.mode is not None:
        flags["permissions"] = {"mode": options.mode}
    return flags


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
