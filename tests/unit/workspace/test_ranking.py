from __future__ import annotations

from itertools import pairwise

from agentls.core.ports import FileText, Passage
from agentls.workspace.ranking import Clue, Ranking

CLUES = (Clue("slugif", "slugify", 2.0), Clue("text", "text", 0.5))


def ranking(named: frozenset[str] = frozenset(), *, about_tests: bool = False) -> Ranking:
    return Ranking(CLUES, named, about_tests=about_tests)


def file(path: str, text: str) -> FileText:
    return FileText(path, text, "1")


def paths(passages: tuple[Passage, ...]) -> list[str]:
    return [passage.path for passage in passages]


def test_a_definition_beats_uses_and_a_test_comes_last() -> None:
    use = "x = slugify(value)\n" * 3
    files = [
        file("tests/test_a.py", "def slugify():\n"),
        file("use.py", use),
        file("define.py", "def slugify(value):\n    return 1\n\n\nslugify(2)\nslugify(3)\n"),
    ]
    assert paths(ranking().best(files, 5)) == ["define.py", "use.py", "tests/test_a.py"]
    assert paths(ranking(frozenset({"use.py"})).best(files, 1)) == ["use.py"]


def test_where_a_member_is_defined_counts_like_where_it_is_used() -> None:
    clues = (
        Clue("tree.grow", "tree.grow", 2.0),
        Clue("tree", "tree", 1.0),
        Clue("grow", "grow", 1.0),
    )
    files = [
        file("use.py", "tree.grow()\n"),
        file("define.py", "class Tree:\n    def grow(self):\n        pass\n"),
    ]
    assert paths(Ranking(clues, frozenset()).best(files, 2)) == ["define.py", "use.py"]


def test_only_the_part_that_fits_is_given() -> None:
    filler = "nothing\n" * 200
    (found,) = ranking().best([file("a.py", f"{filler}def slugify():\r\n{filler}")], 1)
    assert found.start_line_no <= 201 <= found.end_line_no
    assert found.end_line_no - found.start_line_no < 60
    lines = found.text.split("\n")
    assert lines[201 - found.start_line_no] == "def slugify():"
    assert len(lines) == found.end_line_no - found.start_line_no + 1


def test_passages_do_not_overlap_and_are_limited() -> None:
    found = ranking().best([file("a.py", ("slugify\n" + "x\n" * 99) * 20)], 3)
    assert len(found) == 3
    spans = sorted((passage.start_line_no, passage.end_line_no) for passage in found)
    assert all(one[1] < other[0] for one, other in pairwise(spans))


def test_the_end_of_a_file_and_very_long_lines_are_fine() -> None:
    (found,) = ranking().best([file("a.py", "x" * 10_000 + " slugify")], 1)
    assert (found.start_line_no, found.end_line_no) == (1, 1)
    assert len(found.text) == 401


def test_names_of_files_count() -> None:
    files = [file("b/other.py", "slugify\n"), file("slugify.py", "slugify\n")]
    assert paths(ranking().best(files, 2)) == ["slugify.py", "b/other.py"]
