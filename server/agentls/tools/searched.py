"""What glob and grep share: where a search starts, and notes about what it left out."""

from __future__ import annotations

import posixpath

from agentls.core.errors import PathRefused
from agentls.core.ports import Access, Files, Found, PathFacts
from agentls.tools.output import ToolLimits, count


async def access(files: Files, path: str) -> Access:
    """What a search of a file or a folder touches.

    A folder has no facts of its own; the search itself refuses one outside the workspace, and
    leaves out secrets.
    """
    try:
        facts = await files.facts(path)
    except PathRefused:
        facts = PathFacts(path=posixpath.normpath(path), exists=True)
    return Access("read", (facts,))


def notes(found: Found, limits: ToolLimits, noun: str, hidden: int = 0) -> list[str]:
    """What a person would want to know about a listing that is not whole."""
    lines: list[str] = []
    if found.truncated:
        lines.append(f"[only the first {limits.max_results} {noun} are shown: narrow the search]")
    if found.skipped_secrets:
        lines.append(f"[{count(found.skipped_secrets, 'file')} left out: may hold secrets]")
    if hidden:
        lines.append(f"[{count(hidden, 'match')} left out: a rule restricts reading them]")
    return lines
