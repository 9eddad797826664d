"""Compares whole lines of a file with a text that is almost right. Pure; LF line ends.

Disregarded, in this order: blanks at line ends and the final line end; indentation that is off by
the same amount on every line (the new text is moved alike); tabs against spaces; blank lines around
the text; line numbers copied along. Never the text inside a line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from agentls.core.text import bare_lines

_NUMBERED = re.compile(r"(?:[^\s:]+:)?[ ]*(\d+)(?:\t|→|: ?|- |\| ?)")
_TAB_WIDTHS = (4, 2, 8)
_MAX_COMPARED_LINES = 400
_MAX_QUOTED_LINES = 8
_MAX_QUOTED_CHARS = 160

_LINE_ENDS = "blanks at line ends"
_INDENTATION = "indentation"
_TABS = "tabs against spaces"
_BLANK_LINES = "blank lines around it"
_NUMBERS = "line numbers in old_text"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the text, as offsets, and what replaces it; `how` says what was disregarded."""

    start: int
    end: int
    new: str
    how: str = ""


class Lines:
    """A text by lines, without their ends, with the offset each starts at."""

    def __init__(self, text: str) -> None:
        """A final line end does not begin another line."""
        self.ends_open = not text.endswith("\n")
        self.lines = bare_lines(text)
        self.offsets: list[int] = []
        offset = 0
        for line in self.lines:
            self.offsets.append(offset)
            offset += len(line) + 1
        self.length = len(text)

    @cached_property
    def stripped(self) -> list[str]:
        """The lines without blanks at either end."""
        return [line.strip() for line in self.lines]

    @cached_property
    def positions(self) -> dict[str, list[int]]:
        """Where each stripped line is."""
        found: dict[str, list[int]] = {}
        for index, line in enumerate(self.stripped):
            found.setdefault(line, []).append(index)
        return found

    def quoted(self, start: int, length: int) -> str:
        """A few lines with their numbers above, each cut when long."""
        end = min(start + min(length, _MAX_QUOTED_LINES), len(self.lines))
        shown = [line[:_MAX_QUOTED_CHARS] for line in self.lines[start:end]]
        return "\n".join([f"--- lines {start + 1}-{end}", *shown])


def find(file: Lines, old: str, new: str) -> list[Span]:
    """All places that fit, at the strictest degree of looseness at which any does."""
    for how, old_lines, new_lines in _variants(file, bare_lines(old), bare_lines(new)):
        spans = list(_windows(file, old_lines, new_lines, how, old.endswith("\n")))
        strict = [span for span in spans if _INDENTATION not in span.how]
        if spans:
            return strict or spans
    return []


def _variants(
    file: Lines, old: list[str], new: list[str]
) -> Iterator[tuple[str, list[str], list[str]]]:
    yield "", old, new
    if any(line.startswith("\t") for line in file.lines):
        for width in _TAB_WIDTHS:
            yield _TABS, _each(_tabbed, width, old), _each(_tabbed, width, new)
    if any(line.startswith("\t") for line in old):
        for width in _TAB_WIDTHS:
            yield _TABS, _each(_spaced, width, old), _each(_spaced, width, new)
    lead, trail = _blank_edges(old)
    if lead or trail:
        yield _BLANK_LINES, old[lead : len(old) - trail], _without_edges(new, lead, trail)
    if _numbered(old):
        yield (
            _NUMBERS,
            [_NUMBERED.sub("", line, 1) for line in old],
            [_NUMBERED.sub("", line, 1) if _NUMBERED.match(line) else line for line in new],
        )


def _windows(
    file: Lines, old: Sequence[str], new: Sequence[str], how: str, whole: bool
) -> Iterator[Span]:
    wanted = [line.strip() for line in old]
    if not any(wanted):
        return
    # The rarest line is the anchor, so that files of equal lines stay cheap.
    anchor = min(
        (index for index, line in enumerate(wanted) if line),
        key=lambda index: len(file.positions.get(wanted[index], ())),
    )
    for position in file.positions.get(wanted[anchor], ()):
        start = position - anchor
        end = start + len(wanted)
        if start < 0 or file.stripped[start:end] != wanted:
            continue
        window = file.lines[start:end]
        move = _move(window, old)
        lines = None if move is None else _merged(window, old, new, move)
        if move is None or lines is None:
            continue
        parts = [part for part in (how, "" if move == ("", "") else _INDENTATION) if part]
        yield _span(file, start, end, lines, " and ".join(parts or [_LINE_ENDS]), whole)


def _span(file: Lines, start: int, end: int, lines: Sequence[str], how: str, whole: bool) -> Span:
    """`whole` says whether the old text ended its last line too."""
    stop = file.offsets[end - 1] + len(file.lines[end - 1])
    text = "\n".join(lines)
    if whole and stop < file.length:
        return Span(file.offsets[start], stop + 1, text + "\n" if lines else "", how)
    return Span(file.offsets[start], stop, text, how)


def _move(window: Sequence[str], old: Sequence[str]) -> tuple[str, str] | None:
    """Indentation to add to and to take from each line of the old text; None if not uniform."""
    moves: set[tuple[str, str]] = set()
    for line, wanted in zip(window, old, strict=True):
        if wanted.strip():
            has, given = _indentation(line), _indentation(wanted)
            if not (has.endswith(given) or given.endswith(has)):
                return None
            added = has[: len(has) - len(given)]
            moves.add((added, given[: len(given) - len(has)]))
    return moves.pop() if len(moves) == 1 else None


def _merged(
    window: Sequence[str], old: Sequence[str], new: Sequence[str], move: tuple[str, str]
) -> list[str] | None:
    """The new lines, moved; lines that the edit keeps stay as the file has them."""
    add, take = move
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in _opcodes(old, new):
        if tag == "equal":
            lines += window[i1:i2]
            continue
        for line in new[j1:j2]:
            if line.strip() and not line.startswith(take):
                return None
            lines.append(add + line[len(take) :] if line.strip() else line)
    return lines


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    if max(len(old), len(new)) > _MAX_COMPARED_LINES:
        return [("replace", 0, len(old), 0, len(new))]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [(tag, i1, i2, j1, j2) for tag, i1, i2, j1, j2 in matcher.get_opcodes()]


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _each(change: Callable[[str, int], str], width: int, lines: Sequence[str]) -> list[str]:
    return [change(line, width) for line in lines]


def _tabbed(line: str, width: int) -> str:
    indentation = _indentation(line)
    spaces = len(indentation.expandtabs(width))
    return "\t" * (spaces // width) + " " * (spaces % width) + line[len(indentation) :]


def _spaced(line: str, width: int) -> str:
    indentation = _indentation(line)
    return indentation.expandtabs(width) + line[len(indentation) :]


def _blank_edges(lines: Sequence[str]) -> tuple[int, int]:
    filled = [index for index, line in enumerate(lines) if line.strip()]
    return (filled[0], len(lines) - 1 - filled[-1]) if filled else (0, 0)


def _without_edges(lines: Sequence[str], lead: int, trail: int) -> list[str]:
    own_lead, own_trail = _blank_edges(lines)
    return list(lines[min(lead, own_lead) : len(lines) - min(trail, own_trail)])


def _numbered(lines: Sequence[str]) -> bool:
    """Whether every line begins with its number, counting up by one."""
    matches = [_NUMBERED.match(line) for line in lines]
    numbers = [int(match[1]) for match in matches if match]
    return len(numbers) == len(lines) and all(
        after == before + 1 for before, after in pairwise(numbers)
    )
