"""How tools' answers and titles are written: limits, cuts, escapes. Pure; knows no tool."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentls.core.text import cap_middle, visible

_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that end a line, move the cursor, turn the text around, or cannot be written."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Bounds of what a tool does and answers."""

    max_output_bytes: int = 10_000
    max_line_chars: int = 1_000
    max_results: int = 200
    timeout_s: float = 15.0
    command_timeout_s: float = 120.0
    max_command_timeout_s: float = 600.0


def cap(text: str, limits: ToolLimits, rest: str) -> str:
    """Head and tail of a long answer; `rest` says how to get what is left out."""
    return cap_middle(text, limits.max_output_bytes, rest)


def cut_line(line: str, max_chars: int) -> str:
    """The start of a long line, saying how much more there is."""
    if len(line) <= max_chars:
        return line
    return f"{line[:max_chars]}[… {len(line) - max_chars} more characters]"


def one_line(text: str) -> str:
    """Text for a title, whole and on one line.

    Line ends show as ⏎; characters that could hide something show as escapes, and are flagged.
    """
    shown = visible(text)
    flag = "" if shown == text else " [contains hidden characters, shown as \\u{…}]"
    return shown.replace("\n", " ⏎ ").replace("\t", " ") + flag


def listed(path: str) -> str:
    """A path in a list of many: on one line, so that no name can pass for several or for a note.

    Other characters stay: models copy paths from lists, and names of all languages must open.
    """
    return _BREAKS.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", path)


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 line`, `2 lines`, `3 matches`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('ch') else 's'}"
