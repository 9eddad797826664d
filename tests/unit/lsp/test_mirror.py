from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.lsp.client import path_of
from agentls.lsp.mirror import Change, Document, Mirror
from agentls.lsp.positions import (
    Encoding,
    Position,
    Range,
    document_lines,
    offset_in_line,
    text_in,
    units,
)
from support.lsp_text import offset_at

URI = "file:///w/a.txt"
# Everything that some splitter takes for a line end, halves of pairs, and wide characters.
ALPHABET = "ab\r\n\x0b\x0c\x1c\x1e\x85\u2028\u2029\N{GRINNING FACE}é漢"

texts = st.text(alphabet=ALPHABET, max_size=30)
positions = st.builds(Position, st.integers(0, 8), st.integers(0, 12))
changes = st.one_of(
    st.tuples(st.builds(Range, positions, positions), texts),
    st.tuples(st.none(), texts),
)


def reference_offset(text: str, position: Position, encoding: Encoding) -> int:
    return offset_at(text, position.line, position.character, encoding)


def reference_apply(text: str, change: Change, encoding: Encoding) -> str:
    where, new = change
    if where is None:
        return new
    start, end = sorted(reference_offset(text, at, encoding) for at in where)
    return text[:start] + new + text[end:]


def mirror_of(text: str, encoding: Encoding = "utf-16") -> Mirror:
    mirror = Mirror(path_of)
    mirror.encoding = encoding
    mirror.open(URI, 1, text)
    return mirror


def document(mirror: Mirror) -> Document:
    found = mirror.get(URI)
    assert found is not None
    return found


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@given(text=texts, edits=st.lists(changes, max_size=6))
def test_the_mirror_equals_the_reference(
    encoding: Encoding, text: str, edits: list[Change]
) -> None:
    mirror, expected = mirror_of(text, encoding), text
    for version, change in enumerate(edits, start=2):
        mirror.change(URI, version, [change])
        expected = reference_apply(expected, change, encoding)
        assert document(mirror).text == expected
        assert document(mirror).lines == document_lines(expected)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@given(text=texts, first=positions, second=positions)
def test_the_text_of_a_range_equals_the_reference(
    encoding: Encoding, text: str, first: Position, second: Position
) -> None:
    start, end = sorted(reference_offset(text, at, encoding) for at in (first, second))
    assert text_in(document_lines(text), Range(first, second), encoding) == text[start:end]


def test_positions_in_the_middle_of_a_character_mean_its_start() -> None:
    line = "é\N{GRINNING FACE}x\r\n"
    assert [offset_in_line(line, at, "utf-16") for at in range(7)] == [0, 1, 1, 2, 3, 3, 3]
    assert [offset_in_line(line, at, "utf-8") for at in range(9)] == [0, 0, 1, 1, 1, 1, 2, 3, 3]
    assert [offset_in_line(line, at, "utf-32") for at in range(5)] == [0, 1, 2, 3, 3]


def test_halves_of_a_pair_that_meet_become_one_character() -> None:
    mirror = mirror_of("\ud83d|\ude00")
    assert units(document(mirror).text, "utf-16") == 3
    mirror.change(URI, 2, [(Range(Position(0, 1), Position(0, 2)), "")])
    assert document(mirror).text == "\N{GRINNING FACE}"
    mirror.change(URI, 3, [(Range(Position(0, 2), Position(0, 2)), "x")])
    assert document(mirror).text == "\N{GRINNING FACE}x"


def test_a_line_feed_put_behind_a_carriage_return_makes_one_line_end() -> None:
    mirror = mirror_of("a\rb\rc")
    mirror.change(URI, 2, [(Range(Position(1, 0), Position(1, 0)), "\n")])
    assert document(mirror).lines == ["a\r\n", "b\r", "c"]


def test_a_change_that_is_not_newer_ends_the_trust_until_the_whole_text_comes() -> None:
    mirror = mirror_of("abc")
    mirror.change(URI, 5, [(None, "five")])
    mirror.change(URI, 4, [(Range(Position(0, 0), Position(0, 0)), "late ")])
    assert (document(mirror).text, document(mirror).version) == ("five", 5)
    assert document(mirror).broken == "version 4 came after version 5"
    mirror.change(URI, 6, [(Range(Position(0, 0), Position(0, 0)), "x")])
    assert document(mirror).broken
    whole: list[Change] = [(None, "seven"), (Range(Position(0, 0), Position(0, 0)), "x")]
    mirror.change(URI, 7, [(Range(Position(0, 0), Position(0, 0)), "lost"), *whole])
    assert (document(mirror).text, document(mirror).version) == ("xseven", 7)
    assert document(mirror).broken == ""


