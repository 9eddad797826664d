"""Splits a shell command line into simple commands, following quotes and substitutions. Pure.

Not a grammar: keywords are words like any other. Where it cannot be sure how a shell would read the
line (a heredoc, `case`, quotes that do not close, a name that is computed), it says so, as well as
where the line might be no proper one: after a mistake, bash goes on with the next line, be that
within quotes or not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agentls.permissions.ansi_quotes import decode

MAX_NESTING = 6
EXPANSION = "\0"
"""Stands in a word for what a shell puts in the place of `$x` or `${x}`; perhaps nothing."""

_REDIRECTION = re.compile(r"&>>?|<<<|<<-?|<&|<>|>>|>&|>\||<|>")
_VARIABLE = re.compile(r"\$(?:\w+|[@*#?$!-]|\{[!#]?\w*(?:\[[^\]]*\])?(?:\}|:?[-=+?])?)")
_COMPUTED = re.compile(r"[\0$`*?]|\[.*\]")
KEYWORDS = frozenset({
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in",
    "select", "function", "time", "coproc", "!", "{", "}", "[[", "]]",
})  # fmt: skip
"""Words that begin something other than a simple command."""
_BRACES = re.compile(r"\{.*,|\{.*\.\.")
_ORDINARY = re.compile(r"[\w./:=@%+,-]+")
_ANSI_QUOTED = re.compile(r"((?:[^'\\]|\\.)*)'", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reading:
    """The words of every simple command in a line.

    Redirections and their targets are left out, text given as input (`<<<`) comes last, assignments
    are kept. `doubtful`: quotes could not be followed for sure. `irregular`: there may be a mistake
    in the line.
    """

    commands: tuple[tuple[str, ...], ...]
    doubtful: bool
    irregular: bool


def read_line(line: str) -> Reading:
    """Read a command line, which may hold line ends."""
    reader = _Reader(line)
    reader.read("")
    return Reading(tuple(reader.commands), reader.doubtful, reader.irregular)


class _Reader:
    def __init__(self, text: str) -> None:
        self.commands: list[tuple[str, ...]] = []
        self.doubtful = False
        self.irregular = False
        self._text = text
        self._at = 0
        self._nesting = 0
        self._words: list[str] = []
        self._word: str | None = None
        self._drops_next = ""
        self._inputs: list[str] = []
        self._in_backticks = False

    def read(self, stop: str) -> None:
        """Read to an unquoted `stop`, or to the end."""
        parentheses = 0
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == stop and not parentheses:
                break
            parentheses += (char == "(") - (char == ")" and parentheses > 0)
            self._step(char)
        else:
            self.doubtful |= bool(stop)
        self._at += 1
        self._end_command()

    def _step(self, char: str) -> None:
        redirection = _REDIRECTION.match(self._text, self._at) if char in "&<>" else None
        ordinary = _ORDINARY.match(self._text, self._at)
        self._at += 1
        if ordinary:
            self._at = ordinary.end()
            self._add(ordinary[0])
        elif redirection:
            self._redirect(redirection)
        elif char in "\n;&|()`":
            self._operator(char)
        elif char in " \t":
            self._end_word()
        elif char == "#" and self._word is None:
            self._skip_comment()
        elif char == "\\":
            self._escaped()
        elif char == "'":
            self._add(self._until_quote())
        elif char == '"':
            self._add(self._double_quoted())
        elif char == "$" and self._text.startswith("'", self._at):
            self._at += 1
            self._add(self._ansi_quoted())
        elif char == "$" and self._text.startswith('"', self._at):
            pass  # quotes to translate: only the quotes count
        elif char == "$":
            self._add(self._expanded())
        else:
            self._add(char)

    def _operator(self, char: str) -> None:
        doubled = char in "&|" and self._text[self._at : self._at + 1] in (char, "&")
        self._at += doubled
        nothing_before = not self._words and self._word is None
        self.irregular |= char in "()" or (char in ";&|" and nothing_before)
        self._in_backticks ^= char == "`"
        self._end_command()

    def _skip_comment(self) -> None:
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "\n" or (char == "`" and self._in_backticks):
                return
            self._at += 1

    def _redirect(self, match: re.Match[str]) -> None:
        if self._word is not None and self._word.isdigit():
            self._word = None
        self._end_word()
        self._at = match.end()
        self._drops_next = match[0]
        self.doubtful |= match[0] in ("<<", "<<-")

    def _escaped(self) -> None:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        self.doubtful |= char == "`"
        if char != "\n":
            self._add(char)

    def _expanded(self) -> str:
        match = _VARIABLE.match(self._text, self._at - 1)
        if match is None:
            return "$"
        self._at = match.end()
        return EXPANSION

    def _until_quote(self) -> str:
        end = self._text.find("'", self._at)
        self.doubtful |= end < 0
        end = end if end >= 0 else len(self._text)
        inside = self._text[self._at : end]
        self._at = end + 1
        return inside

    def _ansi_quoted(self) -> str:
        match = _ANSI_QUOTED.match(self._text, self._at)
        if match is None:
            self.doubtful = True
            return ""
        self._at = match.end()
        return decode(match[1])

    def _double_quoted(self) -> str:
        inside: list[str] = []
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if char == '"':
                return "".join(inside)
            if char == "\\":
                inside.append(self._text[self._at : self._at + 1].removeprefix("\n"))
                self._at += 1
            elif char == "`" or (char == "$" and self._text.startswith("(", self._at)):
                self._at += char == "$"
                self._nested("`" if char == "`" else ")")
                inside.append(EXPANSION)
            elif char == "$":
                inside.append(self._expanded())
            else:
                inside.append(char)
        self.doubtful = True
        return "".join(inside)

    def _nested(self, stop: str) -> None:
        kept = self._words, self._word, self._drops_next, self._inputs, self._in_backticks
        self._words, self._word, self._drops_next, self._inputs = [], None, "", []
        self._in_backticks = stop == "`"
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self.doubtful = True
        else:
            self.read(stop)
        self._nesting -= 1
        self._words, self._word, self._drops_next, self._inputs, self._in_backticks = kept

    def _add(self, text: str) -> None:
        self._word = (self._word or "") + text

    def _end_word(self) -> None:
        if self._word is not None:
            if not self._drops_next:
                self._words.append(self._word)
            elif self._drops_next == "<<<":
                # A shell would run it.
                self._inputs.append(self._word)
            self._drops_next = ""
        self._word = None

    def _end_command(self) -> None:
        self._end_word()
        self.irregular |= bool(self._drops_next)
        words = self._words + self._inputs
        self._drops_next, self._words, self._inputs = "", [], []
        if words:
            self.commands.append(tuple(words))
            self.irregular |= words[0] in KEYWORDS
            self.doubtful |= "case" in words or any(map(_BRACES.search, words))
            self.doubtful |= bool(_COMPUTED.search(words[0]))
