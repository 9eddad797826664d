"""Patterns of `bash(…)` rules, word by word over a command. Pure.

A word `*` stands for any number of words, `*` and `?` within a word for characters. Again two
readings: an allow rule fits one plain command, as a whole; a deny or ask rule fits anything a line
might run, wherever the command's file is, with options in between and more words behind.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from agentls.permissions.commands import Words, base_name, invocations, plain

_OPERATORS = re.compile(r"[;&|<>`$()\n\r]")
_OPTIONS = r"(?:-[^\0]*\0(?:[^-\0][^\0]*\0)?)*?"
"""Options, each with at most one value, that stand between the words of a deny rule."""

_RUNS_OR_WRITES = {
    "find": ("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls", "-fprint"),
    "fd": ("-x", "-X", "--exec"),
    "rg": ("--pre", "--hostname-bin"),
    "git": ("-c", "-C", "--config-env", "--exec-path", "--git-dir", "--work-tree", "--ext-diff",
            "--textconv", "--output", "--upload-pack", "--receive-pack", "--exec", "-O",
            "--open-files-in-pager"),
    "sort": ("-o", "--output", "--compress-program"),
}  # fmt: skip
"""Options that make a harmless command run others or write files: no wildcard stands for them."""


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """One pattern in both readings."""

    words: Words
    _strict: re.Pattern[str]
    _first: re.Pattern[str]
    _rest: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> CommandPattern:
        """Read a pattern; `git:*` means `git *`.

        Raises:
            ValueError: it is empty, has an unclosed quote, or is more than one command.
        """
        text = re.sub(r":\*$", " *", text.strip())
        if _OPERATORS.search(text):
            raise ValueError("a rule fits one command; it cannot hold operators")
        try:
            words = tuple(shlex.split(text))
        except ValueError:
            raise ValueError("the pattern has an unclosed quote") from None
        if not words:
            raise ValueError("the pattern is empty")
        rest = "".join(_OPTIONS + _word(word) for word in words[1:])
        return cls(
            words,
            re.compile("".join(map(_word, words)), re.DOTALL),
            re.compile(_word(words[0]), re.DOTALL | re.IGNORECASE),
            re.compile(rest, re.DOTALL),
        )

    def permits(self, command: str) -> bool:
        """The reading of an allow rule."""
        words = plain(command)
        if words is None or not self._strict.fullmatch(_joined(words)):
            return False
        harmful = _RUNS_OR_WRITES.get(base_name(words[0]), ())
        return not any(
            word.startswith(harmful) for word in words[1:] if harmful and word not in self.words
        )

    def covers(self, command: str) -> bool:
        """The reading of a deny or ask rule."""
        return any(map(self.fits, invocations(command)))

    def fits(self, words: Words) -> bool:
        """Whether a deny or ask rule fits one of a line's invocations."""
        if self.words[0] == "*":
            return self._rest.match(_joined(words[1:])) is not None or len(self.words) == 1
        names = (words[0] + "\0", base_name(words[0]) + "\0")
        return any(map(self._first.fullmatch, names)) and (
            self._rest.match(_joined(words[1:])) is not None
        )


def _joined(words: Words) -> str:
    return "".join(word.replace("\0", "") + "\0" for word in words)


def _word(word: str) -> str:
    if word == "*":
        return r"(?:[^\0]*\0)*"
    wild = {"*": r"[^\0]*", "?": r"[^\0]"}
    return "".join(wild.get(char) or re.escape(char) for char in word) + r"\0"
