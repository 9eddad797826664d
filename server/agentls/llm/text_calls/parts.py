"""What a reply's text falls into: words to show, calls, and marks that change what came before.

Pure. Owns the whitespace around calls, which nobody should see.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from agentls.llm.text_calls.forms import WrittenCall
from agentls.llm.text_calls.preview import CallArguments, CallStart

_LINE_END = re.compile(r"[\r\n]")


@dataclass(frozen=True, slots=True)
class Words:
    """More text to show."""

    text: str


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls and the `raw` text they stood in, with the whitespace before.

    `sure` ones are calls whatever follows them; others only as the last thing of a reply. With
    `started`, the first one was announced by `CallStart`.
    """

    raw: str
    calls: tuple[WrittenCall, ...]
    sure: bool
    started: bool = False


@dataclass(frozen=True, slots=True)
class ThoughtEnd:
    """All so far was thinking, whose opening tag is missing."""


@dataclass(frozen=True, slots=True)
class MadeUpResults:
    """Behind its calls the model writes their results: nothing from here on means anything."""


Part = Words | CallStart | CallArguments | Calls | ThoughtEnd | MadeUpResults


class Parts:
    """Collects parts. Whitespace from a line end on waits for what follows it."""

    def __init__(self, *, keep_blanks: bool) -> None:
        """`keep_blanks` keeps the whitespace behind calls, for who may need the text as it was."""
        self.fresh = True  # no word since the beginning, or since a call
        self.called = False
        self._keep_blanks = keep_blanks
        self._drop = False  # the gap belongs to nothing
        self._gap: list[str] = []
        self._parts: list[Part] = []

    def show(self, text: str) -> None:
        """Add text."""
        if self.fresh:
            rest = text.lstrip()
            if len(rest) < len(text):
                self._gap.append(text[: len(text) - len(rest)])
            text = rest
        words = text.rstrip()
        blanks = text[len(words) :]
        if words:
            gap = "" if self._drop else "".join(self._gap)
            self._gap, self.fresh, self._drop = [], False, False
            self._parts.append(Words(gap + words))
        kept = 0
        if not self.fresh and not self._gap:
            found = _LINE_END.search(blanks)
            kept = found.start() if found else len(blanks)
        if kept:
            self._parts.append(Words(blanks[:kept]))
        if kept < len(blanks):
            self._gap.append(blanks[kept:])

    def add(self, part: CallStart | CallArguments | MadeUpResults) -> None:
        """Add something else."""
        self._parts.append(part)

    def found(
        self, raw: str, calls: tuple[WrittenCall, ...], *, sure: bool = True, started: bool = False
    ) -> None:
        """Add calls, or with none of them a mark that belongs to the calls before."""
        self._parts.append(Calls("".join(self._gap) + raw, calls, sure, started))
        self._gap, self.fresh, self.called = [], True, True
        self._drop = sure and not self._keep_blanks

    def end_thought(self, *, is_mark: bool) -> None:
        """Add the end of thinking; without `is_mark` its tag is going to be shown."""
        self._parts.append(ThoughtEnd())
        if is_mark:
            self._gap, self.fresh, self._drop = [], True, True

    def take(self, *, final: bool) -> list[Part]:
        """All that is certain."""
        if final:
            ends_with_calls = self.called and self.fresh and not self._keep_blanks
            if self._gap and not self._drop and not ends_with_calls:
                self._parts.append(Words("".join(self._gap)))
            self._gap = []
        parts: list[Part] = []
        for _, group in itertools.groupby(self._parts, lambda part: isinstance(part, Words)):
            some = list(group)
            words = "".join(part.text for part in some if isinstance(part, Words))
            parts += [Words(words)] if words else some
        self._parts = []
        return parts
