from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.text import bare_lines, common_ends, escaped_line, fence, lf, short_line


def test_line_ends_become_lf() -> None:
    assert lf("a\r\nb\rc\nd\u2028e") == "a\nb\nc\nd\u2028e"


def test_a_final_line_end_begins_no_line() -> None:
    texts = ("", "\n", "a", "a\n", "a\n\nb")
    assert [bare_lines(text) for text in texts] == [[], [""], ["a"], ["a"], ["a", "", "b"]]


@pytest.mark.parametrize(
    ("left", "right", "ends"),
    [
        ("", "", (0, 0)),
        ("abc", "abc", (3, 0)),
        ("abc", "axc", (1, 1)),
        ("aa", "aaa", (2, 0)),
        ("xab", "yab", (0, 2)),
        ("ab", "cd", (0, 0)),
    ],
)
def test_what_two_texts_share(left: str, right: str, ends: tuple[int, int]) -> None:
    assert common_ends(left, right) == ends


@given(st.text(alphabet="`a\n", max_size=40))
def test_no_text_closes_its_fence(text: str) -> None:
    marks = fence(text)
    assert (len(marks) >= 3, marks in text) == (True, False)


def test_one_line() -> None:
    assert escaped_line("a\n\tb\x1b") == "a\\n b\\u{1b}"
    assert short_line(" a \n\t b\u202e ", 20) == "a b\\u{202e}"
    assert [short_line("x" * 9, 9), short_line("x" * 10, 9)] == ["x" * 9, "x" * 8 + "…"]
