"""Thinking that a model prints at the beginning of its text, in tags of its own.

Servers without a reasoning parser pass `<think>…</think>` on as text. Pure text in, parts out; any
slicing gives the same result. Tags later in the text are none of its business.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

THINK_TAGS: Mapping[str, str] = MappingProxyType(
    {
        "<think>": "</think>",
        "<thinking>": "</thinking>",
        "<reasoning>": "</reasoning>",
        "<thought>": "</thought>",
        "<THINK>": "</THINK>",
        "<antThinking>": "</antThinking>",
        "<seed:think>": "</seed:think>",
        "<|START_THINKING|>": "<|END_THINKING|>",
        "<|begin_of_thought|>": "<|end_of_thought|>",
        "[THINK]": "[/THINK]",
    }
)
"""Opening tag → closing tag."""
_CHANNEL = "<|channel|>analysis<|message|>"
_FINAL = "<|channel|>final<|message|>"
_ASSISTANT = "<|start|>assistant"
_OPENERS: Mapping[str, str] = MappingProxyType(
    {**THINK_TAGS, _CHANNEL: "<|end|>", _ASSISTANT + _CHANNEL: "<|end|>"}
)
_HEADERS = (_FINAL, _ASSISTANT + _FINAL)
"""What gpt-oss prints before its answer; no part of it."""


@dataclass(frozen=True, slots=True)
class Thought:
    """More of the thinking."""

    text: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """More of what stands behind the thinking, or of a text that has none."""

    text: str


class ThinkTags:
    """Reads the text of one reply. A tag that never closes leaves all behind it thinking."""

    def __init__(self) -> None:
        """Nothing was read yet."""
        self.thought = False
        self._closer = ""  # inside thinking: what ends it
        self._lead = False  # nothing but whitespace in this thinking yet
        self._open = True  # only whitespace so far, or only thinking
        self._held = ""
        self._blanks: list[str] = []  # whitespace that is dropped when thinking follows it

    def feed(self, text: str) -> Iterator[Thought | Spoken]:
        """Parts that are certain with this text."""
        text, self._held = self._held + text, ""
        while text:
            if self._closer:
                text = yield from self._think(text)
            elif self._open:
                text = yield from self._begin(text)
            else:
                yield Spoken(text)
                return

    def close(self) -> Iterator[Thought | Spoken]:
        """What was held, decided by the end of the text, or of this block of it."""
        held, self._held = self._held, ""
        if held and self._closer:
            yield Thought(held)
        elif held:
            self._open = False
            yield from self._speak(held)
        elif not self.thought:
            yield from self._speak("")

    def _begin(self, text: str) -> Generator[Spoken, None, str]:
        """Take whitespace and an opening tag; gives the rest of the text."""
        rest = text.lstrip()
        self._blanks.append(text[: len(text) - len(rest)])
        for tag in (*_OPENERS, *_HEADERS):
            if rest.startswith(tag):
                self._blanks.clear()
                self.thought = self._lead = True
                self._closer = _OPENERS.get(tag, "")
                self._open = tag in _OPENERS
                return rest[len(tag) :]
        if any(tag.startswith(rest) for tag in (*_OPENERS, *_HEADERS)):
            self._held = rest
        else:
            self._open = False
            yield from self._speak(rest)
        return ""

    def _speak(self, text: str) -> Iterator[Spoken]:
        """Text behind what is no tag; whitespace right behind thinking belongs to neither."""
        blanks = "" if self.thought else "".join(self._blanks)
        self._blanks.clear()
        if blanks or text:
            yield Spoken(blanks + text)

    def _think(self, text: str) -> Generator[Thought, None, str]:
        """Take thinking up to its closing tag; gives the rest of the text."""
        if self._lead:
            text = text.lstrip()
            self._lead = not text
        at = text.find(self._closer)
        if at >= 0:
            rest = text[at + len(self._closer) :]
            self._closer = ""
        else:
            at = len(text) - overlap(text, self._closer)
            rest, self._held = "", text[at:]
        if at:
            yield Thought(text[:at])
        return rest


def overlap(text: str, tag: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    longest = min(len(text), len(tag) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(tag[:n])), 0)
