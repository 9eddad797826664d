"""Finds the text an edit means to replace. Pure; all texts have LF line ends.

Exact and unique first. If the text is nowhere, whole lines are compared more loosely (`loose.py`),
and such a match must be unique as well. Everything else is refused, with the places that come
nearest. Replacements are plain text, never a pattern or a template.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentls.core.errors import EditRefused
from agentls.tools import loose, nearest

_MAX_PLACES = 5


@dataclass(frozen=True, slots=True)
class Hunk:
    """One replacement that is asked for."""

    old: str
    new: str
    replace_all: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hunk landed: lines of the new text, counted from 1, inclusive.

    `how` is empty for an exact match, else it says what was disregarded.
    """

    start_line_no: int
    end_line_no: int
    how: str = ""


@dataclass(frozen=True, slots=True)
class Edited:
    """The new text and where it differs."""

    text: str
    places: tuple[Place, ...]


def apply(name: str, text: str, hunks: Sequence[Hunk], *, quote: bool = True) -> Edited:
    """Replace every hunk of the original text, or none.

    `name` is the file's name for messages; without `quote` they hold nothing of the file's text.

    Raises:
        EditRefused: a text is missing, ambiguous or already replaced, or two hunks overlap.
    """
    file = _File(name, text, quote)
    spans: list[loose.Span] = []
    for number, hunk in enumerate(hunks):
        try:
            spans += file.find(hunk)
        except EditRefused as error:
            if len(hunks) == 1:
                raise
            raise EditRefused(
                f"edits[{number}]: {error.message}", hint=f"{error.hint} No edit was made.".strip()
            ) from None
    spans.sort(key=lambda span: (span.start, span.end))
    for before, after in pairwise(spans):
        if after.start < before.end:
            raise EditRefused(
                f"two of the edits overlap at line {file.line_no(after.start)} of {name}.",
                hint="Make them one edit. No edit was made.",
            )
    edited = _replaced(text, spans)
    if edited.text == text:
        raise EditRefused(f"the edit makes no difference: {name} already reads like that.")
    return edited


class _File:
    def __init__(self, name: str, text: str, quote: bool) -> None:
        self._name = name
        self._text = text
        self._quote = quote
        self._lines = loose.Lines(text)

    def line_no(self, offset: int) -> int:
        return bisect_right(self._lines.offsets, offset)

    def find(self, hunk: Hunk) -> list[loose.Span]:
        if hunk.old == hunk.new:
            raise EditRefused("old_text and new_text are the same: nothing to change.")
        starts = _occurrences(self._text, hunk.old, overlapping=not hunk.replace_all)
        if not starts:
            return self._find_loosely(hunk)
        # An insertion keeps its old text: seen again inside the new text, it has been made already.
        if hunk.old in hunk.new and hunk.old not in self._text.replace(hunk.new, "\0"):
            raise self._already(hunk)
        if len(starts) > 1 and not hunk.replace_all:
            raise self._ambiguous("is", starts, hunk.old.count("\n") + 1)
        return [
            self._whole_line_deletion(loose.Span(start, start + len(hunk.old), hunk.new))
            for start in starts
        ]

    def _find_loosely(self, hunk: Hunk) -> list[loose.Span]:
        spans = loose.find(self._lines, hunk.old, hunk.new)
        if len(spans) > 1:
            starts = [span.start for span in spans]
            raise self._ambiguous("loosely matches", starts, hunk.old.rstrip("\n").count("\n") + 1)
        if spans:
            return [self._whole_line_deletion(spans[0])]
        if hunk.new.strip() and hunk.new in self._text:
            raise self._already(hunk)
        message = f"old_text is not in {self._name}."
        if not self._quote:
            raise EditRefused(message, hint="Its text is not shown here.")
        places = nearest.find(self._lines, hunk.old)
        if not places:
            raise EditRefused(message, hint="Nothing in it is similar. Read the file again.")
        shown = self._shown(places, hunk.old.count("\n") + 1)
        raise EditRefused(
            f"{message} Nearest:\n{shown}\n", hint="Copy old_text exactly from these."
        )

    def _whole_line_deletion(self, span: loose.Span) -> loose.Span:
        """Deleting all that a line holds deletes the line: an empty line is hardly ever meant."""
        start = self._text.rfind("\n", 0, span.start) + 1
        end = self._text.find("\n", span.end)
        around = self._text[start : span.start] + self._text[span.end : end]
        if span.new or end < 0 or around.strip() or self._text[span.end - 1] == "\n":
            return span
        return loose.Span(start, end + 1, "", span.how)

    def _already(self, hunk: Hunk) -> EditRefused:
        line_no = self.line_no(self._text.find(hunk.new))
        return EditRefused(
            f"already applied: new_text is in {self._name} at line {line_no} and old_text, apart "
            "from that, is not."
        )

    def _ambiguous(self, verb: str, starts: Sequence[int], length: int) -> EditRefused:
        times = f"old_text {verb} in {self._name} {len(starts)} times"
        if verb != "is":
            times = f"old_text {verb} {len(starts)} places in {self._name}"
        hint = "Add lines around the one you mean to old_text"
        hint += ", or set replace_all." if verb == "is" else "."
        if not self._quote:
            return EditRefused(f"{times}.", hint=hint)
        lines = [self.line_no(start) - 1 for start in starts]
        shown = self._shown([max(line - 1, 0) for line in lines], length + 2)
        return EditRefused(f"{times}:\n{shown}\n", hint=hint)

    def _shown(self, starts: Sequence[int], length: int) -> str:
        parts = [self._lines.quoted(start, length) for start in starts[:_MAX_PLACES]]
        if len(starts) > _MAX_PLACES:
            parts.append(f"… and {len(starts) - _MAX_PLACES} more")
        return "\n".join(parts)


def _occurrences(text: str, wanted: str, *, overlapping: bool) -> list[int]:
    starts: list[int] = []
    start = text.find(wanted)
    while start >= 0:
        starts.append(start)
        start = text.find(wanted, start + (1 if overlapping else len(wanted)))
    return starts


def _replaced(text: str, spans: Sequence[loose.Span]) -> Edited:
    parts: list[str] = []
    places: list[Place] = []
    done, line_no = 0, 1
    for span in spans:
        kept = text[done : span.start]
        line_no += kept.count("\n")
        end = line_no + span.new.removesuffix("\n").count("\n")
        places.append(Place(line_no, end, span.how))
        line_no += span.new.count("\n")
        parts += kept, span.new
        done = span.end
    parts.append(text[done:])
    return Edited("".join(parts), tuple(places))
