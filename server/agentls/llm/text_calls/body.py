"""Reads what stands behind the tag that begins a call, while it streams.

Owns where a call's markup ends and the early announcement of its name and arguments. Pure; what the
JSON means is `forms`'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from agentls.core.requests import ToolDefinition
from agentls.llm.text_calls.forms import JsonScan, WrittenCall, malformed, read_calls
from agentls.llm.text_calls.marked import (
    has_open_value,
    may_be_marked,
    read_marked,
    said_name,
)
from agentls.llm.text_calls.preview import CallArguments, CallStart, Preview
from agentls.llm.text_calls.tags import Opener, Tag, tag_at
from agentls.llm.text_calls.think_tags import THINK_TAGS, overlap

_BLANKS = re.compile(r"\s*")
_AFTER = re.compile(r"[\s,;}\]]*")  # a bracket too many does no harm
_MAX_FENCE_CHARS = 40
_MAX_HEAD_CHARS = 200
_MAX_TRIES = 8
"""Closing marks in the text of an argument that are looked behind: each costs a reading."""


Outcome = Literal["open", "done", "none", "thought"]


class CallBody:
    """The markup of one or more calls in one tag.

    `outcome` turns from "open" to "done", to "none" when this is no call after all, or to "thought"
    when thinking ends here: the call was only thought of.
    """

    def __init__(
        self,
        opener: Opener,
        tools: Sequence[ToolDefinition] = (),
        *,
        lenient: bool,
        think_ends: bool,
    ) -> None:
        """`lenient` takes what is no call of `tools` for a bad one, and announces calls early."""
        self.outcome: Outcome = "open"
        self.started = False
        self.was_cut = False
        self._opener = opener
        self._tools = tools
        self._names = frozenset(tool.name for tool in tools)
        self._marked: list[WrittenCall] | None = None
        self._tries = 0
        self._lenient = lenient
        self._ends: tuple[str, ...] = (
            opener.closer,
            *(THINK_TAGS.values() if think_ends else ()),
        )
        self._raw: list[str] = []  # behind the opening tag
        self._closer = ""
        self._values: list[str] = []
        self._scan = JsonScan()
        self._phase: Callable[[str, int, bool], int] = self._lead
        self._preview = Preview(opener.name)

    @property
    def raw(self) -> str:
        """All that was taken, with the tags."""
        return self._opener.text + "".join(self._raw) + self._closer

    @property
    def is_json(self) -> bool:
        """Whether JSON stands in the tag."""
        return bool(self._values)

    def calls(self) -> list[WrittenCall]:
        """What the markup asks for; a call that makes no sense is among them as such."""
        name = self._opener.name
        calls = self._marked or read_calls("".join(self._values), name)
        if not calls and not self.was_cut:
            calls = read_marked(self.raw, self._tools)
        return calls or [malformed("".join(self._raw), name or said_name(self.raw))]

    def take(
        self, text: str, at: int, *, final: bool, parts: list[CallStart | CallArguments]
    ) -> int:
        """Go on from `at`; gives where the text has to go on, or where the markup ends."""
        while self.outcome == "open":
            before, phase = at, self._phase
            at = self._phase(text, at, final)
            if at == before and phase == self._phase:
                break
        if self._lenient:
            found = list(self._preview.take())
            self.started = self.started or bool(found)
            parts += found
        return at

    def end(self, *, cut: bool) -> None:
        """The text has ended. What is no JSON is then no call, unless the reply was cut."""
        self.was_cut = cut
        if self.outcome == "open":
            if self._phase == self._marks:
                is_call = cut or self._lenient or bool(read_marked(self.raw, self._tools))
            else:
                is_call = bool(self._values) or (self._lenient and self._opener.strong and cut)
            self.outcome = "done" if is_call else "none"

    def _keep(self, text: str, at: int, end: int, *, value: bool = False) -> int:
        if end > at:
            self._raw.append(text[at:end])
            if value:
                self._values.append(text[at:end])
                if self._lenient:
                    self._preview.feed(text[at:end])
        return end

    def _lead(self, text: str, at: int, final: bool) -> int:
        """Before the JSON."""
        at = self._keep(text, at, _skip(_BLANKS, text, at))
        char = text[at : at + 1]
        if not char:
            return at
        if char in "{[":
            self._phase = self._json
            return at
        if char == "`":
            end = text.find("\n", at, at + _MAX_FENCE_CHARS)
            if end >= 0:
                return self._keep(text, at, end + 1)
            if not final and len(text) - at < _MAX_FENCE_CHARS:
                return at
        if char == "<" and not self._opener.name:
            tag = tag_at(text, at)
            if tag == "begun" and not final:
                return at
            if isinstance(tag, Tag) and tag.opener is not None and tag.opener.name:
                inner = tag.opener
                self._opener = Opener(self._opener.text, inner.closer, inner.name, strong=True)
                self._ends = (inner.closer, *self._ends)
                self._preview = Preview(inner.name)
                return self._keep(text, at, at + len(tag.text))
        is_marked = self._is_marked(text[at : at + _MAX_HEAD_CHARS])
        if is_marked is None and not final and len(text) - at < _MAX_HEAD_CHARS:
            return at
        if is_marked:
            self._phase = self._marks
        elif self._lenient and self._opener.strong:
            self._phase = self._words
        else:
            self.outcome = "none"
        return at

    def _is_marked(self, head: str) -> bool | None:
        """Whether marks of the model's own begin here; None when that is not certain yet."""
        if not self._opener.name:
            return may_be_marked(head, self._names)
        marks = ("<parameter", "</function>", "</invoke>")
        if any(head.startswith(mark) for mark in marks):
            return True
        return None if any(mark.startswith(head) for mark in marks) else False

    def _marks(self, text: str, at: int, final: bool) -> int:
        """Marks and what stands between them, up to an end in front of which it can be read."""
        ends = [end for end in self._ends if end]
        found = re.compile("|".join(map(re.escape, ends))).search(text, at) if ends else None
        if found is None:
            held = 0 if final else max((overlap(text[at:], e) for e in ends), default=0)
            return self._keep(text, at, len(text) - held)
        at, end = self._keep(text, at, found.start()), found[0]
        if end in THINK_TAGS.values():
            return self._close(at, end)
        self._tries += 1
        if self._tries <= _MAX_TRIES:
            self._marked = read_marked(self.raw + end, self._tools)
            if self._marked or not has_open_value("".join(self._raw)):
                return self._close(at, end)
        return self._keep(text, at, at + len(end))

    def _json(self, text: str, at: int, final: bool) -> int:
        end, why = self._scan.next(text, at)
        if why == "more":
            return self._keep(text, at, len(text) if final else end, value=True)
        if why == "odd":
            return self._keep(text, at, end + 1, value=True)
        at = self._keep(text, at, end, value=True)
        if why == "end":
            self._phase = self._after
            self.outcome = "done" if self._opener.short else "open"
            return at
        return self._tag(text, at, final, value=True)

    def _after(self, text: str, at: int, final: bool) -> int:
        """Behind a value: the end of the markup, or one more value."""
        at = self._keep(text, at, _skip(_AFTER, text, at))
        rest = text[at : at + 1]
        if not rest:
            return at
        if rest == "`":
            return self._keep(text, at, at + 1)
        if (end := self._end_at(text, at, final)) != "no":
            return at if end == "wait" else self._close(at, end)
        tag = tag_at(text, at) if rest == "[" else "none"
        if tag == "begun" and not final:
            return at
        if rest in "{[" and not isinstance(tag, Tag):
            self._scan, self._phase = JsonScan(), self._json
        else:
            self.outcome = "done"
        return at

    def _words(self, text: str, at: int, final: bool) -> int:
        """What is no JSON, up to the closing tag."""
        end = text.find("<", at)
        at = self._keep(text, at, len(text) if end < 0 else end)
        return at if end < 0 else self._tag(text, at, final)

    def _tag(self, text: str, at: int, final: bool, *, value: bool = False) -> int:
        """Take a `<` that may end the markup."""
        end = self._end_at(text, at, final)
        if end == "wait":
            return at
        return self._keep(text, at, at + 1, value=value) if end == "no" else self._close(at, end)

    def _close(self, at: int, end: str) -> int:
        if end in THINK_TAGS.values():
            self.outcome = "thought"
            return at
        self.outcome, self._closer = "done", end
        return at + len(end)

    def _end_at(self, text: str, at: int, final: bool) -> str:
        """The tag that ends the markup here, "no", or "wait".

        A closing tag in a string is the string's, unless the line ends behind it: then a quote is
        missing somewhere, for JSON has no line ends in strings.
        """
        rest = text[at : at + _MAX_FENCE_CHARS]
        for end in self._ends:
            if not end:
                continue
            if rest.startswith(end):
                behind = rest[len(end) : len(end) + 1]
                if not self._scan.in_string or behind in ("\r", "\n") or (final and not behind):
                    return end
                return "no" if behind else "wait"
            if end.startswith(rest) and not final:
                return "wait"
        return "no"


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
