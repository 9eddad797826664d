"""A model behind HTTP: a scheme's requests and replies over a transport.

Owns the order of things in one request: check, send, read, ask again. Knows no wire format and no
HTTP library.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

from pydantic import JsonValue

from agentls.core.errors import BadRequest, ModelError, StreamBroken
from agentls.core.events import Event, Ping, Status, Usage
from agentls.core.media import check_media
from agentls.core.messages import Message
from agentls.core.requests import ModelInfo, ModelRequest
from agentls.llm.http.transport import Transport
from agentls.llm.options import fitted
from agentls.llm.prices import priced
from agentls.llm.signatures import Proof, is_rejected, proofs, without_proofs, without_thinking
from agentls.llm.wire.content import with_media_inline
from agentls.llm.wire.scheme import Scheme


class HttpModel:
    """Implements `core.ports.Model`."""

    def __init__(
        self,
        info: ModelInfo,
        scheme: Scheme,
        transport: Transport,
        *,
        max_tokens: int | None = None,
    ) -> None:
        """The transport is closed with the model. `max_tokens` is for requests without a limit."""
        self._info = info
        self._scheme = scheme
        self._transport = transport
        self._max_tokens = max_tokens
        self._told_notes: set[str] = set()
        self._rejected: frozenset[Proof] = frozenset()

    @property
    def info(self) -> ModelInfo:
        """Name, provider, capabilities."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """Stream one reply; see `core.ports.Model`.

        As long as nothing of the reply itself was given, a failure that may pass is tried again by
        the transport's policy, announced by `Status(state="retrying")`. Afterwards it is a broken
        stream and left to the agent: what was said must not be said twice. Options the model does
        not take are left out, announced once by `Status(state="warning")`. Thinking that the
        provider rejects is left out in one more try, and from then on.

        Raises:
            ModelError: classified, without secrets.
        """
        for item in request.items:
            if isinstance(item, Message):
                check_media(self._info, item.content)
        if request.max_tokens is None and self._max_tokens is not None:
            request = request.model_copy(update={"max_tokens": self._max_tokens})
        request = request.model_copy(update={"items": with_media_inline(request.items)})
        if self._rejected:
            request = without_proofs(request, self._rejected)
        request, notes = fitted(request, self._info, self._scheme.options)
        for note in notes:
            if note not in self._told_notes:
                self._told_notes.add(note)
                yield Status(state="warning", message=note)
        try:
            async with contextlib.aclosing(self._patiently(request)) as events:
                async for event in events:
                    yield event
            return
        except BadRequest as error:
            if not is_rejected(error, request, self._info.provider):
                raise
            message = f"{error.message} Asking again without its earlier thinking."
        yield Status(state="retrying", message=message)
        rejected = proofs(request)
        # Not to think is an option, too, and this model may not take it.
        request, _ = fitted(without_thinking(request), self._info, self._scheme.options)
        async with contextlib.aclosing(self._patiently(request)) as events:
            async for event in events:
                if _is_of_reply(event):  # without it, it worked
                    self._rejected |= rejected
                yield event

    async def _patiently(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """One reply, asked for again as long as nothing of it was shown."""
        body = self._scheme.build(request)
        retry = self._transport.retry
        attempt = 1
        while True:
            shown = False
            try:
                async with contextlib.aclosing(self._attempt(body)) as events:
                    async for event in events:
                        shown = shown or _is_of_reply(event)
                        yield self._priced(event)
                return
            except ModelError as error:
                failure = self._told(error, shown)
                delay_s = None if shown else retry.delay_s(attempt, failure)
                if delay_s is None:
                    if failure is error:
                        raise
                    raise failure from error
            attempt += 1
            yield Status(
                state="retrying",
                message=f"{failure.message} Trying again in {delay_s:.1f} s "
                f"(attempt {attempt} of {retry.attempts}).",
            )
            await retry.sleep(delay_s)

    def _priced(self, event: Event) -> Event:
        return priced(event, self._info.capabilities.price) if isinstance(event, Usage) else event

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def _attempt(self, body: dict[str, JsonValue]) -> AsyncGenerator[Event, None]:
        reader = self._scheme.reader(body)
        broken: StreamBroken | None = None
        async with self._transport.post_stream(self._scheme.path, body) as chunks:
            try:
                while (chunk := await _next(chunks, reader.patience_s)) is not None:
                    for event in reader.feed(chunk):
                        yield event
            except StreamBroken as error:
                broken = error
            try:
                # After a break too: the reader knows whether the reply was whole by then, and
                # which blocks are open.
                for event in reader.close():
                    yield event
            except StreamBroken:
                if broken is None:
                    raise
                raise broken from broken.__cause__

    def _told(self, error: ModelError, shown: bool) -> ModelError:
        """The error without keys, and as a broken stream when a part of the reply was shown."""
        error.message = self._transport.redact(error.message)
        error.args = (error.message,)
        return StreamBroken.of(error) if shown and error.retryable else error


def _is_of_reply(event: Event) -> bool:
    """Whether an event is part of the reply: signs of life and news of the reading are not."""
    if isinstance(event, Status):
        return event.state == "finished"
    return not isinstance(event, Ping)


async def _next(chunks: AsyncIterator[bytes], patience_s: float | None) -> bytes | None:
    """The next bytes; None at the end, or when they are not worth waiting for any longer."""
    if patience_s is None:
        return await anext(chunks, None)
    try:
        async with asyncio.timeout(patience_s):
            return await anext(chunks, None)
    except TimeoutError:
        return None
