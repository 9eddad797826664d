r"""Gives new text the line ends of the old.

Models write \n. A file keeps its own line ends: lines that were not edited keep exactly theirs, new
ones take what is usual around them. A line ends with \r\n, \r or \n, and with nothing else. Pure.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from agentls.core.text import common_ends, split_lines

_MAX_COMPARED = 2_000_000
"""Pairs of equal lines up to which two texts are compared line by line (about a second)."""

Line = tuple[str, str]
"""A line and its end."""


def restore(old: str, new: str) -> str:
    r"""`new` with the line ends of `old`.

    Where `old` uses one kind throughout, so does the result. Where it mixes them, lines found in
    both keep theirs; a replaced line takes that of the line it replaces, an added one that of the
    line before, and an explicit \r or \r\n in `new` stays. Whether the last line ends is up to
    `new`.
    """
    old_lines = _lines(old)
    kinds = {end for _, end in old_lines if end}
    if len(kinds) == 0:
        return new
    if len(kinds) == 1:
        return _uniform(new, kinds.pop())
    return _mixed(old_lines, _lines(new), exact="\r" in new)


def _lines(text: str) -> list[Line]:
    return [_split(line) for line in split_lines(text)]


def _split(line: str) -> Line:
    body = line.rstrip("\r\n")
    return body, line[len(body) :]


def _uniform(text: str, kind: str) -> str:
    r"""A lone \r is a character like any other, except in a file whose lines end with it."""
    if kind == "\r":
        return re.sub(r"\r\n|\n", "\r", text)
    return re.sub(r"\r\n|\n", lambda _: kind, text)


def _mixed(old: list[Line], new: list[Line], *, exact: bool) -> str:
    """`exact` means that `new` tells kinds of line ends apart, so they help to recognise a line."""
    partners = _partners(old, new, exact=exact)
    result: list[str] = []
    previous = old[0][1]
    for (body, end), partner in zip(new, partners, strict=True):
        if end:
            end = _end(body, end, old[partner] if partner is not None else None, previous)
            previous = end
        result.append(body + end)
    return "".join(result)


def _end(body: str, end: str, partner: Line | None, previous: str) -> str:
    if partner is not None and partner[1] and (partner[0] == body or end == "\n"):
        return partner[1]
    return previous if end == "\n" else end


def _partners(old: list[Line], new: list[Line], *, exact: bool) -> list[int | None]:
    """For each new line the old line it is, or the one it replaces."""
    left = [body + end if exact else body for body, end in old]
    right = [body + end if exact else body for body, end in new]
    head, tail = common_ends(left, right)
    partners: list[int | None] = [None] * len(right)
    partners[:head] = range(head)
    if tail:
        partners[-tail:] = range(len(left) - tail, len(left))
    middle_left = left[head : len(left) - tail]
    middle_right = right[head : len(right) - tail]
    for old_start, new_start, length in _blocks(middle_left, middle_right):
        for offset in range(length):
            partners[head + new_start + offset] = head + old_start + offset
    return partners


def _blocks(left: list[str], right: list[str]) -> list[tuple[int, int, int]]:
    """Runs of lines that belong together: equal ones, and replaced ones in order."""
    counts: dict[str, int] = {}
    for line in left:
        counts[line] = counts.get(line, 0) + 1
    if sum(counts.get(line, 0) for line in right) > _MAX_COMPARED:
        return [(0, 0, min(len(left), len(right)))]
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    return [
        (old_start, new_start, min(old_stop - old_start, new_stop - new_start))
        for _, old_start, old_stop, new_start, new_stop in matcher.get_opcodes()
    ]
