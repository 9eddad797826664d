"""edit_file: replace a piece of text in a file, or several, all or nothing.

The schema offers one replacement, which small models get right; `edits`, a list of them, is taken
as well.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import JsonValue, field_validator

from agentls.core.errors import EditRefused, InvalidArguments
from agentls.core.messages import FileDiff
from agentls.core.ports import (
    Access,
    Files,
    PathFacts,
    Prepared,
    TextSearch,
    ToolContext,
    ToolOutput,
)
from agentls.core.requests import ToolDefinition
from agentls.core.text import escaped_line, lf
from agentls.tools.arguments import Also, Arguments, FilePath, define, parse
from agentls.tools.diffs import Change, compare
from agentls.tools.matching import Edited, Hunk, apply
from agentls.tools.output import ToolLimits, count
from agentls.tools.sources import Source, missing, named, source
from agentls.tools.write_file import create

OldText = Annotated[str, Also("old_string", "old_str", "search", "old", "find")]
NewText = Annotated[str, Also("new_string", "new_str", "replace", "new", "replacement")]


class HunkArguments(Arguments):
    """One replacement."""

    old_text: OldText
    new_text: NewText
    replace_all: bool = False


class EditFileArguments(Arguments):
    """One replacement in a file."""

    path: FilePath
    old_text: OldText
    new_text: NewText
    replace_all: bool = False


class SeveralEdits(Arguments):
    """Several replacements in a file."""

    path: FilePath
    edits: list[dict[str, JsonValue]]

    @field_validator("edits", mode="before")
    @classmethod
    def _decode(cls, value: object) -> object:
        """Models also write the list as a string that holds JSON."""
        try:
            return json.loads(value) if isinstance(value, str) else value
        except RecursionError:
            raise ValueError("nested too deeply") from None


def _definition() -> ToolDefinition:
    return define(
        "edit_file",
        "Replace old_text, copied exactly from the file and unique in it, with new_text.",
        EditFileArguments,
        "edit",
    )


@dataclass(frozen=True)
class EditFile:
    """Replaces text that is found in a file.

    `readable` says whether a path's text may be quoted in messages.
    """

    files: Files
    search: TextSearch
    limits: ToolLimits
    readable: Callable[[str], bool]
    definition: ToolDefinition = field(default_factory=_definition, init=False)
    mutates: bool = field(default=True, init=False)
    idempotent: bool = field(default=False, init=False)

    @property
    def timeout_s(self) -> float:
        """Seconds the write may take."""
        return self.limits.timeout_s

    async def prepare(self, arguments: dict[str, JsonValue], context: ToolContext) -> Prepared:
        """Find the text and build the new file; what is approved is exactly this change."""
        path, hunks = _parse(arguments)
        facts = await self.files.facts(path)
        creates = len(hunks) == 1 and not hunks[0].old
        if not facts.exists:
            if creates:
                return create(self.files, path, hunks[0].new, facts, context)
            raise await missing(self.search, facts)
        current = await source(self.files, path, facts, context)
        # The person has not been asked yet, so a refusal must not show what reading would not.
        quote = not facts.secret and self.readable(facts.path)
        if creates and not current.text:
            edited = Edited(hunks[0].new, ())
        else:
            edited = await asyncio.to_thread(_edit, current, hunks, quote)
        change = await asyncio.to_thread(compare, current.text, edited.text)
        return self._prepared(path, facts, current, edited, change, context, quote)

    def _prepared(
        self,
        path: str,
        facts: PathFacts,
        current: Source,
        edited: Edited,
        change: Change,
        context: ToolContext,
        quote: bool,
    ) -> Prepared:
        where = _where(edited)
        diff = (FileDiff(path=current.path, old_text=current.text, new_text=edited.text),)

        async def run() -> ToolOutput:
            written = await self.files.write(
                path, edited.text, base=current.version, place=facts.place
            )
            context.seen[written.path] = written.version
            said = f"Edited {escaped_line(current.path)}{where}."
            shown = change.snippet if quote else ""
            content = "\n".join(part for part in (said + _looseness(edited), shown) if part)
            return ToolOutput(content, summary=said, diff=diff)

        return Prepared(f"Edit {named(path, facts)}{where}", Access("write", (facts,)), run, diff)


def _parse(arguments: dict[str, JsonValue]) -> tuple[str, list[Hunk]]:
    if arguments.get("edits") is None:
        one = parse("edit_file", EditFileArguments, arguments)
        return one.path, [Hunk(lf(one.old_text), lf(one.new_text), one.replace_all)]
    several = parse("edit_file", SeveralEdits, arguments)
    if not several.edits:
        raise InvalidArguments("edit_file: 'edits' is empty.")
    hunks = [
        parse(f"edit_file: edits[{number}]", HunkArguments, hunk)
        for number, hunk in enumerate(several.edits)
    ]
    return several.path, [Hunk(lf(h.old_text), lf(h.new_text), h.replace_all) for h in hunks]


def _edit(current: Source, hunks: list[Hunk], quote: bool) -> Edited:
    if not all(hunk.old for hunk in hunks):
        raise EditRefused(
            f"old_text is empty, but {escaped_line(current.path)} has text.",
            hint="Give the text to replace, or use write_file to replace all of it.",
        )
    return apply(escaped_line(current.path), current.text, hunks, quote=quote)


def _where(edited: Edited) -> str:
    places = edited.places
    if not places:
        return ""
    spans = [
        f"{place.start_line_no}-{place.end_line_no}"
        if place.end_line_no > place.start_line_no
        else str(place.start_line_no)
        for place in places[:5]
    ]
    if len(places) == 1:
        return f", line{'s' if '-' in spans[0] else ''} {spans[0]}"
    more = ", …" if len(places) > 5 else ""
    return f", {count(len(places), 'place')} (lines {', '.join(spans)}{more})"


def _looseness(edited: Edited) -> str:
    loose = sorted({place.how for place in edited.places if place.how})
    return f" Matched loosely, disregarding {', '.join(loose)}: check the result." if loose else ""
