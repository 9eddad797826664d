"""`agentls doctor`: what is set up, what really works, and what to do about the rest.

Every check does the thing it speaks of: a search runs, a request is sent, a file is written. Shows
no keys: what providers say is redacted before it gets here.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path

from platformdirs import user_state_path

from agentls import __version__
from agentls.app import App, build, cache_folder
from agentls.cli.failures import DONE, FAILED
from agentls.cli.findings import Check, failure
from agentls.cli.listening import listening_ports
from agentls.cli.model_checks import model_checks, weights_check
from agentls.cli.plain import write_json
from agentls.cli.start import Environment, find_workspace, flags_of
from agentls.core.errors import AgentlsError
from agentls.core.ports import ToolContext
from agentls.core.text import visible
from agentls.settings import load, user_file, workspace_file


def doctor(environment: Environment) -> int:
    """Print every check; 1 when something needed fails.

    Raises:
        UsageError: the workspace is not a folder.
        OutputLost: nobody reads the report any more.
    """
    return environment.interrupts.run(_doctor(environment))


async def _doctor(environment: Environment) -> int:
    workspace = find_workspace(environment.arguments.workspace)
    failed = []
    async for check in _checks(environment, workspace):
        if check.state == "failed":
            failed.append(check.name)
        _show(environment, check)
    if environment.arguments.json:
        result = {"type": "result", "ok": not failed, "failed": failed}
        write_json(environment.stdout, result)
    return FAILED if failed else DONE


def _show(environment: Environment, check: Check) -> None:
    out = environment.stdout
    if environment.arguments.json:
        write_json(out, {"type": "check", **asdict(check)})
        return
    mark = {
        "ok": out.mark("✓", "ok    "),
        "failed": out.mark("✗", "FAILED"),
        "note": out.mark("·", "note  "),
    }[check.state]
    out.line(f"{mark} {check.name}: {visible(check.detail)}")
    if check.next:
        for line in visible(check.next).split("\n"):
            out.line(f"    {line}")


async def _checks(environment: Environment, workspace: Path) -> AsyncIterator[Check]:
    yield Check("version", "ok", f"agentls {__version__}")
    yield _python()
    kind = "a git repository" if (workspace / ".git").exists() else "not a git repository"
    yield Check("workspace", "ok", f"{workspace} ({kind})")
    loaded = load(workspace, flags=flags_of(environment.arguments))
    app = await build(loaded.settings, workspace=workspace)
    for check in _settings(workspace, (*loaded.problems, *app.problems)):
        yield check
    state = user_state_path("agentls", appauthor=False)
    for name, folder in (("cache", cache_folder()), ("state", state)):
        yield await asyncio.to_thread(_writable, f"{name} folder", folder)
    try:
        yield await _search(app)
        async for check in model_checks(app):
            yield check
        yield weights_check()
        yield _ports()
    finally:
        await app.aclose()
    yield Check("sandbox", "note", "not part of this version: every command asks")


def _python() -> Check:
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return Check("Python", "ok", f"{version} at {sys.executable}")


def _settings(workspace: Path, problems: tuple[str, ...]) -> list[Check]:
    found = [str(path) for path in (user_file(), workspace_file(workspace)) if path.exists()]
    where = ", ".join(found) or f"defaults; your own would be in {user_file()}"
    return [
        Check("settings", "ok", where),
        *(Check("settings", "note", problem, "Correct or remove it.") for problem in problems),
    ]


def _writable(name: str, folder: Path) -> Check:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        reason = error.strerror or str(error)
        return Check(name, "failed", f"{folder}: {reason}", "Make the folder writable.")
    return Check(name, "ok", f"{folder} is writable")


async def _search(app: App) -> Check:
    tool = app.tools.get("glob")
    if tool is None:
        return Check("search", "failed", "the glob tool is missing")
    try:
        prepared = await tool.prepare({"pattern": "*"}, ToolContext())
        await prepared.run()
    except AgentlsError as error:
        return failure("search", error)
    return Check("search", "ok", "ripgrep runs")


# --- the process -----------------------------------------------------------------------------


def _ports() -> Check:
    ports = listening_ports(os.getpid())
    if ports is None:
        return Check("listening ports", "note", "cannot be checked on this system")
    if ports:
        listed = ", ".join(str(port) for port in sorted(ports))
        return Check("listening ports", "failed", listed, "Please report it.")
    return Check("listening ports", "ok", "none")
