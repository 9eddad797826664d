"""write_file: a whole file, new or replaced."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import JsonValue

from agentls.core.messages import FileDiff
from agentls.core.ports import Access, Files, PathFacts, Prepared, ToolContext, ToolOutput
from agentls.core.requests import ToolDefinition
from agentls.core.text import escaped_line, lf
from agentls.tools.arguments import Also, Arguments, FilePath, define, parse
from agentls.tools.diffs import compare
from agentls.tools.output import ToolLimits, count
from agentls.tools.sources import Source, named, source


class WriteFileArguments(Arguments):
    """All of the file's text."""

    path: FilePath
    content: Annotated[str, Also("contents", "text", "file_text", "body", "data")]


def _definition() -> ToolDefinition:
    return define(
        "write_file",
        "Create a file, or replace all of its text. To change part of a file use edit_file.",
        WriteFileArguments,
        "edit",
    )


@dataclass(frozen=True)
class WriteFile:
    """Writes whole files; missing folders are created."""

    files: Files
    limits: ToolLimits
    definition: ToolDefinition = field(default_factory=_definition, init=False)
    mutates: bool = field(default=True, init=False)
    idempotent: bool = field(default=False, init=False)

    @property
    def timeout_s(self) -> float:
        """Seconds the write may take."""
        return self.limits.timeout_s

    async def prepare(self, arguments: dict[str, JsonValue], context: ToolContext) -> Prepared:
        """Compare with the present text; what is approved is exactly this change."""
        wanted = parse("write_file", WriteFileArguments, arguments)
        facts = await self.files.facts(wanted.path)
        if not facts.exists:
            return create(self.files, wanted.path, wanted.content, facts, context)
        current = await source(self.files, wanted.path, facts, context)
        return await self._replace(current, wanted, facts, context)

    async def _replace(
        self, current: Source, wanted: WriteFileArguments, facts: PathFacts, context: ToolContext
    ) -> Prepared:
        new = lf(wanted.content)
        path = escaped_line(current.path)
        if new == current.text:
            return _unchanged(wanted.path, path, facts)
        change = await asyncio.to_thread(compare, current.text, new)
        counts = f"+{change.added} -{change.removed} lines"
        diff = (FileDiff(path=current.path, old_text=current.text, new_text=new),)

        async def run() -> ToolOutput:
            written = await self.files.write(
                wanted.path, new, base=current.version, place=facts.place
            )
            context.seen[written.path] = written.version
            said = f"Wrote {path} ({counts})."
            shown = "" if facts.secret else change.snippet
            return ToolOutput(f"{said}\n{shown}".strip(), summary=said, diff=diff)

        return Prepared(
            f"Write {named(wanted.path, facts)} ({counts})", Access("write", (facts,)), run, diff
        )


def create(
    files: Files, path: str, content: str, facts: PathFacts, context: ToolContext
) -> Prepared:
    """A call that makes a new file with exactly this content."""
    size = count(len(lf(content).removesuffix("\n").split("\n")) if content else 0, "line")
    diff = (FileDiff(path=facts.path, old_text=None, new_text=content),)

    async def run() -> ToolOutput:
        written = await files.write(path, content, base=None, place=facts.place)
        context.seen[written.path] = written.version
        said = f"Created {escaped_line(written.path)} ({size})."
        return ToolOutput(said, summary=said, diff=diff)

    title = f"Create {named(path, facts)} ({size})"
    return Prepared(title, Access("write", (facts,)), run, diff)


def _unchanged(asked: str, path: str, facts: PathFacts) -> Prepared:
    async def run() -> ToolOutput:
        said = f"{path} has exactly this content already; nothing was written."
        return ToolOutput(said, summary=said)

    return Prepared(f"Write {named(asked, facts)} (no change)", Access("read", (facts,)), run)
