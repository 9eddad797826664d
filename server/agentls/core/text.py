"""Small pure functions on text that several layers need."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_LINE_END = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    r"""Split after \r\n, \r and \n only, keeping the ends.

    `str.splitlines` also splits at form feeds, NEL, U+2028 and others, which no editor does.
    """
    lines: list[str] = []
    start = 0
    for match in _LINE_END.finditer(text):
        lines.append(text[start : match.end()])
        start = match.end()
    if start < len(text):
        lines.append(text[start:])
    return lines


def bare_lines(text: str) -> list[str]:
    """Lines without their ends, of a text with LF ends; a final line end begins no other line."""
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def lf(text: str) -> str:
    """The text with LF line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def common_ends(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """How many lines two texts share at the start, and behind those at the end."""
    shorter = min(len(left), len(right))
    head = 0
    while head < shorter and left[head] == right[head]:
        head += 1
    tail = 0
    while tail < shorter - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    return head, tail


def fence(text: str) -> str:
    """A Markdown fence longer than any run of backticks in the text, which thus cannot close it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def cap_middle(text: str, max_bytes: int, rest: str) -> str:
    """Keep head and tail within `max_bytes` of UTF-8, with a line saying how to get the rest."""
    data = text.encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return text
    head = data[: max_bytes * 2 // 3].decode("utf-8", "ignore")
    tail = data[-(max_bytes // 3) :].decode("utf-8", "ignore")
    left_out = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head}\n[… {left_out} bytes left out; {rest}]\n{tail}"


def visible(text: str) -> str:
    """Show control, bidi and zero-width characters as escapes, so that nothing hides in a prompt.

    Newline and tab stay as they are.
    """
    return "".join(
        char
        if char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
        else f"\\u{{{ord(char):x}}}"
        for char in text
    )


def escaped_line(text: str) -> str:
    """All of a text on one line, so that no name can go on as if the program said it."""
    return visible(text).replace("\n", "\\n").replace("\t", " ")


def short_line(text: str, max_chars: int) -> str:
    """A text on one line, blanks run together, cut when it is longer than `max_chars`."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"
