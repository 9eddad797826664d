"""The short diff in an edit's answer."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from agentls.tools.diffs import Change, compare

TEN = "".join(f"{n}\n" for n in range(1, 11))


def test_a_change_is_shown_with_its_place() -> None:
    assert compare(TEN, TEN.replace("6\n", "six\n6.5\n")) == Change(
        2, 1, "@@ -4,5 +4,6 @@\n 4\n 5\n-6\n+six\n+6.5\n 7\n 8"
    )


def test_two_changes_far_apart_are_two_pieces() -> None:
    change = compare(TEN, TEN.replace("1\n2", "one\n2").replace("9\n", ""))

    assert change == Change(
        1, 2, "@@ -1,3 +1,3 @@\n-1\n+one\n 2\n 3\n@@ -7,4 +7,3 @@\n 7\n 8\n-9\n 10"
    )


def test_a_final_line_end_is_a_change_too() -> None:
    assert compare("a\nb\n", "a\nb") == Change(1, 1, "@@ -1,2 +1,2 @@\n a\n-b\n+b [no line end]")


def test_from_nothing() -> None:
    assert compare("", "a\nb\n") == Change(2, 0, "@@ -0,0 +1,2 @@\n+a\n+b")


def test_a_long_change_is_cut() -> None:
    change = compare("a\n", "".join(f"{n}\n" for n in range(100)))

    assert (change.added, change.removed) == (100, 1)
    assert change.snippet.endswith("[… 62 more lines]")


def test_long_lines_are_cut() -> None:
    assert max(map(len, compare("a", "b" * 10_000).snippet.split("\n"))) == 200


def test_a_very_large_change_is_counted_in_bounded_time() -> None:
    old = "".join(f"{n}\n" for n in range(200_000))
    started = time.process_time()

    assert compare(old, old.replace("1", "one")).snippet == ""
    assert time.process_time() - started < 5


@settings(deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_counts_agree_with_the_texts(old: list[str], new: list[str]) -> None:
    change = compare("".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new))

    assert change.added - change.removed == len(new) - len(old)
    assert (change == Change(0, 0, "")) == (old == new)
