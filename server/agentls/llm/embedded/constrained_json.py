r"""Reads a constrained reply while it streams: `{"answer": "…"}` or `{"tool": …, "arguments": …}`.

Pure text in, parts out; any slicing of the text gives the same result. Knows nothing of events,
schemas or models. Text that is no such object, from a server that ignores schemas, counts as an
answer as it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_ANSWER = re.compile(r'\s*\{\s*"answer"\s*:\s*"')
_CALL = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\{)')
_PLAIN = re.compile(r"[^\"\\]+")
_BEGUN = re.compile(r'\s*(?:$|\{\s*(?:$|"(?:\w*$|(?:tool|arguments|answer)")))')
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, slots=True)
class Answer:
    """More text of the answer; halves of a surrogate pair may come apart."""

    text: str


@dataclass(frozen=True, slots=True)
class CallStart:
    """A call of the tool `name` begins."""

    name: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """More of the call's arguments, as JSON text."""

    text: str


Part = Answer | CallStart | Arguments
State = Literal["start", "answer", "arguments", "end", "raw"]


class ReplyParser:
    """Reads one reply."""

    def __init__(self, *, calls: bool = True) -> None:
        """Nothing was read yet. Without `calls`, what looks like one is an answer as it stands."""
        self._calls = calls
        self._state: State = "start"
        self._text = ""  # not yet understood
        self._depth = 0
        self._in_string = False
        self._escaped = False

    @property
    def complete(self) -> bool:
        """Whether what was begun has ended; text as it stands is complete at any time."""
        return self._state in ("end", "raw")

    def feed(self, text: str) -> Iterator[Part]:
        """Parts that are certain with this text."""
        self._text += text
        if self._state == "start":
            yield from self._begin()
        match self._state:
            case "answer":
                yield from self._answer()
            case "arguments":
                yield from self._arguments()
            case "raw":
                yield from self._take_all()
            case _:
                pass

    def close(self) -> Iterator[Part]:
        """Parts that the end of the text makes certain."""
        if self._state == "start":
            text, self._text = self._text, ""
            yield from self._whole(text)

    def _begin(self) -> Iterator[Part]:
        if found := _ANSWER.match(self._text):
            self._state = "answer"
            self._text = self._text[found.end() :]
        elif found := _CALL.match(self._text):
            name = _name(found[1])
            if name is None or not self._calls:
                self._state = "raw"
                return
            self._state = "arguments"
            self._text = self._text[found.end() :]
            yield CallStart(name)
        elif (head := self._text.lstrip()) and not head.startswith("{"):
            self._state = "raw"

    def _answer(self) -> Iterator[Part]:
        text, at, pieces = self._text, 0, []
        while at < len(text):
            if plain := _PLAIN.match(text, at):
                pieces.append(plain[0])
                at = plain.end()
            elif text[at] == '"':
                self._state = "end"
                break
            else:
                char, length = _escape(text, at)
                if not length:
                    break
                pieces.append(char)
                at += length
        self._text = text[at:]
        if pieces:
            yield Answer("".join(pieces))

    def _arguments(self) -> Iterator[Part]:
        """Pass on up to the brace that closes the arguments."""
        text, self._text = self._text, ""
        for at, char in enumerate(text):
            if self._closes(char):
                self._state = "end"
                text = text[: at + 1]
                break
        if text:
            yield Arguments(text)

    def _closes(self, char: str) -> bool:
        if self._escaped:
            self._escaped = False
        elif self._in_string:
            self._escaped = char == "\\"
            self._in_string = char != '"'
        elif char == '"':
            self._in_string = True
        elif char in "{[":
            self._depth += 1
        elif char in "}]":
            self._depth -= 1
            return self._depth == 0
        return False

    def _take_all(self) -> Iterator[Part]:
        text, self._text = self._text, ""
        if text:
            yield Answer(text)

    def _whole(self, text: str) -> Iterator[Part]:
        """The parts of a text whose beginning said nothing."""
        try:
            value = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            value = None
            if _BEGUN.match(text):
                return
        self._state = "end"
        match value:
            case {"tool": str(name), "arguments": dict(arguments)} if self._calls:
                yield CallStart(name)
                yield Arguments(json.dumps(arguments, ensure_ascii=False))
            case {"answer": str(answer)}:
                yield Answer(answer)
            case _ if text.strip():
                yield Answer(text)


def _name(text: str) -> str | None:
    """The string that a JSON text stands for; None when an escape in it is none."""
    try:
        return str(json.loads(text, strict=False))
    except ValueError:
        return None


def _escape(text: str, at: int) -> tuple[str, int]:
    """The character an escape stands for and its length; 0 when it goes on in the next text."""
    kind = text[at + 1 : at + 2]
    if kind != "u":
        return _ESCAPES.get(kind, kind), 2 if kind else 0
    digits = text[at + 2 : at + 6]
    if len(digits) < 4:
        return "", 0
    try:
        return chr(int(digits, 16)), 6
    except ValueError:
        return text[at : at + 6], 6
