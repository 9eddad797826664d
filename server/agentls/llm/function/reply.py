"""Makes one well-formed reply of whatever a user's function gives: text, items, events.

Owns the order of blocks and the checks on it. Knows nothing of how the function is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from agentls.core.errors import ModelError, StreamBroken
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockKind,
    BlockStart,
    BlockStop,
    Event,
    Failure,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import Item, Message, Reasoning, TextBlock, ToolCall
from agentls.llm.wire.blocks import BROKE_OFF, CallBlocks, Numbers, Prose, new_call_id
from agentls.llm.wire.halves import Mender, without_halves

_CUTS = {
    "max_tokens": "the reply reached its token limit",
    "refusal": "the model refused",
    "cancelled": "the reply was cancelled",
}
_KINDS: dict[BlockKind, type[Item]] = {
    "text": Message,
    "thinking": Reasoning,
    "tool_call": ToolCall,
}


@dataclass(slots=True)
class _Open:
    """A block that the function itself began by an event."""

    index: int
    kind: BlockKind
    call_id: str
    pieces: list[str] = field(default_factory=list)
    mender: Mender = field(default_factory=Mender)

    def grow(self, text: str) -> Iterator[Event]:
        """Give what is text by now."""
        if text:
            self.pieces.append(text)
            yield BlockDelta(index=self.index, text=text)


class CallableReply:
    """One reply. Its blocks get indices of its own, its calls ids that no other call has.

    Calls given as items stay open to the end: only then is it known that the reply was not cut.
    """

    def __init__(self, provider: str, function: str) -> None:
        """`provider` signs thinking; `function` is named in errors."""
        self._provider = provider
        self._function = function
        self._numbers = Numbers()
        self._prose = Prose(self._numbers, provider)
        self._calls = CallBlocks(self._numbers, new_call_id)
        self._open: dict[int, _Open] = {}
        self._call_ids: set[str] = set()
        self._has_call = False
        self._finished = False

    @property
    def begun(self) -> bool:
        """Whether a block was opened."""
        return self._numbers.taken

    def take(self, piece: object) -> Iterator[Event]:
        """Grow the reply by what the function gave.

        Raises:
            StreamBroken: it is no part of a reply, or not one that can come here.
            ModelError: it is a `Failure`.
        """
        if self._finished and not isinstance(piece, Ping):
            self._wrong("went on after it said that its reply is finished")
        match piece:
            case str():
                yield from self._prose.add("text", piece)
            case Ping() | Usage():
                yield piece
            case Status():
                yield from self._status(piece)
            case Failure():
                raise ModelError(
                    piece.message,
                    provider=piece.provider or self._provider,
                    status=piece.status,
                    retryable=piece.retryable,
                )
            case BlockStart() | BlockDelta() | BlockStop() | BlockAbort():
                yield from self._block(piece)
            case Message() | ToolCall() | Reasoning():
                yield from self._item(piece)
            case _:
                self._wrong(
                    f"gave something of type {type(piece).__name__}, which is no part of a reply"
                )

    def close(self) -> Iterator[Event]:
        """The function is done.

        Raises:
            StreamBroken: it left a block open.
        """
        if not self._finished:
            yield from self._status(Status(state="finished"))

    def abort(self) -> Iterator[Event]:
        """The reply broke off: end what is open."""
        reason = BROKE_OFF
        yield from self._prose.abort(reason)
        yield from self._calls.abort(reason)
        for block in self._open.values():
            yield BlockAbort(index=block.index, reason=reason)

    def _status(self, status: Status) -> Iterator[Event]:
        if status.state != "finished":
            yield status
            return
        if self._open:
            self._wrong("ended its reply inside a block")
        yield from self._prose.stop()
        cut = _CUTS.get(status.stop_reason or "")
        runs = cut is None and (self._has_call or self._calls.has_named())
        yield from self._calls.finish(cut)
        self._finished = True
        # Whether there are calls is seen, not believed.
        reason = status.stop_reason if cut else "tool_use" if runs else "end_turn"
        yield status.model_copy(update={"stop_reason": reason})

    def _item(self, item: Message | ToolCall | Reasoning) -> Iterator[Event]:
        yield from self._prose.stop()
        match item:
            case Message():
                self._check_message(item)
                yield from self._prose.add("text", item.text)
                yield from self._prose.stop()
            case Reasoning():
                index = self._numbers.take()
                text = without_halves(item.text)
                yield BlockStart(index=index, block="thinking")
                if text:
                    yield BlockDelta(index=index, text=text)
                yield BlockStop(index=index, item=self._signed(item, text))
            case ToolCall():
                key = object()
                call_id = item.call_id if item.call_id not in self._call_ids else new_call_id()
                self._call_ids.add(call_id)
                yield from self._calls.start(key, call_id, item.name)
                yield from self._calls.add(key, _raw(item))
                if item.signature is not None:
                    self._calls.set(key, signature=item.signature)

    def _block(self, event: BlockStart | BlockDelta | BlockStop | BlockAbort) -> Iterator[Event]:
        if isinstance(event, BlockStart):
            yield from self._start(event)
            return
        block = self._open.get(event.index)
        if block is None:
            self._wrong(f"gave a {event.type} for block {event.index}, which is not open")
        match event:
            case BlockDelta(text=text):
                yield from block.grow(block.mender.feed(text))
            case BlockAbort(reason=reason):
                del self._open[event.index]
                yield BlockAbort(index=block.index, reason=reason)
            case BlockStop(item=item):
                yield from self._stop(event.index, block, item)

    def _start(self, event: BlockStart) -> Iterator[Event]:
        if event.index in self._open:
            self._wrong(f"began block {event.index} twice")
        if event.block not in _KINDS:
            self._wrong(f"began a {event.block} block, which no model writes")
        yield from self._prose.stop()
        call_id = ""
        if event.block == "tool_call":
            call_id = event.call_id
            if not call_id or call_id in self._call_ids:
                call_id = new_call_id()
            self._call_ids.add(call_id)
        block = self._open[event.index] = _Open(self._numbers.take(), event.block, call_id)
        yield event.model_copy(update={"index": block.index, "call_id": call_id})

    def _stop(self, index: int, block: _Open, item: Item) -> Iterator[Event]:
        if not isinstance(item, _KINDS[block.kind]):
            self._wrong(f"stopped a {block.kind} block with a {item.kind}")
        yield from block.grow(block.mender.close())
        shown = "".join(block.pieces)
        match item:
            case Message():
                self._check_message(item)
                text = without_halves(item.text)
                if shown and shown != text:
                    self._wrong("stopped a block with another text than it streamed")
                if not shown:
                    yield from block.grow(text)
                item = Message.of("assistant", text)
            case Reasoning():
                item = self._signed(item, without_halves(item.text))
            case ToolCall():
                raw, signature = _raw(item), item.signature
                item = ToolCall.parse(block.call_id, item.name, raw, signature=signature)
                self._has_call = self._has_call or bool(item.name.strip())
            case _:
                pass
        del self._open[index]
        yield BlockStop(index=block.index, item=item)

    def _check_message(self, message: Message) -> None:
        if message.role != "assistant":
            self._wrong(f"gave a message of the {message.role} as its reply")
        if not all(isinstance(block, TextBlock) for block in message.content):
            self._wrong("gave a message with more than text in it")

    def _signed(self, item: Reasoning, text: str) -> Reasoning:
        return item.model_copy(update={"text": text, "provider": item.provider or self._provider})

    def _wrong(self, what: str) -> NoReturn:
        """A mistake in the function: asking it again would not help."""
        raise StreamBroken(
            f"The function {self._function} {what}.", provider=self._provider, retryable=False
        )


def _raw(call: ToolCall) -> str:
    """Arguments as a model writes them, to be read like those: a function may have put in NaN."""
    return json.dumps(call.arguments) if call.invalid is None else call.invalid
