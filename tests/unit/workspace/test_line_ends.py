from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.text import split_lines
from agentls.workspace.line_ends import restore


def lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ("", "a\nb", "a\nb"),
        ("one", "one\ntwo\n", "one\ntwo\n"),
        ("a\r\nb\r\n", "a\nX\nb\n", "a\r\nX\r\nb\r\n"),
        ("a\r\nb", "a\nX", "a\r\nX"),
        ("a\r\nb", "a\r\nX\nY", "a\r\nX\r\nY"),
        ("a\rb\r", "a\nX\n", "a\rX\r"),
        ("a\nb\n", "a\r\nX\n", "a\nX\n"),
        ("a\nb\n", "a\n50%\r100%\n", "a\n50%\r100%\n"),
        ("a\n\x0cb\x85c\u2028d\r\ne\r", "A\n\x0cb\x85c\u2028d\ne\n", "A\n\x0cb\x85c\u2028d\r\ne\r"),
    ],
)
def test_uniform_and_small_cases(old: str, new: str, result: str) -> None:
    assert restore(old, new) == result


MIXED = "one\ntwo\r\nthree\rfour\r\nfive"


@pytest.mark.parametrize(
    ("new", "result"),
    [
        ("one\nTWO\nthree\nfour\nfive", "one\nTWO\r\nthree\rfour\r\nfive"),
        ("one\nthree\nfour\nfive", "one\nthree\rfour\r\nfive"),
        ("one\ntwo\nX\nY\nthree\nfour\nfive", "one\ntwo\r\nX\r\nY\r\nthree\rfour\r\nfive"),
        ("X\none\ntwo\nthree\nfour\nfive", "X\none\ntwo\r\nthree\rfour\r\nfive"),
        ("one\ntwo\nthree\nfour\nfive\n", "one\ntwo\r\nthree\rfour\r\nfive\r\n"),
        ("one\ntwo\nthree\nfour", "one\ntwo\r\nthree\rfour"),
        ("ONE\ntwo\nTHREE\nfour\nfive", "ONE\ntwo\r\nTHREE\rfour\r\nfive"),
        (MIXED, MIXED),
        (MIXED.replace("two", "2"), MIXED.replace("two", "2")),
    ],
)
def test_mixed_ends_stay_where_they_were(new: str, result: str) -> None:
    assert restore(MIXED, new) == result


def test_exact_text_decides_which_of_equal_lines_was_deleted() -> None:
    assert restore("a\r\na\nb\n", "a\nb\n") == "a\r\nb\n"
    assert restore("a\na\r\nb\r", "a\r\nb\r") == "a\r\nb\r"


lines = st.lists(
    st.tuples(st.sampled_from(["", "a", "b", "ab", "\x0c", "\x85x"]), st.sampled_from("nrc")),
    min_size=1,
    max_size=12,
)
ENDS = {"n": "\n", "r": "\r", "c": "\r\n"}


def joined(parts: list[tuple[str, str]], *, final: bool) -> str:
    text = "".join(body + ENDS[end] for body, end in parts)
    return text if final else text.removesuffix("\n").removesuffix("\r")


@given(lines, st.booleans(), st.data())
def test_replacing_one_line_changes_nothing_else(
    parts: list[tuple[str, str]], final: bool, data: st.DataObject
) -> None:
    old = split_lines(joined(parts, final=final))
    if not old:
        return
    at = data.draw(st.integers(0, len(old) - 1))
    end = old[at][len(old[at].rstrip("\r\n")) :]
    expected = "".join([*old[:at], f"replaced{end}", *old[at + 1 :]])
    seen = lf("".join(old)).split("\n")
    seen[at] = "replaced"
    assert restore("".join(old), "\n".join(seen)) == expected


@given(lines, st.booleans())
def test_text_that_was_not_edited_comes_back(parts: list[tuple[str, str]], final: bool) -> None:
    text = joined(parts, final=final)
    assert restore(text, lf(text)) == text
    assert restore(text, text) == text


def test_a_large_mixed_file_of_equal_lines_takes_bounded_time() -> None:
    old = "same\n" * 30_000 + "same\r\n" * 30_000
    start = time.perf_counter()
    result = restore(old, "x\n" + "same\nother\n" * 30_000 + "y\n")
    assert time.perf_counter() - start < 5.0
    assert lf(result) == "x\n" + "same\nother\n" * 30_000 + "y\n"
