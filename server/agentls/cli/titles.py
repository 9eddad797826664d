"""One line that names a tool call or its outcome, safe to print."""

from __future__ import annotations

import json

from pydantic import JsonValue

from agentls.core.messages import ToolCall, ToolResult
from agentls.core.text import visible

_WIDTH = 100
_SUBJECTS = ("command", "pattern", "query", "url", "path", "name")
"""Arguments that say by themselves what a call is about, the most telling first."""


def call_title(call: ToolCall) -> str:
    """The tool and what it is applied to: `read_file src/app.py:10-40`, `bash git status`."""
    if call.invalid is not None:
        return _line(f"{call.name} {call.invalid}")
    subject = next((key for key in _SUBJECTS if isinstance(call.arguments.get(key), str)), None)
    if subject is None:
        rest = json.dumps(call.arguments, ensure_ascii=False) if call.arguments else ""
        return _line(f"{call.name} {rest}")
    title = f"{call.name} {call.arguments[subject]}{_lines(call.arguments)}"
    if subject == "pattern" and isinstance(folder := call.arguments.get("path"), str):
        title += f" in {folder}"
    return _line(title)


def result_note(result: ToolResult) -> str:
    """The result's summary, or for a failure the first line of what went wrong."""
    text = result.content.removeprefix("Error: ") if result.is_error else result.summary
    return _line(text.strip().split("\n", 1)[0])


def _lines(arguments: dict[str, JsonValue]) -> str:
    first, last = arguments.get("start_line"), arguments.get("end_line")
    if first is None and last is None:
        return ""
    return f":{'' if first is None else first}-{'' if last is None else last}"


def _line(text: str) -> str:
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= _WIDTH else f"{flat[: _WIDTH - 1]}…"
