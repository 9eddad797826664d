"""The name and the arguments of a call while its JSON still streams. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agentls.llm.text_calls.forms import JsonScan
from agentls.llm.wire.halves import without_halves

_HEAD = re.compile(
    r'\s*\{\s*"name"\s*:\s*"([^"\\]{1,100})"\s*,\s*"(?:arguments|parameters)"\s*:\s*(?=\{)'
)
_MAX_HEAD_CHARS = 300


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call begins; it is the first of the `Calls` that follow."""

    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """More of the JSON of the call that began."""

    text: str


class Preview:
    """Finds the name and the arguments of a call in its JSON while that streams."""

    def __init__(self, name: str) -> None:
        """With a `name` the JSON is the arguments of that tool."""
        self._name = name
        self._text = ""
        self._state: Literal["head", "arguments", "end"] = "head"
        self._scan = JsonScan()

    def feed(self, text: str) -> None:
        """Take more of the JSON."""
        if self._state != "end":
            self._text += text

    def take(self) -> Iterator[CallStart | CallArguments]:
        """What is certain by now."""
        if self._state == "head" and self._text:
            found = _HEAD.match(self._text)
            if name := self._name or (found[1] if found else ""):
                self._text = self._text[found.end() if found and not self._name else 0 :]
                self._state = "arguments"
                yield CallStart(without_halves(name))
            elif len(self._text) > _MAX_HEAD_CHARS:
                self._state = "end"
        if self._state == "arguments" and (text := self._arguments()):
            yield CallArguments(text)

    def _arguments(self) -> str:
        text, at = self._text, 0
        while True:
            at, why = self._scan.next(text, at)
            if why in ("end", "more"):
                break
            at += 1
        self._text = text[at:]
        if why == "end":
            self._state, self._text = "end", ""
        return text[:at]
