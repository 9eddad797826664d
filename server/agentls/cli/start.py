"""From parsed arguments to a running agent: workspace, log, settings."""

from __future__ import annotations

import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentls.cli.streams import Output
from agentls.core.errors import UsageError
from agentls.core.text import visible

if TYPE_CHECKING:
    from agentls.app import App
    from agentls.cli.arguments import Arguments
    from agentls.cli.interrupts import Interrupts


@dataclass(frozen=True, slots=True)
class Environment:
    """What a command gets: the arguments, the streams and the signals."""

    arguments: Arguments
    stdout: Output
    stderr: Output
    interrupts: Interrupts


def find_workspace(given: Path | None) -> Path:
    """The folder to work in: the given one, else the enclosing git repository, else the current.

    Raises:
        UsageError: there is no such folder.
    """
    try:
        if given is not None:
            folder = given.expanduser().resolve()
            if not folder.is_dir():
                raise UsageError(f"The workspace {given} is not a folder.")
            return folder
        here = Path.cwd()
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).rstrip(".")
        raise UsageError(f"The workspace cannot be used: {reason}.") from error
    return next((f for f in (here, *here.parents) if _holds_repository(f)), here)


def _holds_repository(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:  # a folder above that is not this user's to look into
        return False


class _WithoutTraceback(logging.Formatter):
    """For people who did not ask for details."""

    def formatException(self, ei: object) -> str:  # noqa: ARG002 - overridden
        """Say nothing beside the message."""
        return ""


def set_up_log(verbose: int) -> None:
    """Log to stderr: warnings, with `-v` what happens, with `-vv` everything of this package."""
    handler = logging.StreamHandler(sys.stderr)
    form = logging.Formatter if verbose else _WithoutTraceback
    handler.setFormatter(form("%(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    # Only this package may say more: HTTP libraries log addresses, which can hold keys.
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    logging.getLogger("agentls").setLevel(level)


def flags_of(arguments: Arguments) -> dict[str, Any]:
    """The settings that the command line sets, nested as in the settings file."""
    flags: dict[str, Any] = {}
    if arguments.model:
        flags["llm"] = {"model": arguments.model}
    if arguments.mode is not None:
        flags["permissions"] = {"mode": arguments.mode}
    return flags


@asynccontextmanager
async def open_app(environment: Environment) -> AsyncIterator[App]:
    """An agent for the workspace, closed at the end.

    Raises:
        UsageError: the workspace is not a folder.
    """
    workspace = find_workspace(environment.arguments.workspace)
    from agentls.app import build
    from agentls.settings import load

    loaded = load(workspace, flags=flags_of(environment.arguments))
    app = await build(loaded.settings, workspace=workspace)
    try:
        for problem in (*loaded.problems, *app.problems):
            environment.stderr.line(f"agentls: warning: {visible(problem)}")
        yield app
    finally:
        await app.aclose()
