"""read_file: text of a file, or of some of its lines.

Lines come without numbers: numbers mislead models when they copy text into an edit, and cost two
tokens a line, which a local model has to read. A range says which lines it is instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import JsonValue

from agentls.core.errors import InvalidArguments, ToolError
from agentls.core.ports import Access, Files, Prepared, TextSearch, ToolContext, ToolOutput
from agentls.core.requests import ToolDefinition
from agentls.core.text import bare_lines, escaped_line, lf
from agentls.tools.arguments import Also, Arguments, FilePath, define, parse
from agentls.tools.output import ToolLimits, cap, count, cut_line
from agentls.tools.sources import check_same, missing, named


class ReadFileArguments(Arguments):
    """Lines count from 1, inclusive."""

    path: FilePath
    start_line: Annotated[int | None, Also("start", "line_start", "from_line", "offset")] = None
    end_line: Annotated[int | None, Also("end", "line_end", "to_line")] = None


def _definition() -> ToolDefinition:
    return define(
        "read_file",
        "Read a text file, or its lines start_line to end_line (from 1, inclusive).",
        ReadFileArguments,
        "read",
    )


@dataclass(frozen=True)
class ReadFile:
    """Reads files as the user sees them, unsaved changes included."""

    files: Files
    search: TextSearch
    limits: ToolLimits
    definition: ToolDefinition = field(default_factory=_definition, init=False)
    mutates: bool = field(default=False, init=False)
    idempotent: bool = field(default=True, init=False)

    @property
    def timeout_s(self) -> float:
        """Seconds one attempt may take."""
        return self.limits.timeout_s

    async def prepare(self, arguments: dict[str, JsonValue], context: ToolContext) -> Prepared:
        """Resolve the path; the file is opened by `run`."""
        wanted = parse("read_file", ReadFileArguments, arguments)
        # 0 and -1 are how models write "from the start" and "to the end".
        start = max(wanted.start_line or 1, 1)
        end = wanted.end_line if wanted.end_line is not None and wanted.end_line > 0 else None
        if end is not None and end < start:
            raise InvalidArguments(f"read_file: end_line {end} is before start_line {start}.")
        facts = await self.files.facts(wanted.path)
        if not facts.exists:
            raise await missing(self.search, facts)

        async def run() -> ToolOutput:
            current = await self.files.read(wanted.path)
            check_same(current, facts)
            path = escaped_line(current.path)
            content = excerpt(path, lf(current.text), start, end, self.limits)
            context.seen[current.path] = current.version
            return ToolOutput(content, summary=f"Read {path}{_range(start, end)}")

        title = f"Read {named(wanted.path, facts)}{_range(start, end)}"
        return Prepared(title, Access("read", (facts,)), run)


def _range(start: int, end: int | None) -> str:
    if end is None:
        return "" if start == 1 else f", lines {start} on"
    return f", lines {start}-{end}"


def excerpt(path: str, text: str, start: int, end: int | None, limits: ToolLimits) -> str:
    """Lines `start` to `end` (from 1, inclusive) of a text with LF ends, within the limits.

    Raises:
        ToolError: the text has no such lines.
    """
    lines = bare_lines(text)
    if not lines:
        return f"[{path} is empty]"
    total = len(lines)
    if start > total:
        raise ToolError(f"{path} has only {count(total, 'line')}; there is no line {start}.")
    last = min(end or total, total)
    shown = [cut_line(line, limits.max_line_chars) for line in lines[start - 1 : last]]
    head, tail = _fit(shown, limits.max_output_bytes)
    if head + tail < len(shown):
        first_cut, last_cut = start + head, last - tail
        gap = f"[… lines {first_cut}-{last_cut} of {total} left out: "
        gap += f"read them with start_line={first_cut}, end_line={last_cut}]"
        shown[head : len(shown) - tail] = [gap]
    content = "\n".join(shown)
    if (start, last) != (1, total):
        content = f"[lines {start}-{last} of {total}]\n{content}"
    return cap(content, limits, "the lines are too long to show")


def _fit(lines: list[str], max_bytes: int) -> tuple[int, int]:
    """How many lines to keep at the head and at the tail."""
    # Room for the two notes; the head gets two thirds of the rest.
    room = max_bytes - 200
    sizes = [len(line.encode("utf-8", "replace")) + 1 for line in lines]
    if sum(sizes) <= room:
        return len(lines), 0
    head, used = 0, 0
    while used + sizes[head] <= room * 2 // 3:
        used += sizes[head]
        head += 1
    tail = 0
    while used + sizes[-1 - tail] <= room:
        used += sizes[-1 - tail]
        tail += 1
    return head, tail
