"""Finds the lines of a file most like a text that is not in it. Pure, in bounded time."""

from __future__ import annotations

import difflib
from collections import Counter

from agentls.tools.loose import Lines

_MAX_PLACES = 3
_MAX_POSITIONS = 50
_MAX_COMPARED = 3_000
_MAX_CHARS = 160
_SIMILAR = 0.6


def find(file: Lines, wanted: str) -> list[int]:
    """Lines (from 0) where something similar starts, best first; empty when nothing is similar."""
    lines = [line.strip() for line in wanted.split("\n")]
    return _by_equal_lines(file, lines) or _by_similar_line(file, lines)


def _by_equal_lines(file: Lines, wanted: list[str]) -> list[int]:
    """Each equal line votes, by its length, for the place where the whole would start."""
    votes: Counter[int] = Counter()
    for index, line in enumerate(wanted):
        positions = file.positions.get(line, ())
        if len(line) > 2 and len(positions) <= _MAX_POSITIONS:
            for position in positions:
                votes[max(position - index, 0)] += len(line)
    best: list[int] = []
    for start, _ in votes.most_common():
        if all(abs(start - other) >= len(wanted) for other in best):
            best.append(start)
        if len(best) == _MAX_PLACES:
            break
    return best


def _by_similar_line(file: Lines, wanted: list[str]) -> list[int]:
    index, line = max(enumerate(wanted), key=lambda pair: len(pair[1]))
    line = line[:_MAX_CHARS]
    if not line:
        return []
    candidates: dict[str, int] = {}
    for text, positions in file.positions.items():
        if len(line) / 2 <= len(text) <= len(line) * 2:
            candidates.setdefault(text[:_MAX_CHARS], positions[0])
        if len(candidates) == _MAX_COMPARED:
            break
    close = difflib.get_close_matches(line, candidates, n=_MAX_PLACES, cutoff=_SIMILAR)
    return [max(candidates[text] - index, 0) for text in close]
