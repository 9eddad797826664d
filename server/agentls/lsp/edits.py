"""The smallest edits that turn one text into another, as LSP text edits. Pure.

Small edits keep the user's cursor, marks and folds where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from agentls.core.text import common_ends
from agentls.lsp.positions import Encoding, Position, Range, document_lines, units

_MAX_COMPARED_LINES = 500
"""Beyond this, what differs is one edit: comparing line by line takes quadratic time."""


class Edit(NamedTuple):
    """A new text for a range of the old document."""

    range: Range
    new_text: str

    def to_json(self) -> dict[str, object]:
        """LSP's `TextEdit`."""
        start, end = self.range
        return {
            "range": {"start": start._asdict(), "end": end._asdict()},
            "newText": self.new_text,
        }


def minimal_edits(old: str, new: str, encoding: Encoding) -> list[Edit]:
    """Edits in order, none touching another, all in positions of the old text."""
    before, after = document_lines(old), document_lines(new)
    edits = []
    for first, last, new_first, new_last in _hunks(before, after):
        replaced, text = "".join(before[first:last]), "".join(after[new_first:new_last])
        start, end = _trim(replaced, text)
        where = Range(
            _position(before, first, start, encoding),
            _position(before, first, len(replaced) - end, encoding),
        )
        edits.append(Edit(where, text[start : len(text) - end]))
    return edits


def _hunks(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Line ranges that differ."""
    head, tail = common_ends(before, after)
    old_end, new_end = len(before) - tail, len(after) - tail
    if (old_end - head) + (new_end - head) > _MAX_COMPARED_LINES:
        yield head, old_end, head, new_end
        return
    matcher = SequenceMatcher(None, before[head:old_end], after[head:new_end], autojunk=False)
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag != "equal":
            yield head + i, head + i_end, head + j, head + j_end


def _trim(old: str, new: str) -> tuple[int, int]:
    """Code points that both share at the start and at the end, never half a line end."""
    start = _shared_start(old, new)
    while start and any(_splits_line_end(text, start) for text in (old, new)):
        start -= 1
    old, new = old[start:], new[start:]
    end = _shared_start(old[::-1], new[::-1])
    while end and any(_splits_line_end(text, len(text) - end) for text in (old, new)):
        end -= 1
    return start, end


def _shared_start(one: str, other: str) -> int:
    """Length of the common prefix, by bisection: comparing slices is fast, a loop is not."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _splits_line_end(text: str, at: int) -> bool:
    return text[at - 1 : at] == "\r" and text[at : at + 1] == "\n"


def _position(lines: Sequence[str], first: int, offset: int, encoding: Encoding) -> Position:
    """Where `offset` code points after the start of a line are."""
    line = first
    while line < len(lines) - 1 and offset >= len(lines[line]):
        offset -= len(lines[line])
        line += 1
    return Position(line, units(lines[line][:offset], encoding))
