"""Ranks stretches of files by the words of a question that they hold. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agentls.core.ports import FileText, Passage
from agentls.core.text import split_lines

_BLOCK_LINES = 10
_WINDOW_BLOCKS = 4
_MAX_LINES = 80
_MAX_LINE_CHARS = 400
_SATURATION = 1.2

_DEFINITION = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|inline"
    r"|pub(?:\([^)]*\))?|extern|local|unsafe|virtual|override)\s+)*"
    r"(?:def|class|func|fn|function|interface|struct|enum|trait|type|const|let|var|val|module|impl"
    r"|protocol|record|object|namespace|macro_rules!|\#\s*define)\s+(?P<name>[\w.:$]+)"
    r"|(?P<variable>[A-Za-z_]\w*)\s*(?::[^=\n]+)?="
    r"|\#{1,6}\s(?P<heading>.+)",
)
_TESTS = re.compile(
    r"(^|/)(tests?|spec|specs|__tests__|testing)/|(^|/)test_|_test\.|\.spec\.|\.test\."
)
_DATA = re.compile(
    r"\.(lock|po|pot|svg|csv|tsv|jsonl|ipynb|snap|min\.\w+|map|sum)$|(^|/)(package-lock|constraints)"
    r"|(^|/)(changelog|changes|history|news|releases?)(\.|/|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clue:
    """A word in lower case, and what finding it is worth."""

    text: str
    worth: float


def path_value(path: str, clues: Sequence[Clue]) -> float:
    """What the words in a file's name, and less so in its folders', are worth."""
    folders, _, name = path.lower().rpartition("/")
    stem = name.partition(".")[0]
    total = 0.0
    for clue in clues:
        if clue.text in (stem, name, path.lower()):
            total += 1.2 * clue.worth
        elif clue.text in name:
            total += 0.7 * clue.worth
        elif clue.text in folders:
            total += 0.2 * clue.worth
    return total


def best_passages(
    question: str,
    clues: Sequence[Clue],
    files: Sequence[FileText],
    named: frozenset[str],
    limit: int,
) -> tuple[Passage, ...]:
    """The best stretches of the files, best first; `named` files are what the question is about."""
    about_tests = "test" in question.lower()
    found: list[Passage] = []
    for file in files:
        factor = 3.0 if file.path in named else 1.0
        if _TESTS.search(file.path) and not about_tests:
            factor *= 0.7
        if _DATA.search(file.path):
            factor *= 0.5
        scanned = _Scanned(file, clues)
        found.extend(
            replace(passage, score=round(passage.score * factor, 3))
            for passage in scanned.passages()
        )
    found.sort(key=lambda passage: (-passage.score, passage.path, passage.start_line_no))
    return tuple(_merged(found, {file.path: file for file in files}, limit))


class _Scanned:
    """A file with the places where clues were found."""

    def __init__(self, file: FileText, clues: Sequence[Clue]) -> None:
        self._file = file
        self._clues = clues
        self._lines = split_lines(file.text)
        self._path_value = path_value(file.path, clues)
        number = len(self._lines) // _BLOCK_LINES + 1
        self._counts = [[0] * len(clues) for _ in range(number)]
        self._bonus = [0.0] * number
        self._scan()

    def _scan(self) -> None:
        lowered = [line.lower() for line in self._lines]
        starts = [0]
        for line in lowered:
            starts.append(starts[-1] + len(line))
        text = "".join(lowered)
        for index, clue in enumerate(self._clues):
            position = text.find(clue.text)
            while position >= 0:
                number = bisect_right(starts, position) - 1
                self._counts[number // _BLOCK_LINES][index] += 1
                position = text.find(clue.text, starts[number + 1])
        for number, line in enumerate(self._lines):
            self._bonus[number // _BLOCK_LINES] += self._definition_value(line)

    def _definition_value(self, line: str) -> float:
        match = _DEFINITION.match(line)
        if match is None:
            return 0.0
        name, factor = (match["name"] or match["variable"] or "").lower(), 1.0
        if match["heading"] or match["variable"]:
            name, factor = (match["heading"] or match["variable"]).lower(), 0.5
        return sum(
            (2.0 if name == clue.text else 0.6) * factor * clue.worth
            for clue in self._clues
            if clue.text in name
        )

    def passages(self) -> Iterator[Passage]:
        """Overlapping windows that hold a clue."""
        for first in range(max(len(self._counts) - _WINDOW_BLOCKS // 2, 1)):
            blocks = self._counts[first : first + _WINDOW_BLOCKS]
            counts = [sum(column) for column in zip(*blocks, strict=True)]
            if not any(counts):
                continue
            score = sum(
                clue.worth * number / (number + _SATURATION)
                for clue, number in zip(self._clues, counts, strict=True)
            )
            bonus = sum(self._bonus[first : first + _WINDOW_BLOCKS])
            score += min(bonus, score) + 0.5 * self._path_value
            start = first * _BLOCK_LINES
            end = min(start + _BLOCK_LINES * _WINDOW_BLOCKS, len(self._lines))
            yield Passage(self._file.path, start + 1, end, "", score)


def _merged(ranked: Sequence[Passage], files: dict[str, FileText], limit: int) -> Iterator[Passage]:
    """The best passages without overlap; good neighbours of a better one are joined to it."""
    kept: list[Passage] = []
    for passage in ranked:
        at = next((at for at, other in enumerate(kept) if _touches(other, passage)), None)
        if at is None:
            if len(kept) < limit:
                kept.append(passage)
            continue
        other = kept[at]
        start = min(other.start_line_no, passage.start_line_no)
        end = max(other.end_line_no, passage.end_line_no)
        if passage.score >= 0.8 * other.score and end - start < _MAX_LINES:
            kept[at] = replace(other, start_line_no=start, end_line_no=end)
    for passage in kept:
        lines = split_lines(files[passage.path].text)
        shown = lines[passage.start_line_no - 1 : passage.end_line_no]
        yield replace(passage, text="\n".join(_shown(line) for line in shown))


def _touches(one: Passage, other: Passage) -> bool:
    return (
        one.path == other.path
        and one.start_line_no <= other.end_line_no + 1
        and other.start_line_no <= one.end_line_no + 1
    )


def _shown(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}…"
