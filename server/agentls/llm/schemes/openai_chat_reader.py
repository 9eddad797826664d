"""Replies of `/chat/completions`, streamed or whole, as events.

Owns the meaning of chunks; telling calls apart is `openai_chat_calls`'. A reply is whole once a
finish reason was seen, with or without `[DONE]`; `[DONE]` without a finish reason is a cut reply,
since nothing says that the last call in it is complete. What the finish reason claims about calls
is not believed: the calls decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from agentls.core.events import Event
from agentls.llm.schemes.openai_chat_calls import Calls
from agentls.llm.schemes.openai_chat_chunks import (
    choice_of,
    fault_of,
    fragments_of,
    text_of,
    usage_of,
)
from agentls.llm.schemes.prompt_progress import PromptProgress
from agentls.llm.wire.fields import Malformed, Object
from agentls.llm.wire.reading import FILTERED, REFUSED, SAID_ALL, TOO_LONG, StreamReader

_ENDINGS = {
    **dict.fromkeys(("length", "max_tokens", "model_length"), TOO_LONG),
    **dict.fromkeys(("content_filter", "safety"), FILTERED),
}
_FAILED = {"error", "abort", "cancelled", "insufficient_system_resource"}


class ChatReader(StreamReader):
    """Reads one response; see `llm.wire.scheme.Reader`."""

    def __init__(self, provider: str, new_id: Callable[[], str]) -> None:
        """`new_id` makes ids for calls that have none."""
        super().__init__(provider, new_id=new_id)
        self._fragments = Calls(self._calls)
        self._progress = PromptProgress()
        self._refused = False

    def _object(self, value: Object) -> Iterator[Event]:
        if reading := self._progress.read(value):
            yield reading
        yield from self._parts(value)

    def _document(self, value: object) -> Iterator[Event]:
        if not isinstance(value, dict):
            raise Malformed("not an object")
        if "choices" not in value:
            raise self._reported(value)
        yield from self._parts(value, default_finish="stop")

    def _before_end(self) -> Iterator[Event]:
        if self._refused and self._ending is SAID_ALL:
            self._ending = REFUSED
        return self._fragments.finish()

    def _parts(self, chunk: Object, default_finish: str = "") -> Iterator[Event]:
        self._usage = usage_of(chunk) or self._usage
        if fault := fault_of(chunk):
            raise self._reported({"error": fault})
        choice = choice_of(chunk, first=not (self._numbers.taken or self._fragments.any))
        if choice is None:
            return
        for kind, text in text_of(choice.delta):
            self._refused = self._refused or (kind == "refusal" and bool(text))
            yield from self._prose.add("thinking" if kind == "thinking" else "text", text)
        if fragments := fragments_of(choice.delta):
            yield from self._prose.stop()
            yield from self._fragments.add(fragments)
        finish = choice.finish or default_finish
        if finish in _FAILED:
            raise self._broken(f"gave up on the reply ({finish})")
        # A reply that was cut stays cut, whatever a later chunk says.
        if finish and self._ending in (None, SAID_ALL):
            self._ending = _ENDINGS.get(finish, SAID_ALL)
