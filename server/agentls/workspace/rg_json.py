"""Reads ripgrep's `--json` messages, which are UTF-8 or base64 for what is not.

Pure but for pulling its input. The format is that of the `grep-printer` crate, `JSON`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable
from typing import TypedDict

from agentls.core.ports import GrepMatch

MAX_LINE_CHARS = 500
"""Longer lines are cut around their first match."""


class _Data(TypedDict, total=False):
    text: str
    bytes: str


class _Span(TypedDict):
    start: int


class _Body(TypedDict, total=False):
    path: _Data
    lines: _Data
    line_number: int
    submatches: list[_Span]
    binary_offset: int | None


class _Message(TypedDict):
    type: str
    data: _Body


def read_matches(
    records: Iterable[bytes],
    *,
    wanted: Callable[[str], bool],
    limit: int,
    context_lines: int,
    name: str | None = None,
) -> tuple[list[GrepMatch], bool]:
    """Up to `limit` matching lines with their context, and whether there were more.

    `wanted` tells by its path, as ripgrep gives it without `./`, whether a file counts. `name`
    stands for standard input. Reads no further than needed. Files that turn out to be binary are
    left out.
    """
    kept: list[GrepMatch] = []
    file_start = matches = matches_before = 0
    path, skipped = "", False
    for record in records:
        message: _Message = json.loads(record)
        kind, body = message["type"], message["data"]
        if kind == "begin":
            path = name if name is not None else decode_path(_bytes(body["path"]))
            skipped = not wanted(path)
            file_start, matches_before = len(kept), matches
        elif kind == "end" and body.get("binary_offset") is not None:
            del kept[file_start:]
            matches = matches_before
        elif kind in {"match", "context"} and not skipped:
            if kind == "match" and matches == limit:
                return _without_stray_context(kept, context_lines), True
            matches += kind == "match"
            kept.append(_line(path, body, is_match=kind == "match"))
    return kept, False


def decode_path(raw: bytes) -> str:
    """A path as text; one that is not UTF-8 can be shown but not opened."""
    return raw.decode("utf-8", "replace").removeprefix("./")


def _without_stray_context(kept: list[GrepMatch], context_lines: int) -> list[GrepMatch]:
    """Without the lines that lead up to a match which is left out."""
    last = next((line for line in reversed(kept) if line.is_match), None)
    while kept and kept[-1] is not last:
        line = kept[-1]
        if last and line.path == last.path and line.line_no - last.line_no <= context_lines:
            break
        kept.pop()
    return kept


def _bytes(data: _Data) -> bytes:
    if "text" in data:
        return data["text"].encode("utf-8", "surrogatepass")
    return base64.b64decode(data["bytes"])


def _line(path: str, body: _Body, *, is_match: bool) -> GrepMatch:
    raw = _bytes(body["lines"])
    if len(raw) > 2 * MAX_LINE_CHARS:
        text = _cut(raw, body["submatches"][0]["start"] if body["submatches"] else 0)
    else:
        text = _text(raw)
    return GrepMatch(path, body.get("line_number", 1), text, is_match=is_match)


def _text(raw: bytes) -> str:
    """One line without its end."""
    raw = raw.removesuffix(b"\n").removesuffix(b"\r")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def _cut(raw: bytes, start: int) -> str:
    """What surrounds the match, cut in bytes first, as a line may have millions of them."""
    first = _char_start(raw, max(start - MAX_LINE_CHARS // 4, 0))
    last = _char_start(raw, min(first + MAX_LINE_CHARS, len(raw)))
    return f"{'…' if first else ''}{_text(raw[first:last])}{'…' if last < len(raw) else ''}"


def _char_start(raw: bytes, position: int) -> int:
    """The start of the UTF-8 character that `position` falls into."""
    for start in range(position, max(position - 4, 0), -1):
        if start == len(raw) or raw[start] & 0xC0 != 0x80:
            return start
    return position
