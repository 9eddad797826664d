"""grep: lines of files by a regular expression or literal text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import JsonValue

from agentls.core.errors import InvalidArguments
from agentls.core.ports import (
    Files,
    Found,
    GrepMatch,
    Prepared,
    TextSearch,
    ToolContext,
    ToolOutput,
)
from agentls.core.requests import ToolDefinition
from agentls.tools.arguments import Also, Arguments, define, parse
from agentls.tools.output import ToolLimits, cap, count, cut_line, listed, one_line
from agentls.tools.searched import access, notes

_MAX_MATCH_CHARS = 1_000
"""Generous, as a search gives very long lines cut around their match."""
_MAX_CONTEXT_CHARS = 300
_MAX_CONTEXT_LINES = 20


class GrepArguments(Arguments):
    """An expression, where to look for it, and how."""

    pattern: Annotated[str, Also("query", "regex", "search", "text")]
    path: Annotated[str, Also("directory", "dir", "folder", "file_path", "file")] = "."
    glob: Annotated[str | None, Also("include", "file_pattern")] = None
    literal: Annotated[bool, Also("fixed_strings")] = False
    ignore_case: Annotated[bool, Also("case_insensitive")] = False
    context_lines: Annotated[int, Also("context")] = 0


def _definition() -> ToolDefinition:
    return define(
        "grep",
        "Search file contents for a regular expression; gives path:line: text.",
        GrepArguments,
        "search",
    )


@dataclass(frozen=True)
class Grep:
    """Searches text; `readable` says which files' lines may be shown."""

    files: Files
    search: TextSearch
    limits: ToolLimits
    readable: Callable[[str], bool]
    definition: ToolDefinition = field(default_factory=_definition, init=False)
    mutates: bool = field(default=False, init=False)
    idempotent: bool = field(default=True, init=False)

    @property
    def timeout_s(self) -> float:
        """Seconds one attempt may take."""
        return self.limits.timeout_s

    async def prepare(
        self,
        arguments: dict[str, JsonValue],
        context: ToolContext,  # noqa: ARG002 - part of the port
    ) -> Prepared:
        """Check the arguments."""
        wanted = parse("grep", GrepArguments, arguments)
        if not wanted.pattern:
            raise InvalidArguments("grep: 'pattern' is empty.")
        place = f" in {wanted.path}" if wanted.path not in ("", ".") else ""

        async def run() -> ToolOutput:
            found, literally = await self._found(wanted)
            lines = _listing(found, self.limits, self.readable)
            if literally:
                lines.append("[not a valid regular expression: searched for as literal text]")
            matches = sum(match.is_match for match in found.matches)
            if not found.matches:
                lines.insert(0, f"No line matches {wanted.pattern}{place}.{_hint(wanted, found)}")
            content = cap("\n".join(lines), self.limits, "narrow it with path or glob")
            summary = one_line(f"{count(matches, 'match')} for {wanted.pattern}{place}")
            return ToolOutput(content, summary=summary)

        title = one_line(f"Search for {wanted.pattern}{place}")
        return Prepared(title, await access(self.files, wanted.path or "."), run)

    async def _found(self, wanted: GrepArguments) -> tuple[Found, bool]:
        try:
            return await self._grep(wanted, wanted.literal), False
        except InvalidArguments:
            if wanted.literal:
                raise
        # Models write `f(x` when they mean just that.
        return await self._grep(wanted, True), True

    async def _grep(self, wanted: GrepArguments, literal: bool) -> Found:
        return await self.search.grep(
            wanted.pattern,
            path=wanted.path or ".",
            glob=wanted.glob or None,
            literal=literal,
            ignore_case=wanted.ignore_case,
            context_lines=min(max(wanted.context_lines, 0), _MAX_CONTEXT_LINES),
            limit=self.limits.max_results,
        )


def _listing(found: Found, limits: ToolLimits, readable: Callable[[str], bool]) -> list[str]:
    shown = [match for match in found.matches if readable(match.path)]
    hidden = sum(match.is_match for match in found.matches if not readable(match.path))
    return [*_lines(shown), *notes(found, limits, "matches", hidden)]


def _lines(matches: Sequence[GrepMatch]) -> Iterator[str]:
    """Matches as `path:line: text`, context as `path:line- text`, `--` between separate pieces."""
    with_context = any(not match.is_match for match in matches)
    last: tuple[str, int] | None = None
    for match in matches:
        if with_context and last is not None and last != (match.path, match.line_no - 1):
            yield "--"
        last = (match.path, match.line_no)
        mark, max_chars = (":", _MAX_MATCH_CHARS) if match.is_match else ("-", _MAX_CONTEXT_CHARS)
        yield f"{listed(match.path)}:{match.line_no}{mark} {cut_line(match.text, max_chars)}"


def _hint(wanted: GrepArguments, found: Found) -> str:
    if found.skipped_secrets and wanted.path not in ("", "."):
        return ""
    if not wanted.ignore_case:
        return " Try ignore_case, or a shorter pattern."
    return " Ignored files are not searched."
