"""Positions in text: lines and units of the negotiated encoding, to and from Python's code points.

Pure. A line ends with CR LF, CR or LF and nothing else, as LSP says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from agentls.core.text import split_lines

Encoding = Literal["utf-8", "utf-16", "utf-32"]

_SURROGATE = re.compile("[\ud800-\udfff]")


class Position(NamedTuple):
    """Zero-based line, and offset in it in units of the negotiated encoding."""

    line: int
    character: int


class Range(NamedTuple):
    """From `start` up to, and without, `end`."""

    start: Position
    end: Position


def document_lines(text: str) -> list[str]:
    """Lines with their ends; the last one has none, so that there is always at least one line."""
    lines = split_lines(text)
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return lines


def offset_in_line(line: str, character: int, encoding: Encoding) -> int:
    """Code points before a position in a line.

    Past the end means the end, before the line's own end mark; the middle of a character means its
    start.
    """
    content = line.rstrip("\r\n") if line.endswith(("\r", "\n")) else line
    if encoding == "utf-32" or content.isascii():
        return min(character, len(content))
    if encoding == "utf-16":
        data = content.encode("utf-16-le", "surrogatepass")
        cut = min(character * 2, len(data))
        # Between the two halves of a pair: the upper byte of each unit comes second.
        if 0 < cut < len(data) and data[cut - 1] & 0xFC == 0xD8 and data[cut + 1] & 0xFC == 0xDC:
            cut -= 2
        return len(data[:cut].decode("utf-16-le", "surrogatepass"))
    data = content.encode("utf-8", "surrogatepass")
    cut = min(character, len(data))
    while cut < len(data) and data[cut] & 0xC0 == 0x80:
        cut -= 1
    return len(data[:cut].decode("utf-8", "surrogatepass"))


def units(text: str, encoding: Encoding) -> int:
    """Length of a text in units of the encoding."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-16":
        return len(text.encode("utf-16-le", "surrogatepass")) // 2
    return len(text.encode("utf-8", "surrogatepass"))


def locate(lines: Sequence[str], position: Position, encoding: Encoding) -> tuple[int, int]:
    """Line and code points in it, for a position that may lie outside the document."""
    if position.line >= len(lines):
        return len(lines) - 1, len(lines[-1])
    line = lines[position.line]
    return position.line, offset_in_line(line, position.character, encoding)


def replace_range(lines: list[str], where: Range, text: str, encoding: Encoding) -> None:
    """Change a document's lines in place, looking only at the lines the change touches."""
    begin, end = sorted((locate(lines, where.start, encoding), locate(lines, where.end, encoding)))
    first, last = begin[0], end[0]
    joined = lines[first][: begin[1]] + text + lines[last][end[1] :]
    if first and joined.startswith("\n") and lines[first - 1].endswith("\r"):
        # A line feed put behind a carriage return makes one line end of the two.
        first -= 1
        joined = lines[first] + joined
    if _SURROGATE.search(joined):
        # Two halves that an edit brought together are one character, as they are in UTF-16.
        joined = joined.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    new = document_lines(joined)
    if last < len(lines) - 1 and new[-1] == "":
        new.pop()
    lines[first : last + 1] = new


def text_in(lines: Sequence[str], where: Range, encoding: Encoding) -> str:
    """The text of a range."""
    (first, begin), (last, end) = sorted(
        (locate(lines, where.start, encoding), locate(lines, where.end, encoding))
    )
    if first == last:
        return lines[first][begin:end]
    return "".join((lines[first][begin:], *lines[first + 1 : last], lines[last][:end]))
