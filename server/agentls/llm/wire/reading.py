"""What the readers of all wire formats share: frames to JSON, and one way to end.

Owns framing, the choice between a stream and one document, error objects, and that whatever ends a
reply ends its blocks. A wire format's reader says what its objects mean. What makes no sense is an
error and is never skipped.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from agentls.core.errors import BadRequest, ModelError, StreamBroken
from agentls.core.events import Event, Ping, Status, StopReason, Usage
from agentls.core.redaction import Redactor
from agentls.llm.wire import failures
from agentls.llm.wire.blocks import BROKE_OFF, CallBlocks, Numbers, Prose, new_call_id
from agentls.llm.wire.fields import Malformed, Object
from agentls.llm.wire.sse import Frame, FrameTooLong
from agentls.llm.wire.strays import STRAY, StrayDecoder

_MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
_MAX_SEEN_BYTES = 256 * 1024
_WHOLE_PATIENCE_S, _DONE_PATIENCE_S = 2.0, 0.1


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a whole reply ended. With `cut`, a reason for people, none of its calls may run."""

    reason: StopReason | None = None
    cut: str | None = None


SAID_ALL = Ending()
"""The calls decide whether the turn ends: what a finish reason claims about them may be a lie."""
TOO_LONG = Ending("max_tokens", "the reply reached its token limit")
FILTERED = Ending("refusal", "the provider's filter cut the reply")
REFUSED = Ending("refusal", "the model refused")


class Framing(Protocol):
    """Cuts bytes into frames; any slicing gives the same ones."""

    def feed(self, data: bytes) -> list[Frame]:
        """Frames that are complete with these bytes.

        Raises:
            FrameTooLong: one of them holds more than any reply should.
        """

    def close(self) -> list[Frame]:
        """Frames left at the end of the bytes."""


