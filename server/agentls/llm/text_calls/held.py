"""Text that is held back because it may turn out to be a call: fences, and JSON that begins a line.

Pure. Nothing is held longer than it may still be a call.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

from agentls.llm.text_calls.forms import JsonScan, may_call
from agentls.llm.text_calls.tags import FenceKind

_MAX_HEAD_CHARS = 200
"""A longer beginning that says nothing is no call."""
_NEXT = re.compile(r"( *(?:;\s*)?)(\{|\Z)")


class HeldFence:
    """A fence with its content, so far."""

    def __init__(self, opener: str, kind: FenceKind, names: Collection[str]) -> None:
        """`opener` is the line that opens it; `names` are the tools there are."""
        self.kind = kind
        self._opener = opener
        self._closer = ""
        self._names = names
        self._content: list[str] = []
        self._decided = kind == "tool"

    @property
    def raw(self) -> str:
        """All of it."""
        return self._opener + self.content + self._closer

    @property
    def content(self) -> str:
        """What stands between the lines that open and close it."""
        return "".join(self._content)

    def add(self, piece: str, *, closes: bool) -> bool:
        """Take more of it; gives whether it may still be a call."""
        if closes:
            self._closer = piece
            return True
        self._content.append(piece)
        if self._decided:
            return True
        head = self.content[:_MAX_HEAD_CHARS]
        verdict = may_call(head, self._names)
        self._decided = verdict is True
        return verdict is not False and (self._decided or len(head) < _MAX_HEAD_CHARS)


class HeldJson:
    """JSON that begins a line, so far. `outcome` "none" means that it is no call."""

    def __init__(self, names: Collection[str]) -> None:
        """`names` are the tools there are."""
        self.outcome: Literal["open", "done", "none"] = "open"
        self._names = names
        self._pieces: list[str] = []
        self._scan = JsonScan()
        self._head = 0  # characters of the beginning that decide nothing
        self._decided = False
        self._is_python = False
        self._is_whole = False  # a value has ended; another may follow a semicolon

    @property
    def raw(self) -> str:
        """All that was taken."""
        return "".join(self._pieces)

    def take(self, text: str, at: int, *, final: bool) -> int:
        """Go on from `at`; gives where the text has to go on, or what comes behind."""
        if not self._decided:
            return self._decide(text, at, final)
        if self._is_whole:
            return self._more(text, at, final)
        end, why = self._scan.next(text, at)
        if (why == "tag" and self._scan.in_string) or (why == "odd" and self._is_python):
            end += 1
        elif why == "tag" or why == "odd":
            self.outcome = "none"
        elif why == "end":
            self._is_whole = True
        elif final:
            end = len(text)
        self._pieces.append(text[at:end])
        return end

    def end(self) -> None:
        """The text has ended."""
        self.outcome = "done" if self._is_whole else "none"

    def _more(self, text: str, at: int, final: bool) -> int:
        """Behind a value: a semicolon and one more value, as Llama writes several calls."""
        found = _NEXT.match(text, at)
        if found is None or (found[2] != "{" and final):
            self.outcome = "done"
            return at
        if found[2] == "{":
            self._pieces.append(found[1])
            self._scan, self._is_whole = JsonScan(), False
            return self.take(text, found.end(1), final=final)
        return at

    def _decide(self, text: str, at: int, final: bool) -> int:
        """Wait until the beginning tells; only what is certain to be text is taken."""
        head = text[at : at + _MAX_HEAD_CHARS]
        while self._head < len(head):
            verdict = may_call(head[: self._head + 1], self._names)
            if verdict is not None:
                break
            self._head += 1
        else:
            if len(head) < _MAX_HEAD_CHARS and not final:
                return at
            verdict = False
        if verdict:
            self._decided = True
            self._is_python = "{" not in head[: self._head + 1]
            return self.take(text, at, final=final)
        self.outcome = "none"
        self._pieces.append(head[: self._head])
        return at + self._head
