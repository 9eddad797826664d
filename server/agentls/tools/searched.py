"""What glob and grep share: where a search starts, and notes about what it left out."""

from __future__ import annotations

from dataclasses import replace

from agentls.core.ports import Access, Files, Found
from agentls.tools.output import ToolLimits, count


async def access(files: Files, path: str) -> Access:
    """What a search of a file or a folder touches.

    Never a secret: searches leave those out, so there is nothing to ask about.

    Raises:
        PathRefused: the place is outside the workspace.
    """
    facts = await files.facts(path)
    return Access("read", (replace(facts, secret=False),))


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
