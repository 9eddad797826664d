"""Glob patterns over paths with forward slashes, as ignore files and ripgrep understand them.

`*` and `?` stay within a name, `**` spans folders, `[a-z]` and `{a,b}` work as usual, a backslash
takes the next character as it is. A pattern without a slash matches a name at any depth, one with a
slash starts at the top. Pure. Matching takes time linear in the length of the path for each star at
most, since a star never gives back what it took.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_MAX_ALTERNATIVES = 200
_MAGIC = re.compile(r"[*?\[{\\]")


class BadGlob(ValueError):
    """The pattern cannot be understood; the message says why."""


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """A test for relative paths. A pattern without wildcards also matches what lies below it.

    Raises:
        BadGlob: a bracket or brace is not closed, or there are too many alternatives.
    """
    plain = re.sub(r"^\./", "/", pattern)
    if plain in {"", ".", "/"}:
        plain = "**"
    below = "" if _MAGIC.search(plain) else "(?:/.*)?"
    if plain.endswith("/"):
        plain, below = f"{plain}**", ""
    anchored = "/" in plain
    expressions = [
        _path(alternative.lstrip("/"), anchored=anchored) for alternative in _alternatives(plain)
    ]
    expression = re.compile(f"(?s:(?:{'|'.join(expressions)}){below})")
    return lambda path: expression.fullmatch(path) is not None


def last_name(pattern: str) -> str | None:
    """The part of a pattern that the name of a file must match; None when that is not so simple."""
    folders, _, name = pattern.rpartition("/")
    if "{" in folders or "\\" in pattern or name.count("{") != name.count("}"):
        return None
    return name if _MAGIC.search(name) and not set(name) <= {"*"} else None


def _path(pattern: str, *, anchored: bool) -> str:
    """Folders between two `**` are found at their first place: the later `**` takes the rest."""
    parts = pattern.split("/")
    if not anchored:
        parts = ["**", *parts]
    groups: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            groups.append([])
        else:
            groups[-1].append(_name(part))
    first, *rest = groups
    if not rest:
        return "/".join(first)
    *middle, last = rest
    expression = "".join(f"{name}/" for name in first)
    for names in middle:
        expression += f"(?>(?:[^/]+/)*?{''.join(f'{name}/' for name in names)})"
    return f"{expression}(?:[^/]+/)*{'/'.join(last)}" if last else f"{expression}.+"


def _name(pattern: str) -> str:
    """One name. Text between two stars is found at its first place, for the same reason."""
    first, *rest = _pieces(pattern)
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + f"[^/]*{last}"


def _pieces(pattern: str) -> list[str]:
    """Expressions of fixed length, in the places between the stars."""
    pieces = [""]
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if char == "*":
            pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "[":
            expression, position = _class(pattern, position)
            pieces[-1] += expression
        elif char == "\\" and position < len(pattern):
            pieces[-1] += re.escape(pattern[position])
            position += 1
        else:
            pieces[-1] += re.escape(char)
    return pieces


def _class(pattern: str, position: int) -> tuple[str, int]:
    """A set such as `[a-z]` or `[!0-9]`, and the position behind it."""
    negated = pattern[position : position + 1] in {"!", "^"}
    start = position + negated
    end = pattern.find("]", start + 1)
    if end < 0:
        raise BadGlob("'[' is not closed")
    inside = re.sub(r"([\\\[\]^&~|]|--)", r"\\\1", pattern[start:end])
    expression = f"(?!/)[{'^' if negated else ''}{inside}]"
    try:
        re.compile(expression)
    except re.error:
        raise BadGlob(f"'[{pattern[position:end]}]' is not a valid set") from None
    return expression, end + 1


def _alternatives(pattern: str) -> list[str]:
    """Write out braces, innermost last."""
    done: list[str] = []
    todo = [pattern]
    while todo:
        current = todo.pop()
        found = _braces(current)
        if found is None:
            done.append(current)
            continue
        start, end, choices = found
        todo.extend(current[:start] + choice + current[end:] for choice in reversed(choices))
        if len(todo) + len(done) > _MAX_ALTERNATIVES:
            raise BadGlob(f"more than {_MAX_ALTERNATIVES} alternatives")
    return done


def _braces(pattern: str) -> tuple[int, int, list[str]] | None:
    """The first group in braces: start, end, alternatives."""
    depth = start = 0
    cuts: list[int] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif char == "[":
            end = pattern.find("]", position + 2)
            position = end if end > 0 else position
        elif char == "{":
            depth += 1
            if depth == 1:
                start, cuts = position, [position]
        elif char == "," and depth == 1:
            cuts.append(position)
        elif char == "}" and depth:
            depth -= 1
            if depth == 0:
                ends = [*cuts[1:], position]
                choices = [pattern[cut + 1 : end] for cut, end in zip(cuts, ends, strict=True)]
                return start, position + 1, choices
        position += 1
    if depth:
        raise BadGlob("'{' is not closed")
    return None