def test_reopening_restores_trust_and_equal_versions_are_not_newer() -> None:
    mirror = mirror_of("abc")
    mirror.change(URI, 1, [(None, "again")])
    assert document(mirror).broken
    mirror.open(URI, 1, "fresh")
    assert (document(mirror).text, document(mirror).broken) == ("fresh", "")


def test_changes_of_unknown_documents_are_ignored() -> None:
    mirror = mirror_of("abc")
    mirror.change("file:///w/other", 2, [(None, "x")])
    mirror.distrust("file:///w/other", "x")
    mirror.save("file:///w/other")
    mirror.close("file:///w/other")
    assert mirror.get("file:///w/other") is None
    assert document(mirror).text == "abc"


def test_unsaved_is_what_changed_since_the_last_save() -> None:
    mirror = mirror_of("abc")
    states = [document(mirror).unsaved]
    mirror.change(URI, 2, [(None, "x")])
    states.append(document(mirror).unsaved)
    mirror.save(URI)
    states.append(document(mirror).unsaved)
    assert states == [False, True, False]


def test_documents_are_found_by_where_their_links_lead_now(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("x")
    link.symlink_to(real)
    mirror = Mirror(path_of)
    mirror.open(link.as_uri(), 1, "through the link")
    assert [found.text for found in mirror.at(real)] == ["through the link"]
    mirror.open(real.as_uri(), 1, "itself")
    assert [found.text for found in mirror.at(real)] == ["through the link", "itself"]
    link.unlink()
    link.symlink_to(tmp_path / "other.txt")
    assert [found.text for found in mirror.at(real)] == ["itself"]


def test_a_document_that_is_no_file_has_no_path() -> None:
    mirror = Mirror(path_of)
    mirror.open("untitled:Untitled-1", 1, "x")
    found = mirror.get("untitled:Untitled-1")
    assert found is not None
    assert found.path is None


def test_listeners_hear_changes_and_the_end_while_they_listen() -> None:
    mirror = mirror_of("abc")
    heard: list[str | None] = []

    def listen(changed: Document | None) -> None:
        heard.append(None if changed is None else changed.text)

    with mirror.listening(URI, listen):
        mirror.change(URI, 2, [(None, "two")])
        mirror.close(URI)
    mirror.open(URI, 3, "three")
    assert heard == ["two", None]


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///w/a%20b.txt", "/w/a b.txt"),
        ("FILE:///w/%C3%A9", "/w/é"),
        ("file://localhost/w/a", "/w/a"),
        ("file:////w/a", "/w/a"),
        ("file://elsewhere/w/a", None),
        ("untitled:x", None),
        ("https://example.org/a", None),
        ("file:relative", None),
        ("file:///w/%00", None),
        ("", None),
    ],
)
def test_paths_of_uris(uri: str, path: str | None) -> None:
    assert path_of(uri) == (None if path is None else Path(path))


def test_a_document_is_the_same_however_its_uri_is_spelled() -> None:
    mirror = Mirror(path_of)
    mirror.open("file:///w/a b(1).txt", 1, "x")
    mirror.change("file:///w/a%20b%281%29.txt", 2, [(None, "y")])
    (found,) = mirror.at(Path("/w/a b(1).txt"))
    assert (found.uri, found.text) == ("file:///w/a b(1).txt", "y")
    mirror.close("file:///w/%61%20b(1).txt")
    assert mirror.at(Path("/w/a b(1).txt")) == ()


def test_names_that_are_no_unicode_stay_apart() -> None:
    mirror = Mirror(path_of)
    for uri in ("file:///w/%FE", "file:///w/%FF", "file:///w/%2541"):
        mirror.open(uri, 1, uri)
    assert [mirror.text_of(f"file:///w/{name}") for name in ("%fe", "%ff", "A")] == [
        "file:///w/%FE",
        "file:///w/%FF",
        None,
    ]


INSERT_X: Change = (Range(Position(0, 0), Position(0, 0)), "x")


@pytest.mark.parametrize(
    ("text", "changes", "trusted"),
    [
        ("a\r\nb\n", [INSERT_X], True),
        ("a\rb\n", [], True),
        ("a\rb\n", [INSERT_X], False),
        ("ab\n", [(Range(Position(0, 1), Position(0, 1)), "\r")], False),
        ("a\rb\n", [(None, "c\rd")], True),
    ],
)
def test_changes_beside_a_lone_carriage_return_are_not_trusted_where_it_is_counted_otherwise(
    text: str, changes: list[Change], trusted: bool
) -> None:
    mirror = mirror_of(text)
    mirror.splits_at_cr = False
    if changes:
        mirror.change(URI, 2, changes)
    assert (document(mirror).broken == "") is trusted
    mirror.change(URI, 3, [(None, "whole")])
    mirror.change(URI, 4, [INSERT_X])
    assert (document(mirror).text, document(mirror).broken) == ("xwhole", "")
