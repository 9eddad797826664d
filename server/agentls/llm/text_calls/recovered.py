"""Calls that a model printed as text although it can make them by itself.

Owns when such text is a call: the reply has no other call, and nobody could have meant it as words.
Until that is known, the text is held back from the place where a call may begin.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentls.core.events import BlockKind, Event
from agentls.core.ports import Model
from agentls.core.requests import ModelRequest
from agentls.llm.text_calls.forms import WrittenCall
from agentls.llm.text_calls.parser import CallParser
from agentls.llm.text_calls.parts import Calls, Part, Words
from agentls.llm.text_calls.reply import TextReply, ThinkingModel
from agentls.llm.text_calls.tools import TextToolModel


def with_text_calls(model: Model) -> Model:
    """The model with its thinking taken out of its text, and with the calls that its text holds.

    A model that cannot call by itself is told how to write calls; one that can is believed when it
    writes them all the same.
    """
    match model.info.capabilities.tool_calling:
        case "text":
            return TextToolModel(model)
        case "native":
            return RecoveringModel(model)
        case _:
            return ThinkingModel(model)


class RecoveringModel(ThinkingModel):
    """Implements `core.ports.Model` around one that now and then prints its calls."""

    def _reply(self, request: ModelRequest) -> TextReply:
        return _Recovery(self.info.provider, request.tools, new_id=self._new_id)


class _Recovery(TextReply):
    """Keeps all from the first call on, until the reply has ended or the text goes on."""

    _held: list[Words | Calls] | None = None
    _native = False

    def _words(self, text: str) -> Iterator[Event]:
        if self._held is None or self._native:
            yield from super()._words(text)
            return
        self._held.append(Words(text))
        if text.strip() and not any(isinstance(part, Calls) and part.sure for part in self._held):
            yield from self._release()

    def _call(self, part: Part) -> Iterator[Event]:
        if not isinstance(part, Calls):
            self.over = True  # results it made up
        elif self._native:
            yield from super()._words(part.raw)
        else:
            self._held = [*(self._held or ()), part]

    def _thought_end(self) -> Iterator[Event]:
        yield from self._release()
        yield from self._prose.stop()
        yield from super()._thought_end()

    def _other(self, kind: BlockKind) -> Iterator[Event]:
        """With a real call in the reply all of its text is words."""
        if kind == "tool_call" and not self._native:
            self._native = True
            yield from self._release()
            yield from self._parts(self._parser.close(cut=False))
            self._parser = CallParser((), lenient=False)

    def _release(self) -> Iterator[Event]:
        held, self._held = self._held or (), None
        for part in held:
            yield from super()._words(part.text if isinstance(part, Words) else part.raw)

    def _last_words(self, *, cut: bool) -> Iterator[Event]:
        yield from super()._last_words(cut=cut)
        held, self._held = self._held or [], None
        words = [
            at for at, part in enumerate(held) if isinstance(part, Words) and part.text.strip()
        ]
        last = max(words, default=-1)
        calls: list[WrittenCall] = []
        for at, part in enumerate(held):
            if isinstance(part, Words):
                yield from super()._words(part.text if at <= last else "")
            elif part.sure or at > last:
                calls += part.calls
            else:
                yield from super()._words(part.raw)
        for call in calls:
            yield from self._whole_call(call)
