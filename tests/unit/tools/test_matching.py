"""How an edit finds the text it means to replace."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentls.core.errors import EditRefused
from agentls.tools.matching import Edited, Hunk, Place, apply

FILE = """def first():
    x = 1
    return x


def second():
    x = 1
    return -x
"""


def edit(text: str, old: str, new: str, *, replace_all: bool = False) -> Edited:
    return apply("a.py", text, [Hunk(old, new, replace_all)])


def refusal(text: str, old: str, new: str) -> str:
    with pytest.raises(EditRefused) as caught:
        edit(text, old, new)
    return str(caught.value)


# --- exact -----------------------------------------------------------------------------------


def test_an_exact_and_unique_text_is_replaced() -> None:
    edited = edit(FILE, "    return x\n", "    return 2 * x\n")

    assert edited == Edited(FILE.replace("return x\n", "return 2 * x\n"), (Place(3, 3),))


def test_a_replacement_is_plain_text_not_a_template() -> None:
    new = r"\1 \g<0> $1 {x} %s \n"

    assert edit("a\nb\n", "b", new).text == f"a\n{new}\n"


def test_text_that_looks_like_a_pattern_is_found_literally() -> None:
    assert edit("f(a)\nf.a\n", "f(a)", "g").text == "g\nf.a\n"


def test_a_piece_of_a_line_is_replaced_in_place() -> None:
    assert edit("alpha beta gamma\n", "beta", "BETA").text == "alpha BETA gamma\n"


def test_replace_all_replaces_every_occurrence() -> None:
    edited = edit("a b a\na\n", "a", "c", replace_all=True)

    assert edited == Edited("c b c\nc\n", (Place(1, 1), Place(1, 1), Place(2, 2)))


def test_places_are_lines_of_the_new_text() -> None:
    hunks = [Hunk("one\n", "1\n1.5\n"), Hunk("three", "3"), Hunk("five\n", "")]

    edited = apply("a", "one\ntwo\nthree\nfour\nfive\n", hunks)

    assert edited == Edited("1\n1.5\ntwo\n3\nfour\n", (Place(1, 2), Place(4, 4), Place(6, 6)))


@settings(deadline=None)
@given(
    before=st.text("ab\n ", max_size=20),
    after=st.text("ab\n ", max_size=20),
    old=st.text("xyz\n", min_size=1).filter(lambda text: bool(text.strip())),
    new=st.text("pq\\$1{}\n ", min_size=1),
)
def test_an_exact_edit_changes_nothing_around_it(
    before: str, after: str, old: str, new: str
) -> None:
    text = f"{before}X{old}X{after}"
    wanted = f"X{old}X"

    assert edit(text, wanted, new).text == before + new + after


# --- line ends and deletions -----------------------------------------------------------------


def test_deleting_what_a_line_holds_deletes_the_line() -> None:
    assert edit("a\n    b\nc\n", "b", "").text == "a\nc\n"
    assert edit("a\n    b\nc\n", "    b\n", "").text == "a\nc\n"


def test_deleting_a_piece_of_a_line_keeps_the_line() -> None:
    assert edit("a\nb = 1  # old\nc\n", "  # old", "").text == "a\nb = 1\nc\n"


def test_deleting_the_last_line_without_line_end() -> None:
    assert edit("a\nb", "b", "").text == "a\n"
    assert edit("a\nb", "\nb", "").text == "a"


def test_the_last_line_without_line_end_matches_a_text_with_one() -> None:
    edited = edit("a\nlast", "last\n", "LAST\n")

    assert edited == Edited("a\nLAST", (Place(2, 2, "blanks at line ends"),))


# --- loose -----------------------------------------------------------------------------------


def test_blanks_at_line_ends_are_disregarded_and_kept_where_nothing_changed() -> None:
    text = "if a:   \n    b()\t\n    c()\n"

    edited = edit(text, "if a:\n    b()\n    c()\n", "if a:\n    b()\n    d()\n")

    assert edited == Edited("if a:   \n    b()\t\n    d()\n", (Place(1, 3, "blanks at line ends"),))


def test_an_indentation_that_is_off_by_the_same_amount_moves_the_new_text_alike() -> None:
    text = "class A:\n    def f(self):\n        return 1\n"

    edited = edit(
        text,
        "def f(self):\n    return 1 \n",
        "def f(self):\n    if x:\n        return 2\n\n    return 1\n",
    )

    assert edited == Edited(
        "class A:\n    def f(self):\n        if x:\n            return 2\n\n        return 1\n",
        (Place(2, 6, "indentation"),),
    )


def test_too_much_indentation_is_taken_away() -> None:
    edited = edit("a:\n  b: 1\n  c: 2\n", "      b: 1\n      c: 2", "      b: 1\n      c: 3")

    assert edited == Edited("a:\n  b: 1\n  c: 3\n", (Place(2, 3, "indentation"),))


def test_indentation_that_is_off_unevenly_does_not_match() -> None:
    assert "is not in a.py" in refusal("if a:\n    b\n    c\n", "b\n  c\n", "d\n")


def test_new_text_that_cannot_be_moved_does_not_match() -> None:
    assert "is not in a.py" in refusal("a\nb\n", "    a\n    b\n", "    a\n  b\n")


@pytest.mark.parametrize("spaces", [2, 4, 8])
def test_spaces_stand_for_the_tabs_of_the_file(spaces: int) -> None:
    unit = " " * spaces
    text = "func f() {\n\tif a {\n\t\tb()\n\t}\n}\n"

    edited = edit(
        text, f"{unit}if a {{\n{unit * 2}b()\n", f"{unit}if a {{\n{unit * 2}c()\n{unit * 2}b()\n"
    )

    assert edited == Edited(
        "func f() {\n\tif a {\n\t\tc()\n\t\tb()\n\t}\n}\n", (Place(2, 4, "tabs against spaces"),)
    )


def test_tabs_stand_for_the_spaces_of_the_file() -> None:
    edited = edit("if a:\n    b()\n    c()\n", "\tb()\n\tc()\n", "\tb()\n\td()\n")

    assert edited == Edited("if a:\n    b()\n    d()\n", (Place(2, 3, "tabs against spaces"),))


@pytest.mark.parametrize("mark", ["\t", ": ", "→", "| ", "- "])
def test_line_numbers_copied_along_are_disregarded(mark: str) -> None:
    old = f"  9{mark}a = 1\n 10{mark}b = 2"
    new = f"  9{mark}a = 1\n 10{mark}b = 3"

    edited = edit("a = 1\nb = 2\nc\n", old, new)

    assert edited == Edited("a = 1\nb = 3\nc\n", (Place(1, 2, "line numbers in old_text"),))


def test_numbers_that_do_not_count_up_are_text() -> None:
    assert "is not in a.py" in refusal("a\nb\n", "1: a\n5: b", "1: a\n5: c")


def test_blank_lines_around_the_text_are_disregarded() -> None:
    edited = edit("a\nb\nc\n", "\n\nb\n\n", "\n\nB\n\n")

    assert edited == Edited("a\nB\nc\n", (Place(2, 2, "blank lines around it"),))


def test_an_exact_match_wins_over_loose_ones() -> None:
    text = "  x = 1 \nx = 1\ny\n"

    assert edit(text, "\nx = 1\n", "\nx = 2\n").text == "  x = 1 \nx = 2\ny\n"


def test_the_same_indentation_wins_over_a_moved_one() -> None:
    edited = edit("    a \n    b\na \nb\n", "a\nb\n", "a\nc\n")

    assert edited == Edited("    a \n    b\na \nc\n", (Place(3, 4, "blanks at line ends"),))


def test_a_loose_match_must_be_unique() -> None:
    message = refusal("  a\n  b\n\n    a\n    b\n", "a\nb\n", "a\nc\n")

    assert "loosely matches 2 places in a.py" in message
    assert "--- lines 1-" in message


def test_text_within_a_line_is_never_loose() -> None:
    assert "is not in a.py" in refusal("a = 1\n", "a  =  1", "a = 2")


# --- refused ---------------------------------------------------------------------------------


def test_an_ambiguous_text_is_refused_with_its_places() -> None:
    message = refusal(FILE, "    x = 1\n", "    x = 2\n")

    assert message == (
        "old_text is in a.py 2 times:\n"
        "--- lines 1-4\ndef first():\n    x = 1\n    return x\n\n"
        "--- lines 6-8\ndef second():\n    x = 1\n    return -x\n"
        " Add lines around the one you mean to old_text, or set replace_all."
    )


def test_overlapping_occurrences_are_ambiguous() -> None:
    assert "3 times" in refusal("aaaa\n", "aa", "b")


def test_a_missing_text_is_refused_with_the_nearest_places() -> None:
    message = refusal(FILE, "def second(y):\n    x = 1\n    return -x\n", "pass\n")

    assert message == (
        "old_text is not in a.py. Nearest:\n"
        "--- lines 6-8\ndef second():\n    x = 1\n    return -x\n"
        "--- lines 1-4\ndef first():\n    x = 1\n    return x\n\n"
        " Copy old_text exactly from these."
    )


def test_a_missing_line_is_refused_with_similar_lines() -> None:
    message = refusal("import os\nimport sys\n\nvalue = compute(1)\n", "value = compute(2)", "x")

    assert "--- lines 4-4\nvalue = compute(1)\n" in message


def test_nothing_similar_is_said_to_be_so() -> None:
    assert refusal("a\nb\n", "completely different", "x") == (
        "old_text is not in a.py. Nothing in it is similar. Read the file again."
    )


def test_what_is_there_already_is_said_to_be_so() -> None:
    assert refusal("a\nnew line\nb\n", "old line\n", "new line\n") == (
        "already applied: new_text is in a.py at line 2 and old_text, apart from that, is not."
    )


def test_an_insertion_is_not_made_twice() -> None:
    once = edit("import os\n", "import os\n", "import os\nimport sys\n").text

    assert "already applied" in refusal(once, "import os\n", "import os\nimport sys\n")


def test_a_loose_match_of_what_is_there_already_makes_no_difference() -> None:
    assert "makes no difference" in refusal("a\nb \n", "a \nb", "a\nb ")


def test_equal_texts_are_refused() -> None:
    assert "nothing to change" in refusal("a\n", "a", "a")


def test_without_quoting_a_refusal_holds_nothing_of_the_file() -> None:
    text = "KEY=hunter2\nKEY=hunter2\n"
    for old in ("KEY=", "KEY=hunter3", "  KEY=hunter2\n"):
        with pytest.raises(EditRefused) as caught:
            apply(".env", text, [Hunk(old, "x")], quote=False)
        assert "hunter2" not in str(caught.value)


# --- several ---------------------------------------------------------------------------------


def test_several_edits_are_found_in_the_original() -> None:
    hunks = [Hunk("b", "a"), Hunk("a", "b")]

    assert apply("x", "a\nb\n", hunks).text == "b\na\n"


def test_one_bad_edit_of_several_refuses_all() -> None:
    with pytest.raises(EditRefused, match=r"^edits\[1\]: old_text is not in x\..*No edit was made"):
        apply("x", "a\nb\n", [Hunk("a", "c"), Hunk("z", "y")])


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(EditRefused, match="overlap at line 2"):
        apply("x", "a\nb\nc\n", [Hunk("a\nb", "1"), Hunk("b\nc", "2")])


# --- bounds ----------------------------------------------------------------------------------


def test_a_large_file_is_searched_in_bounded_time() -> None:
    text = "\n".join(f"line number {number} of a file" for number in range(60_000))
    started = time.process_time()

    message = refusal(text, "line numbr 1234 off a file\nand another\n", "x")

    assert "Nearest" in message
    assert time.process_time() - started < 5


def test_a_file_of_equal_lines_is_searched_in_bounded_time() -> None:
    text = "x\n" * 50_000
    started = time.process_time()

    refusal(text, "x\n" * 2_000 + "y\n", "z")

    assert time.process_time() - started < 5
