from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from agentls.cli.diffs import DiffLine, diff_lines
from agentls.core.messages import FileDiff
from agentls.core.text import split_lines


def shown(old: str | None, new: str) -> list[str]:
    return [line.text for line in diff_lines(FileDiff(path="f", old_text=old, new_text=new))]


def test_a_change_in_the_middle_has_context_around_it() -> None:
    old = "".join(f"{n}\n" for n in range(1, 11))
    assert list(
        diff_lines(FileDiff(path="a.txt", old_text=old, new_text=old.replace("5", "five")))
    ) == [
        DiffLine("file", "edit a.txt (+1 -1)"),
        DiffLine("hunk", "@@ -2,7 +2,7 @@"),
        DiffLine("context", " 2"),
        DiffLine("context", " 3"),
        DiffLine("context", " 4"),
        DiffLine("removed", "-5"),
        DiffLine("added", "+five"),
        DiffLine("context", " 6"),
        DiffLine("context", " 7"),
        DiffLine("context", " 8"),
    ]


def test_changes_far_apart_are_separate_hunks_and_near_ones_are_not() -> None:
    old = "".join(f"{n}\n" for n in range(30))
    far = shown(old, old.replace("3\n", "x\n", 1).replace("25\n", "y\n"))
    near = shown(old, old.replace("\n3\n", "\nx\n").replace("\n8\n", "\ny\n"))
    assert [line for line in far if line[:2] == "@@"] == ["@@ -1,7 +1,7 @@", "@@ -23,7 +23,7 @@"]
    assert [line for line in near if line[:2] == "@@"] == ["@@ -1,12 +1,12 @@"]


def test_a_new_file_and_an_emptied_one() -> None:
    assert shown(None, "a\nb\n") == ["new file f (+2 -0)", "@@ -0,0 +1,2 @@", "+a", "+b"]
    assert shown("a\n", "") == ["edit f (+0 -1)", "@@ -1,1 +0,0 @@", "-a"]
    assert shown("a\n", "a\n") == ["edit f (+0 -0)"]


def test_a_lost_final_newline_is_said() -> None:
    assert shown("a\n", "a") == [
        "edit f (+1 -1)",
        "@@ -1,1 +1,1 @@",
        "-a",
        "+a",
        "\\ no newline at end of file",
    ]


def test_line_ends_show_only_where_they_are_the_change() -> None:
    assert shown("a\r\nb\r\n", "a\r\nc\r\n")[2:] == [" a", "-b", "+c"]
    assert shown("a\r\n", "a\n")[2:] == ["-a\r", "+a"]


def test_two_large_unlike_files_cost_no_more_than_their_lines() -> None:
    old = "".join(f"old {n}\n" for n in range(20_000))
    new = "".join(f"new {n}\n" for n in range(20_000))
    began = time.process_time()
    assert len(shown(old, new)) == 40_002
    assert time.process_time() - began < 2


@given(st.text("ab\r\n", max_size=60), st.text("ab\r\n", max_size=60))
def test_the_shown_lines_carry_old_to_new(old: str, new: str) -> None:
    """Context plus removed is the old text, context plus added the new, with all context asked."""
    lines = list(diff_lines(FileDiff(path="f", old_text=old, new_text=new), context=100))
    body = [
        line
        for line in lines
        if line.kind in ("added", "removed", "context") and line.text[0] != "\\"
    ]

    def bare(text: str) -> list[str]:
        return [line.rstrip("\r\n") for line in split_lines(text)]

    if old == new:
        assert body == []
        return
    assert [x.text[1:].rstrip("\r") for x in body if x.kind != "added"] == bare(old)
    assert [x.text[1:].rstrip("\r") for x in body if x.kind != "removed"] == bare(new)
