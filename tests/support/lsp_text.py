"""What LSP says about positions, word by word on code units: slow, plain, and not the product's."""

from __future__ import annotations

import re
from typing import Any

_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def offset_at(text: str, line: int, character: int, encoding: str) -> int:
    """Code points before a position; past the end means the end, mid-character means its start."""
    codec, width = _CODECS[encoding]
    starts = [0, *(match.end() for match in re.finditer("\r\n|\n|\r", text))]
    if line >= len(starts):
        return len(text)
    content = re.match("[^\r\n]*", text[starts[line] :])
    assert content is not None
    best = 0
    for count in range(len(content[0]) + 1):
        size = len(content[0][:count].encode(codec, "surrogatepass")) // width
        if size <= character:
            best = count
    return starts[line] + best


def with_edits(text: str, edits: list[dict[str, Any]], encoding: str) -> str:
    """A text after LSP text edits, all of whose positions are those of the text before."""
    spans = []
    for edit in edits:
        start, end = (
            offset_at(text, edit["range"][side]["line"], edit["range"][side]["character"], encoding)
            for side in ("start", "end")
        )
        spans.append((start, end, edit["newText"]))
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text
