from __future__ import annotations

import base64
import json

import pytest

from agentls.core.ports import GrepMatch
from agentls.workspace.rg_json import MAX_LINE_CHARS, read_matches


def begin(path: str) -> bytes:
    return json.dumps({"type": "begin", "data": {"path": {"text": path}}}).encode()


def end(path: str, binary_offset: int | None = None) -> bytes:
    data = {"path": {"text": path}, "binary_offset": binary_offset, "stats": {}}
    return json.dumps({"type": "end", "data": data}).encode()


def line(path: str, line_no: int, text: bytes, start: int = 0, *, kind: str = "match") -> bytes:
    try:
        lines = {"text": text.decode()}
    except UnicodeDecodeError:
        lines = {"bytes": base64.b64encode(text).decode()}
    data = {
        "path": {"text": path},
        "lines": lines,
        "line_number": line_no,
        "submatches": [{"match": {"text": ""}, "start": start, "end": start}]
        if kind == "match"
        else [],
    }
    return json.dumps({"type": kind, "data": data}).encode()


def read(
    *records: bytes, limit: int = 10, context_lines: int = 0, without: str = ""
) -> tuple[list[GrepMatch], bool]:
    return read_matches(
        records,
        wanted=lambda path: path != without,
        limit=limit,
        context_lines=context_lines,
    )


def test_lines_of_every_encoding_and_end() -> None:
    texts = [b"x\r\n", b"caf\xe9\n", b"y"]
    records = [line("a", number, text) for number, text in enumerate(texts)]
    expected = [GrepMatch("a", 0, "x"), GrepMatch("a", 1, "café"), GrepMatch("a", 2, "y")]
    assert read(begin("./a"), *records, end("a")) == (expected, False)


def test_binary_and_unwanted_files_do_not_count() -> None:
    found = read(
        begin("bin"),
        line("bin", 1, b"x"),
        end("bin", binary_offset=9),
        begin("secret"),
        line("secret", 1, b"x"),
        end("secret"),
        begin("a"),
        line("a", 1, b"x"),
        end("a"),
        limit=1,
        without="secret",
    )
    assert found == ([GrepMatch("a", 1, "x")], False)


def test_reading_stops_after_the_limit_and_drops_context_that_leads_further() -> None:
    def records() -> list[bytes]:
        return [
            begin("a"),
            line("a", 1, b"match"),
            line("a", 2, b"after", kind="context"),
            line("a", 8, b"before", kind="context"),
            line("a", 9, b"match"),
        ]

    kept = [GrepMatch("a", 1, "match"), GrepMatch("a", 2, "after", is_match=False)]
    assert read(*records(), b"not read", limit=1, context_lines=1) == (kept, True)
    assert read(begin("a"), line("a", 1, b"x"), limit=0) == ([], True)


@pytest.mark.parametrize("char", ["x", "é", "🙂"])
@pytest.mark.parametrize("place", [0, 300_000, 500_000])
def test_a_very_long_line_is_cut_around_its_match(char: str, place: int) -> None:
    before, after = char * place, char * (500_000 - place)
    raw = f"{before}NEEDLE{after}".encode()
    (found,), _ = read(begin("a"), line("a", 1, raw, len(before.encode())))
    assert "NEEDLE" in found.text
    assert "\ufffd" not in found.text
    assert len(found.text) <= MAX_LINE_CHARS + 2
    assert found.text.startswith("…") == (place > 0)
    assert found.text.endswith("…") == (place < 500_000)
