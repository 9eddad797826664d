"""Replies of `/chat/completions`, streamed or whole, as events.

Owns the meaning of chunks; framing is `sse`'s, telling calls apart `openai_calls`'. What makes no
sense is an error and is never skipped. A reply is whole once a finish reason was seen, with or
without `[DONE]`; `[DONE]` without a finish reason is a cut reply, since nothing says that the last
call in it is complete. What the finish reason claims about calls is not believed: the calls decide.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from agentls.core.errors import ModelError, StreamBroken
from agentls.core.events import Event, Ping, Status, StopReason, Usage
from agentls.llm import failures
from agentls.llm.blocks import Numbers, Prose
from agentls.llm.redaction import Redactor
from agentls.llm.schemes.openai_calls import Calls
from agentls.llm.schemes.openai_chunks import Malformed, choice_of, fragments_of, text_of, usage_of
from agentls.llm.schemes.prompt_progress import PromptProgress
from agentls.llm.sse import Frame, FrameTooLong, SSEDecoder

_CUT = {"length", "max_tokens", "model_length"}
_FILTERED = {"content_filter", "safety"}
_FAILED = {"error", "abort", "cancelled", "insufficient_system_resource"}
_MAX_DOCUMENT_BYTES = 64 * 1024 * 1024
_WHOLE_PATIENCE_S, _DONE_PATIENCE_S = 2.0, 0.1


class ChatReader:
    """Reads one response; see `llm.scheme.Reader`."""

    def __init__(self, provider: str, new_id: Callable[[], str]) -> None:
        """`new_id` makes ids for calls that have none."""
        self._provider = provider
        self._frames = SSEDecoder()
        self._head = b""
        self._document: bytearray | None = None  # a reply that is not a stream
        self._numbers = Numbers()
        self._prose = Prose(self._numbers, provider)
        self._calls = Calls(self._numbers, new_id)
        self._progress = PromptProgress()
        self._usage = Usage()
        self._finish = ""
        self._refused = False
        self._empty = True
        self._done = False
        self._failure: ModelError | None = None

    @property
    def patience_s(self) -> float | None:
        """Short once the reply is whole: only usage and the end mark may follow."""
        if self._done:
            return _DONE_PATIENCE_S
        return _WHOLE_PATIENCE_S if self._finish else None

    def feed(self, data: bytes) -> Iterator[Event]:
        """See `llm.scheme.Reader.feed`."""
        yield from self._or_abort(self._feed(data))

    def close(self) -> Iterator[Event]:
        """See `llm.scheme.Reader.close`."""
        yield from self._or_abort(self._close())

    def _or_abort(self, events: Iterator[Event]) -> Iterator[Event]:
        if self._failure is not None:
            raise self._failure
        try:
            yield from events
        except ModelError as error:
            self._failure = error
            yield from self._prose.abort("the reply broke off")
            yield from self._calls.abort("the reply broke off")
            raise

    def _feed(self, data: bytes) -> Iterator[Event]:
        if self._document is None and self._empty:
            data = self._sniff(data)
        if self._document is not None:
            self._document += data
            if len(self._document) > _MAX_DOCUMENT_BYTES:
                raise self._broken("sent more than any reply should hold")
            return
        try:
            frames = self._frames.feed(data)
        except FrameTooLong:
            raise self._broken("sent more in one event than any reply should hold") from None
        for frame in frames:
            yield from self._frame(frame)

    def _sniff(self, data: bytes) -> bytes:
        """Decide by the first byte whether this is a stream or one JSON document."""
        head = self._head + data
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        if b"\xef\xbb\xbf".startswith(head) or not text:
            self._head = head
            return b""
        self._empty = False
        if text.startswith((b"{", b"[")):
            self._document = bytearray()
            return text
        return head

    def _close(self) -> Iterator[Event]:
        if self._document is not None:
            document, self._document = bytes(self._document), bytearray()
            yield from self._chunk(document, is_document=True)
        for frame in self._frames.close():
            try:
                yield from self._frame(frame)
            except StreamBroken:
                if not self._finish:
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
            yield from self._chunk(data, is_error=frame.event == b"error")

    def _chunk(
        self, data: bytes, *, is_error: bool = False, is_document: bool = False
    ) -> Iterator[Event]:
        try:
            chunk = json.loads(data.decode("utf-8"))
        except (ValueError, RecursionError):
            if is_error:
                raise self._reported(data.decode("utf-8", "replace")) from None
            raise self._broken("sent a part of the reply that is not JSON") from None
        if is_error or _is_report(chunk, is_document):
            raise self._reported(chunk)
        try:
            yield from self._parts(chunk, default_finish="stop" if is_document else "")
        except Malformed as error:
            raise self._broken(f"sent a part of the reply that makes no sense ({error})") from None
        if self._finish in _FAILED:
            raise self._broken(f"gave up on the reply ({self._finish})")

    def _parts(self, chunk: object, default_finish: str) -> Iterator[Event]:
        if reading := self._progress.read(chunk):
            yield reading
        self._usage = usage_of(chunk) or self._usage
        choice = choice_of(chunk, first=not (self._numbers.taken or self._calls.any))
        if choice is None:
            return
        for kind, text in text_of(choice.delta):
            self._refused = self._refused or (kind == "refusal" and bool(text))
            yield from self._prose.add("thinking" if kind == "thinking" else "text", text)
        if fragments := fragments_of(choice.delta):
            yield from self._prose.stop()
            yield from self._calls.add(fragments)
        if self._finish not in _CUT | _FILTERED:
            self._finish = choice.finish or self._finish or default_finish

    def _end(self) -> Iterator[Event]:
        if not self._finish:
            state = "sent an empty answer" if self._empty else "ended before the reply was finished"
            raise self._broken(state)
        self._done = True
        reason: StopReason | None = None
        cut: str | None = None
        if self._finish in _CUT:
            reason, cut = "max_tokens", "the reply reached its token limit"
        elif self._finish in _FILTERED:
            reason, cut = "refusal", "the provider's filter cut the reply"
        elif self._refused:
            reason, cut = "refusal", "the model refused"
        runs = cut is None and self._calls.has_named()
        yield from self._prose.stop()
        yield from self._calls.finish(cut)
        yield self._usage
        yield Status(state="finished", stop_reason=reason or ("tool_use" if runs else "end_turn"))

    def _reported(self, report: object) -> ModelError:
        inner = report.get("error") if isinstance(report, dict) else None
        return failures.from_report(self._provider, inner or report, Redactor())

    def _broken(self, what: str) -> StreamBroken:
        return StreamBroken(f"{self._provider} {what}.", provider=self._provider)


def _is_report(chunk: object, is_document: bool) -> bool:
    if not isinstance(chunk, dict):
        return False
    if chunk.get("error") or chunk.get("object") == "error":
        return True
    return is_document and "choices" not in chunk
