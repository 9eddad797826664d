"""Path patterns of rules: like gitignore's, over a path relative to its root. Pure.

A pattern without a slash fits at any depth; `*` and `?` stay within a name; `**` spans folders; a
slash at the end means all below. A pattern is read in two ways, so that a doubt never widens: an
allow rule must fit the whole path, letter by letter, while a deny or ask rule also covers all below
what it fits, whatever the case of the letters.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_WILDCARD = re.compile(r"[*?\[\\]")


@dataclass(frozen=True, slots=True)
class PathPattern:
    """One pattern in both readings."""

    text: str
    _strict: re.Pattern[str]
    _wide: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> PathPattern:
        """Read a pattern.

        Raises:
            ValueError: it is empty or holds an unfinished character class.
        """
        anchored = "/" in text.removesuffix("/")
        body = text.removeprefix("./").removeprefix("/")
        below = body.endswith(("/", "/**"))
        body = re.sub(r"(/\*\*|/)+$", "", body)
        if not body:
            raise ValueError("the pattern is empty")
        regex = _translate(body)
        start = "" if anchored else "(?:.*/)?"
        if body == "**":
            start, regex, below = "", ".*", False
        return cls(
            text,
            re.compile(f"{start}{regex}{'/.*' if below else ''}", re.DOTALL),
            # Other roots' paths are absolute: a rule that restricts holds in them too.
            re.compile(f"(?:/.*/)?{start}{regex}(?:/.*)?", re.DOTALL | re.IGNORECASE),
        )

    @property
    def literal(self) -> bool:
        """Whether it names one path, without wildcards."""
        return not _WILDCARD.search(self.text) and not self.text.endswith("/")

    def permits(self, path: str) -> bool:
        """The reading of an allow rule."""
        return self._strict.fullmatch(path) is not None

    def covers(self, path: str) -> bool:
        """The reading of a deny or ask rule."""
        same = unicodedata.normalize("NFC", path)
        return any(self._wide.fullmatch(form) for form in {path, same})


def _translate(body: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(body):
        if (at == 0 or body[at - 1] == "/") and body.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif body[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif body[at] == "?":
            parts.append("[^/]")
            at += 1
        elif body[at] == "[":
            piece, at = _class(body, at)
            parts.append(piece)
        else:
            at += body[at] == "\\" and at + 1 < len(body)
            parts.append(re.escape(unicodedata.normalize("NFC", body[at])))
            at += 1
    return "".join(parts)


def _class(body: str, at: int) -> tuple[str, int]:
    end = body.find("]", at + (3 if body[at + 1 : at + 2] in ("!", "^") else 2))
    if end < 0:
        raise ValueError("the pattern has '[' without ']'")
    inside = body[at + 1 : end]
    negated = inside[:1] in ("!", "^")
    chosen = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside[negated:])
    try:
        re.compile(f"[{chosen}]")
    except re.error:
        raise ValueError(
            f"the pattern has a character class that means nothing: [{inside}]"
        ) from None
    return f"(?!/)[{'^' if negated else ''}{chosen}]", end + 1
