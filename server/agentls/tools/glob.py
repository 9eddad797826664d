"""glob: files by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import JsonValue

from agentls.core.ports import Files, Prepared, TextSearch, ToolContext, ToolOutput
from agentls.core.requests import ToolDefinition
from agentls.tools.arguments import Also, Arguments, define, parse
from agentls.tools.output import ToolLimits, cap, count, listed, one_line
from agentls.tools.searched import access, notes


class GlobArguments(Arguments):
    """A pattern, and the folder it counts from."""

    pattern: Annotated[str, Also("glob", "glob_pattern", "query")]
    path: Annotated[str, Also("directory", "dir", "folder", "root")] = "."


def _definition() -> ToolDefinition:
    return define(
        "glob", "List files whose path matches a pattern such as **/*.py.", GlobArguments, "search"
    )


@dataclass(frozen=True)
class Glob:
    """Lists files; ignored ones and secrets are left out."""

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

    async def prepare(
        self,
        arguments: dict[str, JsonValue],
        context: ToolContext,  # noqa: ARG002 - part of the port
    ) -> Prepared:
        """Check the arguments."""
        wanted = parse("glob", GlobArguments, arguments)
        path = wanted.path or "."
        place = "" if path == "." else f" in {path}"

        async def run() -> ToolOutput:
            found = await self.search.glob(wanted.pattern, path=path, limit=self.limits.max_results)
            lines = [*map(listed, found.paths), *notes(found, self.limits, "files")]
            summary = one_line(f"{count(len(found.paths), 'file')} for {wanted.pattern}{place}")
            if not found.paths:
                lines.insert(0, f"No file matches {wanted.pattern}{place}.{_hint(wanted.pattern)}")
            content = cap("\n".join(lines), self.limits, "narrow the pattern")
            return ToolOutput(content, summary=summary)

        title = one_line(f"List {wanted.pattern}{place}")
        return Prepared(title, await access(self.files, path), run)


def _hint(pattern: str) -> str:
    folders, _, name = pattern.rpartition("/")
    if folders in ("", "**"):
        return " Ignored files are not listed."
    return f" Try **/{name} to look in all folders."
