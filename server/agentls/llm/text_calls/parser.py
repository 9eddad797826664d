"""Finds the calls in the text of a reply while it streams.

Pure text in, parts out; any slicing gives the same parts, up to where words are cut. No character
is looked at more often than a fixed number of times. Knows nothing of events: what becomes of the
parts is up to `tools` and `recovered`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from agentls.core.requests import ToolDefinition
from agentls.llm.text_calls.belief import Belief
from agentls.llm.text_calls.body import CallBody
from agentls.llm.text_calls.forms import WrittenCall
from agentls.llm.text_calls.held import HeldFence, HeldJson
from agentls.llm.text_calls.parts import MadeUpResults, Part, Parts
from agentls.llm.text_calls.preview import CallArguments, CallStart
from agentls.llm.text_calls.tags import Fence, Tag, tag_at
from agentls.llm.text_calls.think_tags import THINK_TAGS

_POINT = re.compile(r"[\n`~<\[{]")
_TICKS = re.compile(r"`+|~+")
_MAX_WAIT_CHARS = 200
"""A beginning that is longer and still undecided is text."""


class CallParser:
    """Reads the text of one reply, without the thinking at its beginning."""

    def __init__(self, tools: Sequence[ToolDefinition], *, lenient: bool) -> None:
        """Without tools nothing is a call. `lenient` is for models that have no other way to call.

        It takes tags and fences for calls that others could have meant as examples, lets bad ones
        through to be answered with an error, and announces calls before they are complete.
        """
        self.thought = False  # thinking has ended before: from there on its tags are text
        self._tools = tuple(tools)
        self._names = frozenset(tool.name for tool in tools)
        self._lenient = lenient
        self._belief = Belief(self._tools, lenient=lenient)
        self._text, self._at = "", 0
        self._step: Callable[[bool], bool] = self._prose
        self._parts = Parts(keep_blanks=not lenient)
        self._blank, self._in_code = True, False  # of the line so far
        self._quotes = False  # the line is a quotation
        self._in_line = False  # words stand before the tag on its line
        self._muted = ""  # what ends thinking in the middle of the text
        self._named = ""  # what ends a tag of thinking that stands among words
        self._wrapped = False  # a fence around tags was dropped, its end is still to come
        self._body: CallBody | None = None
        self._fence = Fence("")
        self._held_fence: HeldFence | None = None
        self._held_json: HeldJson | None = None

    def feed(self, text: str) -> list[Part]:
        """Parts that are certain with this text."""
        self._text += text
        while self._at < len(self._text) and self._step(False):
            pass
        self._text, self._at = self._text[self._at :], 0
        return self._parts.take(final=False)

    def close(self, *, cut: bool) -> list[Part]:
        """Parts that the end of the reply makes certain; `cut` if it did not end by itself."""
        while self._at < len(self._text):
            self._step(True)
        if self._body is not None:
            self._body.end(cut=cut)
            self._end_call(self._body)
        elif self._held_fence is not None:
            self._end_fence(self._held_fence)
        elif self._held_json is not None:
            self._held_json.end()
            self._settle(self._held_json.raw, self._belief.in_json(self._held_json), sure=False)
        return self._parts.take(final=True)

    # --- prose; each step says whether it could take or decide anything -----------------------

    def _prose(self, final: bool) -> bool:
        found = _POINT.search(self._text, self._at)
        if found is None or found.start() > self._at:
            return self._say(len(self._text) if found is None else found.start())
        if found[0] == "\n":
            self._say(self._at + 1)
            self._blank, self._in_code, self._quotes = True, False, False
            return True
        if found[0] in "`~":
            return self._code(final)
        tag = (
            "none"
            if self._in_code or self._quotes or found[0] == "{"
            else tag_at(self._text, self._at)
        )
        if tag == "begun" and not final:
            return False
        if isinstance(tag, Tag):
            return self._tag(tag) or self._say(self._at + 1)
        if found[0] != "<" and self._blank and self._names and not self._muted:
            self._held_json = HeldJson(self._names)
            self._step = self._in_json
            return True
        return self._say(self._at + 1)

    def _say(self, end: int) -> bool:
        self._show(self._text[self._at : end])
        self._at = end
        return True

    def _show(self, text: str) -> None:
        self._parts.show(text)
        if self._blank and (words := text.lstrip()):
            self._blank, self._quotes = False, words[0] == ">"

    def _tag(self, tag: Tag) -> bool:
        """Take a tag; False when it is text."""
        if tag.text == self._named:
            self._named = ""
            return False
        if tag.kind == "think_end" and not self._muted:
            self._parts.end_thought(is_mark=not self.thought)
            if self.thought:
                return False
            self.thought = True
        elif self._muted:
            self._muted = "" if tag.text == self._muted else self._muted
            return False
        elif tag.kind == "think":
            self._muted = THINK_TAGS[tag.text] if self._blank else ""
            self._named = "" if self._blank else THINK_TAGS[tag.text]
            return False
        elif tag.opener is not None and self._names:
            self._body = CallBody(
                tag.opener, self._tools, lenient=self._lenient, think_ends=not self.thought
            )
            self._step, self._in_line = self._in_call, not self._blank
        elif tag.kind == "call_end" and self._parts.called and self._parts.fresh:
            self._parts.found(tag.text, ())
        elif tag.kind == "result" and self._parts.called:
            self._parts.add(MadeUpResults())
            self._step = self._in_void
        else:
            return False
        self._at += len(tag.text)
        return True

    def _code(self, final: bool) -> bool:
        """Take backticks, or the line that opens a fence."""
        text, at = self._text, self._at
        found = _TICKS.match(text, at)
        behind = found.end() if found else at
        may_go_on = not final and len(text) - at < _MAX_WAIT_CHARS
        if self._blank and behind == len(text) and may_go_on:
            return False
        if self._blank and behind - at >= 3:
            if self._wrapped:
                self._wrapped, self._at = False, behind
                return True
            line_end = text.find("\n", behind, at + _MAX_WAIT_CHARS)
            if line_end < 0 and may_go_on and text[at] not in text[behind:]:
                return False
            if line_end >= 0 and text[at] not in (info := text[behind:line_end]):
                return self._open_fence(Fence(text[at:behind], info), line_end + 1, final)
        self._in_code ^= text[at] == "`" and (behind - at) % 2 == 1
        return self._say(behind)

    # --- fences ------------------------------------------------------------------------------

    def _open_fence(self, fence: Fence, end: int, final: bool) -> bool:
        may_call = fence.kind != "other" and self._names and not self._muted
        if may_call and self._lenient:
            window = self._text[end : end + _MAX_WAIT_CHARS]
            inner = window.lstrip()
            tag = tag_at(inner, 0) if inner else "begun"
            if tag == "begun" and not final and len(window) < _MAX_WAIT_CHARS:
                return False
            if isinstance(tag, Tag) and tag.opener is not None:
                self._wrapped, self._at = True, end + len(window) - len(inner)
                return True
        self._fence = fence
        if not may_call:
            self._step = self._in_fence
            return self._say(end)
        self._held_fence = HeldFence(self._text[self._at : end], fence.kind, self._names)
        self._at, self._step = end, self._in_held_fence
        return True

    def _in_fence(self, final: bool) -> bool:
        """Code, which is shown as it is."""
        if (line := self._fence.line(self._text, self._at, final)) is None:
            return False
        end, closes = line
        self._say(end)
        self._step = self._prose if closes else self._in_fence
        self._blank, self._in_code = closes, False
        return True

    def _in_held_fence(self, final: bool) -> bool:
        """A fence that may hold calls."""
        line = self._fence.line(self._text, self._at, final)
        if line is None or (held := self._held_fence) is None:
            return False
        end, closes = line
        may_call = held.add(self._text[self._at : end], closes=closes)
        self._at = end
        if closes:
            self._end_fence(held)
        elif not may_call:
            self._settle(held.raw, [], sure=False)
            self._step = self._in_fence
        return True

    def _end_fence(self, held: HeldFence) -> None:
        self._settle(held.raw, self._belief.in_fence(held), sure=self._lenient)
        self._blank = True

    # --- JSON that begins a line -------------------------------------------------------------

    def _in_json(self, final: bool) -> bool:
        if (held := self._held_json) is None:
            return False
        before = self._at
        self._at = held.take(self._text, self._at, final=final)
        if held.outcome == "open":
            return self._at > before
        self._settle(held.raw, self._belief.in_json(held), sure=False)
        return True

    # --- calls in tags -----------------------------------------------------------------------

    def _in_call(self, final: bool) -> bool:
        if (body := self._body) is None:
            return False
        before = self._at
        parts: list[CallStart | CallArguments] = []
        self._at = body.take(self._text, self._at, final=final, parts=parts)
        for part in parts:
            self._parts.add(part)
        if body.outcome == "open":
            return self._at > before
        self._end_call(body)
        return True

    def _end_call(self, body: CallBody) -> None:
        if self._lenient and body.outcome == "thought":
            self._settle("", [], sure=True)
        else:
            # In the middle of a line, words may be about a call.
            sure = self._lenient or not self._in_line
            self._settle(body.raw, self._belief.in_tag(body), sure=sure, started=body.started)

    def _in_void(self, _final: bool) -> bool:
        """Nothing counts any more."""
        self._at = len(self._text)
        return True

    def _settle(
        self, raw: str, calls: list[WrittenCall], *, sure: bool, started: bool = False
    ) -> None:
        """What was held back is calls, or without them text; back to prose."""
        if calls:
            self._parts.found(raw, tuple(calls), sure=sure, started=started)
        else:
            self._parts.show(raw)
        self._step, self._body, self._held_fence, self._held_json = self._prose, None, None, None
        last_line = raw[raw.rfind("\n") + 1 :]
        self._blank, self._in_code = "\n" in raw and not last_line.strip(), False
