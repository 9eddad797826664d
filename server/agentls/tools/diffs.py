"""A short unified diff of two texts, in bounded time. Pure; texts have LF line ends."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from agentls.core.text import bare_lines, common_ends

_CONTEXT = 2
_MAX_COMPARED_LINES = 2_000
_MAX_SHOWN_LINES = 40
_MAX_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class Change:
    """What changed: lines added and removed, and a few lines of unified diff (without header)."""

    added: int
    removed: int
    snippet: str


def compare(old: str, new: str) -> Change:
    """Compare two texts; a very large change is counted but not shown."""
    old_lines, new_lines = bare_lines(old), bare_lines(new)
    if old_lines and new_lines and old.endswith("\n") != new.endswith("\n"):
        shorter = new_lines if old.endswith("\n") else old_lines
        shorter[-1] += " [no line end]"
    head, tail = common_ends(old_lines, new_lines)
    old_middle = old_lines[head : len(old_lines) - tail]
    new_middle = new_lines[head : len(new_lines) - tail]
    if max(len(old_middle), len(new_middle)) > _MAX_COMPARED_LINES:
        return Change(len(new_middle), len(old_middle), "")
    start = max(head - _CONTEXT, 0)
    stop = max(tail - _CONTEXT, 0)
    diff = list(
        difflib.unified_diff(
            old_lines[start : len(old_lines) - stop],
            new_lines[start : len(new_lines) - stop],
            n=_CONTEXT,
            lineterm="",
        )
    )[2:]
    added = sum(line.startswith("+") for line in diff)
    removed = sum(line.startswith("-") for line in diff)
    return Change(added, removed, _shown(diff, start))


def _shown(diff: list[str], offset: int) -> str:
    lines = [
        _moved(line, offset) if line.startswith("@@") else line[:_MAX_SHOWN_CHARS]
        for line in diff[:_MAX_SHOWN_LINES]
    ]
    if len(diff) > _MAX_SHOWN_LINES:
        lines.append(f"[… {len(diff) - _MAX_SHOWN_LINES} more lines]")
    return "\n".join(lines)


def _moved(header: str, offset: int) -> str:
    """A hunk header with its line numbers counted from the start of the file."""
    _, old, new, _ = header.split(" ")
    places = []
    for part in (old, new):
        line_no, comma, length = part[1:].partition(",")
        places.append(f"{part[0]}{int(line_no) + offset}{comma}{length}")
    return f"@@ {places[0]} {places[1]} @@"
