"""`agentls model list` and `agentls model pull`: weights for the embedded model."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import JsonValue

from agentls.app import models_folder
from agentls.cli.failures import DONE, as_json, exit_code
from agentls.cli.plain import write_json
from agentls.cli.start import Environment
from agentls.cli.streams import Output
from agentls.core.errors import AgentlsError
from agentls.core.text import visible
from agentls.llm.embedded import weights
from agentls.llm.embedded.catalogue import CATALOGUE
from agentls.llm.embedded.download import Progress, Report

_STOP_S = 2.0
_JSON_EVERY_S = 0.5
_LINE_EVERY_PERCENT = 10

Fetch = Callable[[str, Path, Report], Path]


def show(environment: Environment) -> int:
    """Print the catalogue and what of it is installed.

    Raises:
        OutputLost: nobody reads it any more.
    """
    out = environment.stdout
    there = {each.name: each.path for each in weights.installed(models_folder())}
    if environment.arguments.json:
        for entry in CATALOGUE.values():
            path = there.get(entry.name)
            line: dict[str, JsonValue] = {
                "type": "model",
                "name": entry.name,
                "title": entry.title,
                "sizeBytes": entry.size_bytes,
                "licence": entry.licence,
                "toolCalling": entry.tool_calling,
                "contextTokens": entry.context_tokens,
                "installed": path is not None,
                "path": None if path is None else str(path),
            }
            write_json(out, line)
        write_json(out, {"type": "result", "folder": str(models_folder())})
        return DONE
    rows = [("NAME", "MODEL", "SIZE", "LICENCE", "TOOLS", "INSTALLED")]
    for entry in CATALOGUE.values():
        size = f"{entry.size_bytes / 1e6:,.0f} MB"
        mark = "yes" if entry.name in there else "no"
        rows.append((entry.name, entry.title, size, entry.licence, entry.tool_calling, mark))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        out.line("  ".join(cells).rstrip())
    out.line()
    out.line(f"Fetch one with: agentls model pull NAME (into {visible(str(models_folder()))})")
    return DONE


def pull(environment: Environment, fetch: Fetch = weights.pull) -> int:
    """Fetch the weights of a catalogue model; Ctrl-C keeps what was fetched.

    `fetch` takes the model's name, the folder for its weights and where to report; it blocks.

    Raises:
        AgentlsError: the weights could not be fetched or stored.
        OutputLost: nobody reads the output any more.
    """
    return environment.interrupts.run(_pull(environment, fetch))


async def _pull(environment: Environment, fetch: Fetch) -> int:
    name, folder = environment.arguments.name, models_folder()
    try:
        with _progress(environment) as report:
            path = await _stoppable(fetch, name, folder, report)
    except AgentlsError as error:
        if not environment.arguments.json:
            raise
        write_json(environment.stdout, {"type": "result", "name": name, "error": as_json(error)})
        return exit_code(error)
    if environment.arguments.json:
        line = {"type": "result", "name": name, "path": str(path), "sizeBytes": _size(path)}
        write_json(environment.stdout, line)
    else:
        environment.stdout.line(f"{name} is ready: {visible(str(path))}")
    return DONE


class _Stopped(Exception):
    """The download was told to stop."""


async def _stoppable(fetch: Fetch, name: str, folder: Path, report: Report) -> Path:
    """Download in a thread; cancelling stops it at its next report and waits for that a moment."""
    stop = threading.Event()

    def checked(progress: Progress) -> None:
        if stop.is_set():
            raise _Stopped
        report(progress)

    work = asyncio.ensure_future(asyncio.to_thread(fetch, name, folder, checked))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({work}, timeout=_STOP_S)
        if work.done() and not work.cancelled():
            work.exception()
        raise


# --- progress --------------------------------------------------------------------------------


@contextmanager
def _progress(environment: Environment) -> Iterator[Report]:
    """What shows a download: JSON lines, a bar on a terminal, else a line now and then."""
    if environment.arguments.json:
        yield _json_lines(environment.stdout)
    elif environment.stderr.isatty():
        with _bar(environment.stderr, environment.arguments.name) as report:
            yield report
    else:
        yield _lines(environment.stderr, environment.arguments.name)


def _json_lines(stdout: Output) -> Report:
    last = ("", 0.0)

    def report(progress: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if progress.what == last[0] and now - last[1] < _JSON_EVERY_S:
            return
        last = (progress.what, now)
        line: dict[str, JsonValue] = {
            "type": "progress",
            "what": progress.what,
            "doneBytes": progress.done_bytes,
            "totalBytes": progress.total_bytes,
        }
        write_json(stdout, line)

    return report


def _lines(stderr: Output, name: str) -> Report:
    last = ("", -1)

    def report(progress: Progress) -> None:
        nonlocal last
        percent = 100 * progress.done_bytes // max(progress.total_bytes, 1)
        step = (progress.what, percent // _LINE_EVERY_PERCENT)
        if step != last:
            last = step
            total = f"{progress.total_bytes / 1e6:,.0f} MB"
            stderr.line(f"{visible(name)}: {visible(progress.what)}, {percent} % of {total}")

    return report


@contextmanager
def _bar(stderr: Output, name: str) -> Iterator[Report]:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import Progress as Bars

    from agentls.cli.render import terminal_console

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=terminal_console(stderr), transient=True) as bars:
        task = bars.add_task(visible(name), total=None)

        def report(progress: Progress) -> None:
            bars.update(
                task,
                description=f"{visible(name)} {visible(progress.what)}",
                completed=progress.done_bytes,
                total=progress.total_bytes,
            )

        yield report


def _size(path: Path) -> int:
    return path.stat().st_size