class StreamReader(abc.ABC):
    """Reads one response; see `llm.wire.scheme.Reader`.

    A format's reader overrides `_object`, and `_document` if its replies can come unstreamed. It
    grows `_prose` and `_calls`, keeps `_usage`, and sets `_ending` once the reply is whole.
    """

    def __init__(
        self,
        provider: str,
        *,
        new_id: Callable[[], str] = new_call_id,
        framing: Framing | None = None,
    ) -> None:
        """Server-sent events, or one JSON document, unless `framing` is given."""
        self._provider = provider
        self._framing = framing or StrayDecoder()
        self._undecided: bytes | None = b"" if framing is None else None
        self._is_lines = framing is not None
        self._whole: bytearray | None = None  # a reply that is one document
        self._numbers = Numbers()
        self._prose = Prose(self._numbers, provider)
        self._calls = CallBlocks(self._numbers, new_id)
        self._usage = Usage()
        self._ending: Ending | None = None
        self._empty = True
        self._done = False
        self._failure: ModelError | None = None

    @abc.abstractmethod
    def _object(self, value: Object) -> Iterator[Event]:
        """Take one object of the stream.

        Raises:
            Malformed: a field has a type it cannot have.
            ModelError: it reports an error.
        """

    def _document(self, value: object) -> Iterator[Event]:
        """Take a reply that came as one JSON document."""
        raise Malformed(f"one {type(value).__name__} instead of a stream")
        yield  # a generator like the overriding ones

    def _before_end(self) -> Iterator[Event]:
        """Give what was held back until now. The reply is whole."""
        return iter(())

    @property
    def patience_s(self) -> float | None:
        """Short once the reply is whole: only usage and the end mark may follow."""
        if self._done:
            return _DONE_PATIENCE_S
        is_whole = self._ending is not None or self._has_document()
        return _WHOLE_PATIENCE_S if is_whole else None

    def feed(self, data: bytes) -> Iterator[Event]:
        """See `llm.wire.scheme.Reader.feed`."""
        yield from self._or_abort(self._feed(data))

    def close(self) -> Iterator[Event]:
        """See `llm.wire.scheme.Reader.close`."""
        yield from self._or_abort(self._close())

    def _or_abort(self, events: Iterator[Event]) -> Iterator[Event]:
        if self._failure is not None:
            raise self._failure
        try:
            yield from events
        except ModelError as error:
            self._failure = error
            yield from self._prose.abort(BROKE_OFF)
            yield from self._calls.abort(BROKE_OFF)
            raise

    def _feed(self, data: bytes) -> Iterator[Event]:
        if self._undecided is not None:
            data = self._sniff(self._undecided + data)
        if self._whole is not None:
            self._whole += data
            if len(self._whole) > _MAX_DOCUMENT_BYTES:
                raise self._broken("sent more than any reply should hold")
            return
        self._empty = self._empty and not data
        try:
            frames = self._framing.feed(data)
        except FrameTooLong:
            raise self._broken("sent more in one event than any reply should hold") from None
        for frame in frames:
            yield from self._frame(frame)

    def _sniff(self, head: bytes) -> bytes:
        """Decide by the first byte whether this is a stream or one JSON document."""
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if b"\xef\xbb\xbf".startswith(head) or not text:
            self._undecided = head
            return b""
        self._undecided = None
        if text.startswith(b"<"):
            raise self._page()
        if text.startswith((b"{", b"[")):
            self._empty = False
            self._whole = bytearray()
            return text
        return head

    def _has_document(self) -> bool:
        """Whether all of a reply came that is one document; reading one to see must be quick."""
        whole = self._whole
        if whole is None or len(whole) > _MAX_SEEN_BYTES or whole.rstrip()[-1:] not in b"}]":
            return False
        try:
            json.loads(whole)
        except (ValueError, RecursionError):
            return False
        return True

    def _close(self) -> Iterator[Event]:
        if self._whole is not None:
            document, self._whole = bytes(self._whole), bytearray()
            yield from self._json(document, is_document=True)
        for frame in self._framing.close():
            if frame.event == STRAY and self._ending is not None:
                break  # harmless behind a whole reply, as the format says
            try:
                yield from self._frame(frame)
            except StreamBroken:
                if self._ending is None:
                    raise
                break  # half an event behind a whole reply
        if not self._done:
            yield from self._end()

    def _frame(self, frame: Frame) -> Iterator[Event]:
        if self._done:
            return
        data = frame.data
        if data is None or frame.event == b"ping" or not data.strip():
            yield Ping()
        elif data.strip() == b"[DONE]":
            yield from self._end()
        else:
            yield from self._json(data, is_report=frame.event in (b"error", STRAY))

    def _json(
        self, data: bytes, *, is_report: bool = False, is_document: bool = False
    ) -> Iterator[Event]:
        try:
            value = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError):
            if is_report or self._is_plain_text(data):
                is_page = data.lstrip().startswith(b"<")
                said = data.decode("utf-8", "replace")
                raise (self._page() if is_page else self._reported(said)) from None
            raise self._broken("sent a part of the reply that is not JSON") from None
        if is_report or _is_report(value):
            raise self._reported(value)
        try:
            if is_document:
                yield from self._document(value)
            elif isinstance(value, dict):
                yield from self._object(value)
            else:
                raise Malformed("not an object")
        except Malformed as error:
            raise self._broken(f"sent a part of the reply that makes no sense ({error})") from None

    def _is_plain_text(self, line: bytes) -> bool:
        """Whether words stand in place of the first of the lines, as gateways put theirs."""
        begun = not self._is_lines or self._numbers.taken
        return not begun and not line.lstrip().startswith((b"{", b"["))

    def _end(self) -> Iterator[Event]:
        """The end mark, or the end of the bytes. Nothing counts after it."""
        if self._ending is None:
            state = "sent an empty answer" if self._empty else "ended before the reply was finished"
            raise self._broken(state)
        self._done = True
        yield from self._before_end()
        yield from self._prose.stop()
        runs = self._ending.cut is None and self._calls.has_named()
        yield from self._calls.finish(self._ending.cut)
        yield self._usage
        reason = self._ending.reason or ("tool_use" if runs else "end_turn")
        yield Status(state="finished", stop_reason=reason)

    def _reported(self, report: object) -> ModelError:
        """The error behind an error object, or one that holds it under `error`."""
        return failures.from_report(self._provider, report, Redactor())

    def _broken(self, what: str) -> StreamBroken:
        return StreamBroken(f"{self._provider} {what}.", provider=self._provider)

    def _page(self) -> ModelError:
        """Markup in place of a reply, or in the middle of one. It says nothing to a person."""
        if self._numbers.taken:
            return self._broken("sent a page in the middle of the reply")
        return BadRequest(
            f"{self._provider} did not answer as an API does.",
            hint="Is the base URL right? For most servers it ends in /v1.",
            provider=self._provider,
        )


def _is_report(value: object) -> bool:
    """Whether this is no part of a reply but an error, in any of the shapes they come in."""
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        return isinstance(value, str)
    if value.get("error") or value.get("errors") or value.get("object") == "error":
        return True
    return isinstance(value.get("message"), str) and "choices" not in value
