from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.lsp.edits import Edit, minimal_edits
from agentls.lsp.positions import (
    Encoding,
    Position,
    Range,
    document_lines,
    replace_range,
    units,
)

texts = st.text(alphabet="abc\r\n\n\n\x0c\N{GRINNING FACE}é", max_size=40)


def applied(text: str, edits: list[Edit], encoding: Encoding) -> str:
    """As an editor does it: positions are those of the old text, so the last edit comes first."""
    lines = document_lines(text)
    for edit in reversed(edits):
        replace_range(lines, edit.range, edit.new_text, encoding)
    return "".join(lines)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@given(old=texts, new=texts)
def test_the_edits_turn_the_old_text_into_the_new(encoding: Encoding, old: str, new: str) -> None:
    edits = minimal_edits(old, new, encoding)
    assert applied(old, edits, encoding) == new
    assert (edits == []) == (old == new)


@given(old=texts, new=texts)
def test_no_edit_begins_or_ends_inside_a_line_end_or_past_a_line(old: str, new: str) -> None:
    lines = document_lines(old)
    for edit in minimal_edits(old, new, "utf-16"):
        for line, character in edit.range:
            content = lines[line].rstrip("\r\n")
            assert character <= units(content, "utf-16")


def test_only_what_differs_is_replaced() -> None:
    old = "one\r\ntwo\r\n\r\nthree \N{GRINNING FACE} four\r\nfive\r\n"
    new = "one\r\nTwo\r\n\r\nthree \N{GRINNING FACE} fear\r\nfive\r\n"
    assert minimal_edits(old, new, "utf-16") == [
        Edit(Range(Position(1, 0), Position(1, 1)), "T"),
        Edit(Range(Position(3, 10), Position(3, 12)), "ea"),
    ]


def test_a_large_difference_is_one_edit_and_quick() -> None:
    old = "".join(f"line {no}\n" for no in range(20_000))
    new = "".join(f"Line {no}\n" for no in range(20_000))
    edits = minimal_edits(old, new, "utf-16")
    assert len(edits) == 1
    assert applied(old, edits, "utf-16") == new


def test_a_changed_kind_of_line_end_is_replaced_whole() -> None:
    assert minimal_edits("a\r\nb", "a\nb", "utf-16") == [
        Edit(Range(Position(0, 1), Position(1, 0)), "\n")
    ]
    assert minimal_edits("a\nb", "a\r\nb", "utf-16") == [
        Edit(Range(Position(0, 1), Position(1, 0)), "\r\n")
    ]


def test_an_edit_as_json() -> None:
    edit = Edit(Range(Position(0, 1), Position(2, 3)), "x")
    assert edit.to_json() == {
        "range": {"start": {"line": 0, "character": 1}, "end": {"line": 2, "character": 3}},
        "newText": "x",
    }
