"""Tool calling for models that can only write text.

Owns the turning of requests and replies between a tool-calling agent and such a model. Wording is
`prompt`'s, finding the calls `parser`'s.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentls.core.events import Event
from agentls.core.requests import ModelInfo, ModelRequest
from agentls.llm.text_calls.parts import Calls, MadeUpResults, Part
from agentls.llm.text_calls.preview import CallArguments, CallStart
from agentls.llm.text_calls.prompt import rewritten, with_tools
from agentls.llm.text_calls.reply import TextReply, ThinkingModel


class TextToolModel(ThinkingModel):
    """Implements `core.ports.Model` around one without calls of its own.

    The inner model gets no tools but a description of them in the system prompt, and the history as
    plain messages. To the outside this is a model that calls tools by itself.
    """

    @property
    def info(self) -> ModelInfo:
        """The inner model's, with calls."""
        info = self._inner.info
        capabilities = info.capabilities.model_copy(update={"tool_calling": "native"})
        return info.model_copy(update={"capabilities": capabilities})

    def _request(self, request: ModelRequest) -> ModelRequest:
        update: dict[str, object] = {"items": tuple(rewritten(request.items))}
        if request.tools:
            update["system"] = with_tools(request.system, request.tools)
            update["tools"] = ()
        return request.model_copy(update=update)

    def _reply(self, request: ModelRequest) -> TextReply:
        return _WrittenCalls(self.info.provider, request.tools, lenient=True, new_id=self._new_id)


class _WrittenCalls(TextReply):
    """Passes calls on as they come; those that may be an example wait for what follows."""

    _unsure: tuple[Calls, ...] = ()

    def _words(self, text: str) -> Iterator[Event]:
        if text.strip():
            yield from self._show_unsure()
        yield from super()._words(text)

    def _call(self, part: Part) -> Iterator[Event]:
        match part:
            case CallStart():
                yield from self._make_unsure()
                yield from self._start_call(part.name)
            case CallArguments():
                yield from self._calls.add(self._called, part.text)
            case Calls(sure=False):
                self._unsure = (*self._unsure, part)
            case Calls():
                yield from self._make(part)
            case MadeUpResults():
                self.over = True
            case _:
                pass

    def _thought_end(self) -> Iterator[Event]:
        yield from self._show_unsure()
        yield from self._prose.stop()
        yield from super()._thought_end()

    def _last_words(self, *, cut: bool) -> Iterator[Event]:
        yield from super()._last_words(cut=cut)
        yield from self._make_unsure()

    def _make(self, part: Calls) -> Iterator[Event]:
        yield from self._make_unsure()
        calls = part.calls
        if part.started:
            first, calls = calls[0], calls[1:]
            self._calls.set(self._called, name=first.name, arguments=first.arguments)
        for call in calls:
            yield from self._whole_call(call)

    def _make_unsure(self) -> Iterator[Event]:
        unsure, self._unsure = self._unsure, ()
        for part in unsure:
            yield from self._make(part)

    def _show_unsure(self) -> Iterator[Event]:
        unsure, self._unsure = self._unsure, ()
        for part in unsure:
            yield from super()._words(part.raw)
