"""glob and grep, over an in-memory search."""

from __future__ import annotations

import pytest

from agentls.core.errors import InvalidArguments, PathRefused
from agentls.core.ports import Access, PathFacts, ToolOutput
from agentls.tools.output import ToolLimits
from support.tool_calls import workbench


async def test_glob_lists_files() -> None:
    bench = workbench({"src/a.py": "", "src/b.py": "", "c.md": ""})

    assert await bench.call("glob", pattern="**/*.py") == ToolOutput(
        "src/a.py\nsrc/b.py", summary="2 files for **/*.py"
    )
    assert bench.search.asked == [{"pattern": "**/*.py", "path": ".", "limit": 200}]


async def test_glob_says_what_is_left_out() -> None:
    bench = workbench(
        {"a.py": "", "b.py": "", ".env": ""}, secrets={".env"}, limits=ToolLimits(max_results=1)
    )

    assert (await bench.call("glob", pattern="*")).content == (
        "a.py\n[only the first 1 files are shown: narrow the search]\n"
        "[1 file left out: may hold secrets]"
    )


@pytest.mark.parametrize(
    ("pattern", "path", "said"),
    [
        ("*.rs", "src", "No file matches *.rs in src. Ignored files are not listed."),
        ("a/*.rs", ".", "No file matches a/*.rs. Try **/*.rs to look in all folders."),
        ("**/*.rs", "", "No file matches **/*.rs. Ignored files are not listed."),
    ],
)
async def test_glob_says_plainly_that_nothing_matches(pattern: str, path: str, said: str) -> None:
    bench = workbench({"src/a.py": ""})

    assert (await bench.call("glob", pattern=pattern, path=path)).content == said


async def test_grep_gives_path_line_and_text() -> None:
    bench = workbench({"a.py": "import os\nos.exit()\n", "b.py": "x\nimport os\n"})

    assert await bench.call("grep", pattern="^import") == ToolOutput(
        "a.py:1: import os\nb.py:2: import os", summary="2 matches for ^import"
    )


async def test_grep_shows_context_in_pieces() -> None:
    bench = workbench({"a": "1\n2\nhit\n4\n5\n6\n7\nhit\n9"})

    assert (await bench.call("grep", pattern="hit", context_lines=1)).content == (
        "a:2- 2\na:3: hit\na:4- 4\n--\na:7- 7\na:8: hit\na:9- 9"
    )


async def test_grep_passes_its_options_on() -> None:
    bench = workbench({"src/a.py": "A(b\n"})

    await bench.call(
        "grep",
        query="A(b",
        directory="src",
        include="*.py",
        literal="true",
        ignore_case=True,
        context=99,
    )

    assert bench.search.asked == [
        {
            "pattern": "A(b",
            "path": "src",
            "glob": "*.py",
            "limit": 200,
            "literal": True,
            "ignore_case": True,
            "context_lines": 20,
        }
    ]


async def test_an_expression_that_does_not_parse_is_taken_literally_and_said_so() -> None:
    bench = workbench({"a": "f(x\n"})

    assert (await bench.call("grep", pattern="f(x")).content == (
        "a:1: f(x\n[not a valid regular expression: searched for as literal text]"
    )


async def test_grep_says_plainly_that_nothing_matches() -> None:
    bench = workbench({"a": "x\n"})

    assert (await bench.call("grep", pattern="zz", path="a")).content == (
        "No line matches zz in a. Try ignore_case, or a shorter pattern."
    )


async def test_grep_cuts_long_lines_and_long_answers() -> None:
    bench = workbench({"a": ("x" * 5000 + "\n") * 300})

    content = (await bench.call("grep", pattern="x")).content

    assert content.startswith("a:1: " + "x" * 1_000 + "[… 4000 more characters]\n")
    assert "narrow it with path or glob" in content
    assert content.endswith("[only the first 200 matches are shown: narrow the search]")
    assert len(content.encode()) < 10_200


async def test_grep_leaves_out_what_a_rule_keeps_from_reading() -> None:
    bench = workbench(
        {"a": "key\n", "secrets/b": "key hunter2\n"},
        readable=lambda path: not path.startswith("secrets/"),
    )

    assert (await bench.call("grep", pattern="key")).content == (
        "a:1: key\n[1 match left out: a rule restricts reading them]"
    )


async def test_grep_cuts_context_shorter() -> None:
    bench = workbench({"a": "y" * 900 + "\n" + "x" * 900})

    assert (await bench.call("grep", pattern="x", context_lines=1)).content == (
        f"a:1- {'y' * 300}[… 600 more characters]\na:2: {'x' * 900}"
    )


async def test_grep_refuses_a_place_outside() -> None:
    with pytest.raises(PathRefused):
        await workbench().prepare("grep", pattern="x", path="../other")


async def test_grep_refuses_an_empty_expression() -> None:
    with pytest.raises(InvalidArguments, match="'pattern' is empty"):
        await workbench().prepare("grep", pattern="")


@pytest.mark.parametrize("name", ["glob", "grep"])
@pytest.mark.parametrize(
    ("path", "facts"),
    [
        ("src", PathFacts("src", exists=True)),
        ("./src/../src/", PathFacts("src", exists=True)),
        (".env", PathFacts(".env", exists=True)),
        ("src/a.py", PathFacts("src/a.py", exists=True)),
    ],
)
async def test_a_search_names_where_it_looks(name: str, path: str, facts: PathFacts) -> None:
    bench = workbench({"src/a.py": "", ".env": ""}, secrets={".env"})

    prepared = await bench.prepare(name, pattern="x", path=path)

    assert prepared.access == Access("read", (facts,))
    assert bench.search.asked == []


async def test_titles_escape_what_hides() -> None:
    bench = workbench()

    title = (await bench.prepare("grep", pattern="a\x1b[8mb")).title

    assert title == ("Search for a\\u{1b}[8mb [contains hidden characters, shown as \\u{…}]")
