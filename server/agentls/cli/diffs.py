"""Unified diffs of file edits, as lines for a terminal. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agentls.core.messages import FileDiff
from agentls.core.text import common_ends, split_lines

_MAX_COMPARED = 4_000_000
"""Above this product of line counts a line-by-line comparison would take seconds."""

STYLES = {"added": "green", "removed": "red", "hunk": "cyan", "file": "bold", "context": ""}
"""How each kind of line is printed, as rich names it."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line with its kind; `text` carries the sign in front and no line end."""

    kind: Literal["file", "hunk", "added", "removed", "context"]
    text: str


def diff_lines(diff: FileDiff, context: int = 3) -> Iterator[DiffLine]:
    """The whole change to one file, with nothing left out."""
    old, new = split_lines(diff.old_text or ""), split_lines(diff.new_text)
    label = "new file" if diff.old_text is None else "edit"
    added, removed = change_counts(old, new)
    yield DiffLine("file", f"{label} {diff.path} (+{added} -{removed})")
    # Where all lines end in CRLF the CR is noise; where they differ it is part of the change.
    hide_cr = not any(line.endswith("\n") and not line.endswith("\r\n") for line in (*old, *new))
    for before, after, tags in _hunks(old, new, context):
        yield DiffLine("hunk", f"@@ -{before} +{after} @@")
        for sign, line in tags:
            yield from _line(sign, line, hide_cr)


def change_counts(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Lines added and lines removed."""
    added = removed = 0
    for tag, i1, i2, j1, j2 in _opcodes(old, new):
        if tag != "equal":
            removed += i2 - i1
            added += j2 - j1
    return added, removed


def _line(sign: str, line: str, hide_cr: bool) -> Iterator[DiffLine]:
    kinds: dict[str, Literal["added", "removed", "context"]] = {
        "+": "added",
        "-": "removed",
        " ": "context",
    }
    kind = kinds[sign]
    body = line.removesuffix("\r\n") if hide_cr else line.removesuffix("\n")
    yield DiffLine(kind, sign + body)
    if not line.endswith(("\n", "\r")):
        yield DiffLine("context", "\\ no newline at end of file")


def _hunks(
    old: Sequence[str], new: Sequence[str], context: int
) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    for group in _grouped(_opcodes(old, new), context):
        lines: list[tuple[str, str]] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [(" ", line) for line in old[i1:i2]]
            else:
                lines += [("-", line) for line in old[i1:i2]]
                lines += [("+", line) for line in new[j1:j2]]
        first, last = group[0], group[-1]
        yield (_range(first[1], last[2]), _range(first[3], last[4]), lines)


def _range(start: int, stop: int) -> str:
    length = stop - start
    return f"{start + 1 if length else start},{length}"


_Opcode = tuple[str, int, int, int, int]


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[_Opcode]:
    """Like `SequenceMatcher.get_opcodes`, at a cost that follows the change and not the file."""
    head, tail = common_ends(old, new)
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    middle: list[_Opcode]
    if len(old_middle) * len(new_middle) > _MAX_COMPARED:
        middle = [("replace", 0, len(old_middle), 0, len(new_middle))]
    else:
        matcher = difflib.SequenceMatcher(None, old_middle, new_middle, autojunk=False)
        middle = list(matcher.get_opcodes())
    opcodes: list[_Opcode] = [("equal", 0, head, 0, head)] if head else []
    opcodes += [(tag, i1 + head, i2 + head, j1 + head, j2 + head) for tag, i1, i2, j1, j2 in middle]
    if tail:
        opcodes.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return opcodes


def _grouped(opcodes: Sequence[_Opcode], context: int) -> Iterator[list[_Opcode]]:
    """Changes with `context` lines around them; far apart ones separately."""
    group: list[_Opcode] = []
    for number, (tag, i1, i2, j1, j2) in enumerate(opcodes):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        first, last = number == 0, number == len(opcodes) - 1
        if not first and not last and i2 - i1 <= 2 * context:
            group.append((tag, i1, i2, j1, j2))
            continue
        if not first:
            end = min(i2, i1 + context)
            group.append((tag, i1, end, j1, j1 + end - i1))
            yield group
            group = []
        if not last:
            start = max(i1, i2 - context)
            group.append((tag, start, i2, j2 - (i2 - start), j2))
    if any(tag != "equal" for tag, *_ in group):
        yield group
