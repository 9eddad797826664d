"""How calls are put to people: their titles, their paths, what came of them. Pure.

The same words on every surface; everything is one line that is safe to print.
"""

from __future__ import annotations

import json

from pydantic import JsonValue

from agentls.core.messages import ToolCall, ToolResult
from agentls.core.ports import PathFacts
from agentls.core.text import escaped_line, short_line

_LINE_CHARS = 100
_SUBJECTS = ("command", "pattern", "query", "url", "path", "name")
"""Arguments that say by themselves what a call is about, the most telling first."""


def call_title(call: ToolCall) -> str:
    """The tool and what it is applied to: `read_file src/app.py:10-40`, `bash git status`."""
    if call.invalid is not None:
        return short_line(f"{call.name} {call.invalid}", _LINE_CHARS)
    subject = next((key for key in _SUBJECTS if isinstance(call.arguments.get(key), str)), None)
    if subject is None:
        rest = json.dumps(call.arguments, ensure_ascii=False) if call.arguments else ""
        return short_line(f"{call.name} {rest}", _LINE_CHARS)
    title = f"{call.name} {call.arguments[subject]}{_lines(call.arguments)}"
    if subject == "pattern" and isinstance(folder := call.arguments.get("path"), str):
        title += f" in {folder}"
    return short_line(title, _LINE_CHARS)


def result_note(result: ToolResult) -> str:
    """The result's summary, or for a failure the first line of what went wrong."""
    text = result.content.removeprefix("Error: ") if result.is_error else result.summary
    return short_line(text.strip().split("\n", 1)[0], _LINE_CHARS)


def path_note(facts: PathFacts) -> str:
    """What a person should know of a path before saying yes; empty when there is nothing."""
    notes = []
    if facts.target is not None:
        notes.append(f"leads to {escaped_line(facts.target)}")
    if facts.protected:
        notes.append("can run code or loosen rules")
    if facts.secret:
        notes.append("may hold secrets")
    return f"{escaped_line(facts.path)}: {', '.join(notes)}" if notes else ""


def _lines(arguments: dict[str, JsonValue]) -> str:
    first, last = arguments.get("start_line"), arguments.get("end_line")
    if first is None and last is None:
        return ""
    return f":{'' if first is None else first}-{'' if last is None else last}"
