"""Small pure functions on text that several layers need."""

from __future__ import annotations

import re
import unicodedata

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
