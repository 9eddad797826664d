"""Models whose text holds what other models send apart: thinking here, calls in those built on it.

Owns the turning of the inner model's events into events of its own: block numbers, that every block
ends once, that usage and the end come last. What the text holds is found by `think_tags` and
`parser`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator

from agentls.core.errors import ModelError
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockKind,
    BlockStart,
    BlockStop,
    Event,
    Status,
    Usage,
)
from agentls.core.ports import Model
from agentls.core.requests import ModelInfo, ModelRequest, ToolDefinition
from agentls.llm.text_calls.forms import WrittenCall
from agentls.llm.text_calls.parser import CallParser
from agentls.llm.text_calls.parts import Part, ThoughtEnd, Words
from agentls.llm.text_calls.think_tags import Spoken, ThinkTags, Thought
from agentls.llm.wire.blocks import BROKE_OFF, CallBlocks, Numbers, Prose, new_call_id

_CUT = {"max_tokens": "the reply reached its token limit", "refusal": "the reply was cut"}
_NOT_WANTED = "the model went on with results it made up"
_ONLY_THOUGHT = "it stood in the model's thinking"


class TextReply:
    """Reads one reply. A subclass says what becomes of calls; here there are none.

    `over` turns true when the rest of the inner reply is not wanted.
    """

    def __init__(
        self,
        provider: str,
        tools: Iterable[ToolDefinition] = (),
        *,
        lenient: bool = False,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        """`provider` signs the thinking; `new_id` makes the ids of calls."""
        self.over = False
        self._new_id = new_id
        self._numbers = Numbers()
        self._prose = Prose(self._numbers, provider)
        self._calls = CallBlocks(self._numbers, new_id)
        self._called = 0
        self._think = ThinkTags()
        self._parser = CallParser(tuple(tools), lenient=lenient)
        self._texts: set[int] = set()  # the inner model's blocks of text that are open
        self._others: dict[int, int] = {}  # its other open blocks → their numbers here
        self._usage: list[Usage] = []

    def read(self, event: Event) -> Iterator[Event]:
        """What an event of the inner model becomes."""
        match event:
            case BlockStart(block="text"):
                self._texts.add(event.index)
            case BlockDelta() if event.index in self._texts:
                yield from self._feed(event.text)
            case BlockStop() if event.index in self._texts:
                # What it held may go on in another block, and a call in it waits for the end.
                self._texts.discard(event.index)
            case BlockAbort() if event.index in self._texts:
                self._texts.discard(event.index)
                yield from self._abort(event.reason)
            case BlockStart():
                yield from self._think_parts(self._think.close())
                yield from self._other(event.block)
                yield from self._prose.stop()
                number = self._others[event.index] = self._numbers.take()
                yield event.model_copy(update={"index": number})
            case BlockDelta():
                yield event.model_copy(update={"index": self._others[event.index]})
            case BlockStop() | BlockAbort():
                yield event.model_copy(update={"index": self._others.pop(event.index)})
            case Usage():
                self._usage.append(event)
            case Status(state="finished"):
                yield from self._finish(event)
            case _:
                yield event

    def break_off(self, reason: str = BROKE_OFF) -> Iterator[Event]:
        """Abort what is open: the reply ended without its end."""
        yield from self._abort(reason)
        for number in self._others.values():
            yield BlockAbort(index=number, reason=reason)
        self._others.clear()
        yield from self._take_usage()

    def end(self) -> Iterator[Event]:
        """The inner reply is over: it was not wanted any longer, or has ended by itself."""
        if not self.over:
            yield from self.break_off()
            return
        for number in self._others.values():
            yield BlockAbort(index=number, reason=_NOT_WANTED)
        self._others.clear()
        yield from self._finish(Status(state="finished", stop_reason="tool_use"))

    def _feed(self, text: str) -> Iterator[Event]:
        yield from self._think_parts(self._think.feed(text))

    def _think_parts(self, parts: Iterable[object]) -> Iterator[Event]:
        for part in parts:
            if isinstance(part, Thought):
                yield from self._prose.add("thinking", part.text)
            elif isinstance(part, Spoken):
                self._parser.thought = self._parser.thought or self._think.thought
                yield from self._parts(self._parser.feed(part.text))

    def _parts(self, parts: Iterable[Part]) -> Iterator[Event]:
        for part in parts:
            if self.over:
                return
            if isinstance(part, Words):
                yield from self._words(part.text)
            elif isinstance(part, ThoughtEnd):
                yield from self._prose.stop()
                yield from self._thought_end()
            else:
                yield from self._call(part)

    def _words(self, text: str) -> Iterator[Event]:
        yield from self._prose.add("text", text)

    def _thought_end(self) -> Iterator[Event]:
        """All so far was thinking: no call in it counts."""
        yield from self._calls.abort(_ONLY_THOUGHT)
        self._called = 0

    def _call(self, part: Part) -> Iterator[Event]:
        """Take what the parser says of calls."""
        raise AssertionError(f"no tools were offered, yet there is {part}")
        yield  # a generator like the overriding ones

    def _other(self, kind: BlockKind) -> Iterator[Event]:  # noqa: ARG002 - for subclasses
        """A block of another kind begins."""
        return iter(())

    def _start_call(self, name: str) -> Iterator[Event]:
        yield from self._prose.stop()
        self._called += 1
        yield from self._calls.start(self._called, self._new_id(), name)

    def _whole_call(self, call: WrittenCall) -> Iterator[Event]:
        yield from self._start_call(call.name)
        yield from self._calls.add(self._called, call.arguments)

    def _last_words(self, *, cut: bool) -> Iterator[Event]:
        """What the end of the reply makes certain."""
        yield from self._think_parts(self._think.close())
        yield from self._parts(self._parser.close(cut=cut))

    def _finish(self, event: Status) -> Iterator[Event]:
        cut = _CUT.get(event.stop_reason or "")
        yield from self._last_words(cut=cut is not None)
        yield from self._prose.stop()
        runs = cut is None and self._calls.has_named()
        yield from self._calls.finish(cut)
        yield from self._take_usage()
        yield event.model_copy(update={"stop_reason": "tool_use"}) if runs else event

    def _abort(self, reason: str) -> Iterator[Event]:
        yield from self._prose.abort(reason)
        yield from self._calls.abort(reason)

    def _take_usage(self) -> Iterator[Event]:
        usage, self._usage = self._usage, []
        yield from usage


class ThinkingModel:
    """Implements `core.ports.Model` around one that may print its thinking in tags."""

    def __init__(self, inner: Model, *, new_id: Callable[[], str] = new_call_id) -> None:
        """`inner` is closed with this model; `new_id` makes the ids of calls."""
        self._inner = inner
        self._new_id = new_id

    @property
    def info(self) -> ModelInfo:
        """The inner model's."""
        return self._inner.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """Stream one reply; see `core.ports.Model`. Raises what the inner model raises."""
        reply = self._reply(request)
        events = self._inner.stream(self._request(request))
        async with contextlib.aclosing(events):  # closes the connection now, not some time later
            try:
                async for event in events:
                    for own in reply.read(event):
                        yield own
                    if reply.over:
                        break
            except ModelError:
                for own in reply.break_off():
                    yield own
                raise
        for own in reply.end():
            yield own

    async def aclose(self) -> None:
        """Close the inner model."""
        await self._inner.aclose()

    def _request(self, request: ModelRequest) -> ModelRequest:
        """What the inner model is asked."""
        return request

    def _reply(self, request: ModelRequest) -> TextReply:  # noqa: ARG002 - for subclasses
        """What reads its reply."""
        return TextReply(self.info.provider, new_id=self._new_id)
