"""Tool calling for models that call only when their output is held to a JSON schema.

Owns the turning of requests and replies between a tool-calling agent and such a model. Wording and
schema are `constrained_prompt`'s, the reading of the JSON is `constrained_json`'s.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass

from agentls.core.errors import StreamBroken
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Status,
)
from agentls.core.messages import ToolCall
from agentls.core.ports import Model
from agentls.core.requests import ModelInfo, ModelRequest
from agentls.llm.embedded.constrained_json import Answer, Arguments, CallStart, Part, ReplyParser
from agentls.llm.embedded.constrained_prompt import reply_schema, rewritten, with_tools
from agentls.llm.wire.blocks import Numbers, Prose, new_call_id
from agentls.llm.wire.halves import without_halves


class ConstrainedModel:
    """Implements `core.ports.Model` around a model that is held to a schema.

    The inner model gets no tools but a description of them in the system prompt, the history as
    plain messages, and a schema with one object a tool and one for the answer. One reply makes at
    most one call.
    """

    def __init__(self, inner: Model, *, new_id: Callable[[], str] = new_call_id) -> None:
        """`inner` is closed with this model; `new_id` makes the ids of calls."""
        self._inner = inner
        self._new_id = new_id

    @property
    def info(self) -> ModelInfo:
        """The inner model's."""
        return self._inner.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """Stream one reply; see `core.ports.Model`.

        The answer's text streams as it comes. A call that was cut off is aborted.

        Raises:
            ModelError: what the inner model raises; `StreamBroken` for a reply that ends midway
                without having reached its token limit.
        """
        reader = _ReplyReader(self.info.provider, self._new_id, calls=bool(request.tools))
        events = self._inner.stream(_constrained(request))
        try:
            async for event in events:
                for translated in reader.read(event):
                    yield translated
        finally:
            if isinstance(events, AsyncGenerator):  # closes the connection now, not some time later
                await events.aclose()

    async def aclose(self) -> None:
        """Close the inner model."""
        await self._inner.aclose()


class _ReplyReader:
    """Turns the inner model's events into those of a model that calls tools by itself."""

    def __init__(self, provider: str, new_id: Callable[[], str], *, calls: bool) -> None:
        """`calls` says whether there is anything to call."""
        self._provider = provider
        self._calls = calls
        self._new_id = new_id
        self._numbers = Numbers()
        self._answer = Prose(self._numbers, provider)
        self._call: _OpenCall | None = None
        self._parser: ReplyParser | None = None
        self._text_index = -1
        self._others: dict[int, int] = {}  # the inner model's thinking, by its index
        self._incomplete = False
        self._called = False

    def read(self, event: Event) -> Iterator[Event]:
        match event:
            case BlockStart(block="text"):
                self._text_index = event.index
                self._parser = ReplyParser(calls=self._calls)
            case BlockDelta() if self._parser is not None and event.index == self._text_index:
                yield from self._parts(self._parser.feed(event.text))
            case BlockStop() if self._parser is not None and event.index == self._text_index:
                yield from self._stop(self._parser)
            case BlockAbort() if self._parser is not None and event.index == self._text_index:
                self._parser = None
                yield from self._answer.abort(event.reason)
                yield from self._abort_call(event.reason)
            case BlockStart():
                self._others[event.index] = self._numbers.take()
                yield event.model_copy(update={"index": self._others[event.index]})
            case BlockDelta() | BlockStop() | BlockAbort():
                yield event.model_copy(update={"index": self._others[event.index]})
            case Status(state="finished"):
                yield self._finished(event)
            case _:
                yield event

    def _parts(self, parts: Iterator[Part]) -> Iterator[Event]:
        for part in parts:
            match part:
                case Answer():
                    yield from self._answer.add("text", part.text)
                case CallStart():
                    call = _OpenCall(
                        self._numbers.take(), self._new_id(), without_halves(part.name)
                    )
                    self._call = call
                    yield BlockStart(
                        index=call.index, block="tool_call", call_id=call.call_id, name=call.name
                    )
                case Arguments() if self._call is not None:
                    text = without_halves(part.text)
                    self._call.arguments += text
                    yield BlockDelta(index=self._call.index, text=text)

    def _stop(self, parser: ReplyParser) -> Iterator[Event]:
        self._parser = None
        yield from self._parts(parser.close())
        self._incomplete = not parser.complete
        yield from self._answer.stop()
        if self._incomplete:
            yield from self._abort_call("the reply ended inside the call")
        elif (call := self._call) is not None:
            self._call, self._called = None, True
            item = ToolCall.parse(call.call_id, call.name, call.arguments)
            yield BlockStop(index=call.index, item=item)

    def _abort_call(self, reason: str) -> Iterator[Event]:
        if (call := self._call) is not None:
            self._call = None
            yield BlockAbort(index=call.index, reason=reason)

    def _finished(self, event: Status) -> Status:
        if event.stop_reason == "max_tokens":
            return event
        if self._incomplete:
            raise StreamBroken(f"{self._provider} ended its reply midway.", provider=self._provider)
        return event.model_copy(update={"stop_reason": "tool_use"}) if self._called else event


@dataclass(slots=True)
class _OpenCall:
    index: int
    call_id: str
    name: str
    arguments: str = ""


def _constrained(request: ModelRequest) -> ModelRequest:
    update: dict[str, object] = {
        "items": tuple(rewritten(request.items, as_json=bool(request.tools)))
    }
    if request.tools:
        update["system"] = with_tools(request.system, request.tools)
        update["tools"] = ()
        update["response_schema"] = reply_schema(request.tools, request.items)
    return request.model_copy(update=update)
