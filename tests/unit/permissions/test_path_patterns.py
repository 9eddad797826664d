"""Path patterns of rules."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentls.permissions.globs import PathPattern


@pytest.mark.parametrize(
    ("pattern", "path", "permits", "covers"),
    [
        ("src/**", "src/a.py", True, True),
        ("src/**", "src/a/b/c.py", True, True),
        ("src/**", "src", False, True),
        ("src/**", "src-evil/a.py", False, False),
        ("src/**", "x/src/a.py", False, False),
        ("src/**", "SRC/a.py", False, True),
        ("src/**", "/other/root/src/a.py", False, True),
        ("src/*", "src/a.py", True, True),
        ("src/*", "src/a/b.py", False, True),
        ("src", "src", True, True),
        ("src", "src/a.py", False, True),
        ("src/", "src/a.py", True, True),
        ("src/", "x/src/a.py", True, True),
        ("src/", "src", False, True),
        ("/src/a.py", "src/a.py", True, True),
        ("/a.py", "src/a.py", False, False),
        ("./src/a.py", "src/a.py", True, True),
        ("*.py", "a.py", True, True),
        ("*.py", "src/deep/a.py", True, True),
        ("*.py", "a.pyc", False, False),
        ("**/*.py", "a.py", True, True),
        ("**/*.py", "src/deep/a.py", True, True),
        ("**", "a/b", True, True),
        ("a/**/z", "a/z", True, True),
        ("a/**/z", "a/b/c/z", True, True),
        ("a/**/z", "ab/z", False, False),
        ("a?c", "abc", True, True),
        ("a?c", "a/c", False, False),
        ("[ab].py", "a.py", True, True),
        ("[!ab].py", "a.py", False, False),
        ("[!ab].py", "c.py", True, True),
        ("x[!a]y", "x/y", False, False),
        ("[a-c].py", "b.py", True, True),
        ("[]a].py", "].py", True, True),
        (r"\*.py", "*.py", True, True),
        (r"\*.py", "a.py", False, False),
        ("a.b", "axb", False, False),
        ("a+(b)|c$", "a+(b)|c$", True, True),
        ("a\nb", "a\nb", True, True),
        ("*", "a\nb", True, True),
        ("caf\u00e9", "cafe\u0301", False, True),
    ],
)
def test_both_readings(pattern: str, path: str, permits: bool, covers: bool) -> None:
    parsed = PathPattern.parse(pattern)

    assert (parsed.permits(path), parsed.covers(path)) == (permits, covers)


@pytest.mark.parametrize("pattern", ["", "/", "./", "[ab", "x/[!]", "[b-a]"])
def test_a_pattern_without_meaning_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        PathPattern.parse(pattern)


def test_which_patterns_name_one_path() -> None:
    literal = [PathPattern.parse(text).literal for text in (".env", "a/.env", "*.env", "a/", "[a]")]

    assert literal == [True, True, False, False, False]


@settings(deadline=None)
@given(
    st.text("ab/*?[]!\\.", min_size=1, max_size=12),
    st.lists(st.text("ab.*", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join),
)
def test_what_would_be_allowed_would_also_be_denied(pattern: str, path: str) -> None:
    try:
        parsed = PathPattern.parse(pattern)
    except ValueError:
        return

    assert parsed.covers(path) or not parsed.permits(path)
