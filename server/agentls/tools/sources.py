"""What the file tools share: the text a call starts from, and the paths they name in messages.

Models see LF line ends only; `Files.write` maps them back.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from agentls.core.errors import StaleFile, ToolError
from agentls.core.ports import Files, FileText, PathFacts, TextSearch, ToolContext
from agentls.core.text import escaped_line, lf
from agentls.tools.output import one_line

_MAX_SUGGESTIONS = 3
_GLOB_CHARACTERS = re.compile(r"([*?\[\]{}\\])")


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text with LF line ends, and the version it has."""

    path: str
    text: str
    version: str


def named(asked: str, facts: PathFacts) -> str:
    """A path for titles: hidden characters shown, with the place a link leads to."""
    return one_line(facts.path if facts.target is None else f"{asked} → {facts.target}")


async def source(files: Files, path: str, facts: PathFacts, context: ToolContext) -> Source:
    """Read the file that a change starts from.

    Raises:
        StaleFile: it is not what the model last read, or the path leads elsewhere by now.
    """
    current = await files.read(path)
    check_same(current, facts)
    if context.seen.get(current.path, current.version) != current.version:
        raise StaleFile(
            f"{escaped_line(current.path)} has changed since you read it.", hint="Read it again."
        )
    return Source(current.path, lf(current.text), current.version)


def check_same(current: FileText, facts: PathFacts) -> None:
    """Refuse when a link was swapped between the check of a path and its use.

    Raises:
        StaleFile: the file that was read is not the file that was checked.
    """
    if current.path not in (facts.path, facts.target):
        raise StaleFile(f"{escaped_line(facts.path)} has just been replaced.", hint="Try again.")


async def missing(search: TextSearch, facts: PathFacts) -> ToolError:
    """The error for a file that does not exist, with files of the same name elsewhere."""
    name = _GLOB_CHARACTERS.sub(r"[\1]", posixpath.basename(facts.path))
    try:
        found = await search.glob(f"**/{name}", limit=_MAX_SUGGESTIONS)
    except ToolError:
        found = None
    hint = "Use glob to list files."
    if found is not None and found.paths:
        hint = f"Did you mean {escaped_line(' or '.join(found.paths))}?"
    return ToolError(f"there is no file {escaped_line(facts.path)}.", hint=hint)
