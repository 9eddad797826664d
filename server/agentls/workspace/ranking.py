"""Ranks stretches of files by the words of a question that they hold. Pure.

Rare words count more than frequent ones, a word counts less with every repetition, and one in the
name of a file or of a definition counts more than one in text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from agentls.core.ports import FileText, Passage
from agentls.core.text import split_lines

_BLOCK_LINES = 10
_WINDOW_BLOCKS = 4
_MAX_LINES = 60
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
_TESTS = re.compile(r"(^|/)(tests?|specs?|__tests__|testing)/|(^|/)test_|_test\.|\.spec\.|\.test\.")
_DATA = re.compile(
    r"\.(lock|po|pot|svg|csv|tsv|jsonl|ipynb|snap|min\.\w+|map|sum)$|(^|/)(package-lock|constraints)"
    r"|(^|/)(changelog|changes|history|news|releases?)(\.|/|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clue:
    """Text in lower case, the whole word it stands for, and what finding it is worth."""

    text: str
    word: str
    worth: float


class Ranking:
    """How files and passages compare for one question."""

    def __init__(
        self, clues: Sequence[Clue], named: frozenset[str], *, about_tests: bool = False
    ) -> None:
        """`named` files are what the question is about."""
        self._clues = clues
        self._named = named
        self._about_tests = about_tests

    def factor(self, path: str) -> float:
        """What a file is worth by its kind: tests and data say less about how things work."""
        factor = 1.0
        if _TESTS.search(path) and not self._about_tests:
            factor *= 0.5
        if _DATA.search(path):
            factor *= 0.4
        return factor

    def path_value(self, path: str) -> float:
        """What the words in a file's name, and less so in its folders', are worth."""
        folders, _, name = path.lower().rpartition("/")
        stem = name.partition(".")[0]
        total = 0.0
        for clue in self._clues:
            if clue.text in {stem, name} or clue.word in {stem, name, path.lower()}:
                total += 1.2 * clue.worth
            elif clue.text in name:
                total += 0.7 * clue.worth
            elif clue.text in folders:
                total += 0.2 * clue.worth
        return total

    def best(self, files: Sequence[FileText], limit: int) -> tuple[Passage, ...]:
        """The best stretches of the files, best first, without overlap."""
        found = [passage for file in files for passage in self._passages(file)]
        found.sort(key=lambda passage: (-passage.score, passage.path, passage.start_line_no))
        texts = {file.path: file.text for file in files}
        return tuple(_with_text(passage, texts) for passage in _merged(found, limit))

    def _passages(self, file: FileText) -> Iterator[Passage]:
        """Overlapping windows that hold a clue; of a named file at least the first."""
        scan = _Scan(file.text, self._clues)
        factor = self.factor(file.path)
        name_value = 0.25 * self.path_value(file.path)
        named = file.path in self._named
        if named:
            name_value += 2.0 * sum(clue.worth for clue in self._clues)
        for first in range(max(len(scan.counts) - _WINDOW_BLOCKS // 2, 1)):
            blocks = scan.counts[first : first + _WINDOW_BLOCKS]
            counts = [sum(each) for each in zip(*blocks, strict=True)]
            if not any(counts) and not (named and first == 0):
                continue
            text_value = sum(
                clue.worth * number / (number + _SATURATION)
                for clue, number in zip(self._clues, counts, strict=True)
            )
            definitions = sum(scan.definitions[first : first + _WINDOW_BLOCKS])
            score = factor * (text_value + min(0.5 * definitions, text_value) + name_value)
            start = first * _BLOCK_LINES
            end = min(start + _BLOCK_LINES * _WINDOW_BLOCKS, scan.lines)
            yield Passage(file.path, start + 1, end, "", round(score, 3))


class _Scan:
    """Where in a text clues are found, in blocks of ten lines: a line counts once for each clue."""

    def __init__(self, text: str, clues: Sequence[Clue]) -> None:
        lowered = text.lower()
        lines = split_lines(lowered)
        starts = [0, *accumulate(map(len, lines))]
        self.lines = len(lines)
        number = self.lines // _BLOCK_LINES + 1
        self.counts = [[0] * len(clues) for _ in range(number)]
        self.definitions = [0.0] * number
        for index, clue in enumerate(clues):
            for line_no in _lines_with(clue.text, lowered, starts):
                self.counts[line_no // _BLOCK_LINES][index] += 1
                value = _definition_value(lines[line_no], clue)
                self.definitions[line_no // _BLOCK_LINES] += value
            # `Type.member` stands where it is used; where it is defined stands `member` alone.
            _, dot, member = clue.text.rpartition(".")
            if dot and member:
                alone = replace(clue, text=member, word=member)
                for line_no in _lines_with(member, lowered, starts):
                    if value := _definition_value(lines[line_no], alone):
                        self.counts[line_no // _BLOCK_LINES][index] += 1
                        self.definitions[line_no // _BLOCK_LINES] += value


def _lines_with(text: str, lowered: str, starts: Sequence[int]) -> Iterator[int]:
    """Numbers, from 0, of the lines that hold a text; `starts` is where each begins."""
    position = lowered.find(text)
    while position >= 0:
        line_no = bisect_right(starts, position) - 1
        yield line_no
        position = lowered.find(text, starts[line_no + 1])


def _definition_value(line: str, clue: Clue) -> float:
    """What it is worth that a line, in lower case, defines something by a clue's name."""
    match = _DEFINITION.match(line)
    if match is None:
        return 0.0
    name, factor = match["name"], 1.0
    if name is None:
        name, factor = match["variable"] or match["heading"], 0.5
    if clue.text not in name:
        return 0.0
    return (2.0 if name in {clue.text, clue.word} else 0.6) * factor * clue.worth


def _merged(ranked: Sequence[Passage], limit: int) -> list[Passage]:
    """The best passages; a good neighbour of a better one is joined to it, others are dropped."""
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
    return kept


def _touches(one: Passage, other: Passage) -> bool:
    return (
        one.path == other.path
        and one.start_line_no <= other.end_line_no + 1
        and other.start_line_no <= one.end_line_no + 1
    )


def _with_text(passage: Passage, texts: dict[str, str]) -> Passage:
    lines = split_lines(texts[passage.path])[passage.start_line_no - 1 : passage.end_line_no]
    return replace(passage, text="\n".join(map(_shown, lines)))


def _shown(line: str) -> str:
    line = line.rstrip("\r\n")
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}…"
