from __future__ import annotations

import time

import pytest

from agentls.workspace.globs import BadGlob, compile_glob, last_name


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".hidden.py"], ["a.pyc", "a.py/x", "py"]),
        ("/*.py", ["a.py"], ["x/a.py"]),
        ("./*.py", ["a.py"], ["x/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py", "x/src/a.py", "src/a.txt"]),
        ("**/a.py", ["a.py", "x/y/a.py"], ["ba.py"]),
        ("src/**", ["src/a", "src/x/y"], ["src", "srcx/a"]),
        ("src/*", ["src/a"], ["src/x/y"]),
        ("src/", ["src/a", "src/x/y"], ["src"]),
        ("src", ["src", "src/a", "x/src/y"], ["srcx"]),
        ("docs/a.md", ["docs/a.md"], ["x/docs/a.md"]),
        (".", ["a", "x/y"], []),
        ("**", ["a", "x/y"], []),
        ("*", ["a", "x/y"], []),
        ("a/**/b/**/c", ["a/b/c", "a/x/b/y/z/c"], ["a/c", "a/b/x"]),
        ("?.c", ["a.c", "x/b.c"], [".c", "ab.c", "a/.c"]),
        ("[ab].c", ["a.c"], ["c.c"]),
        ("[!ab].c", ["c.c"], ["a.c", "x/.c"]),
        ("[a-c]x", ["bx"], ["dx"]),
        ("[]]x", ["]x"], ["x"]),
        ("[a--]x", ["ax"], ["bx"]),
        ("*.{ts,tsx}", ["a.ts", "x/b.tsx"], ["a.js"]),
        ("{src,lib}/**/*.{c,h}", ["src/a.c", "lib/x/b.h"], ["x/a.c", "src/a.cc"]),
        ("{a{b,c},d}", ["ab", "ac", "d"], ["a", "ad"]),
        (r"\*.py", ["*.py"], ["a.py"]),
        (r"a\{b", ["a{b"], []),
        ("(+).py", ["(+).py"], ["x.py"]),
        ("new\nline", ["new\nline"], ["new"]),
        ("*a*b*c", ["xaybzc", "abc"], ["acb"]),
    ],
)
def test_patterns(pattern: str, matching: list[str], others: list[str]) -> None:
    matches = compile_glob(pattern)
    assert [path for path in matching if not matches(path)] == []
    assert [path for path in others if matches(path)] == []


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("[a.py", "'[' is not closed"),
        ("{a,b", "'{' is not closed"),
        ("[z-a]", "'[z-a]' is not a valid set"),
        ("{a,b}" * 9, "more than 200 alternatives"),
    ],
)
def test_bad_patterns_say_why(pattern: str, reason: str) -> None:
    with pytest.raises(BadGlob) as error:
        compile_glob(pattern)
    assert str(error.value) == reason


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "**/a/" * 12 + "b", "{*a*,*b*}" * 6 + "c"])
def test_hostile_patterns_take_no_time(pattern: str) -> None:
    matches = compile_glob(pattern)
    start = time.perf_counter()
    assert not matches("a" * 2000)
    assert not matches("a/" * 1000 + "x")
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*.py", "*.py"),
        ("src/**/*.{c,h}", "*.{c,h}"),
        ("src/*", None),
        ("**", None),
        ("src/", None),
        ("README.md", None),
        ("{a/*.py,b}", None),
        (r"\*.py", None),
    ],
)
def test_the_name_that_every_match_has(pattern: str, name: str | None) -> None:
    assert last_name(pattern) == name
