"""Sends the updates of one turn: in order, text gathered to at most 60 messages a second.

The first piece of text goes out at once; what comes within the next sixtieth of a second waits for
its end. Anything else first flushes the text before it. A client that does not read makes whoever
`put`s wait, and with that the model's stream: nothing piles up here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

from agentls.lsp.convert import Update, chunk

_INTERVAL_S = 1 / 60
_TEXT_KINDS = ("agent_message_chunk", "agent_thought_chunk")


class UpdateStream:
    """The way of one turn's updates to the client."""

    def __init__(
        self,
        send: Callable[[Update], None],
        drain: Callable[[], Awaitable[None]],
        *,
        interval_s: float = _INTERVAL_S,
    ) -> None:
        """`send` queues an update at once; `drain` waits while too much is queued."""
        self._send = send
        self._drain = drain
        self._interval_s = interval_s
        self._loop = asyncio.get_running_loop()
        self._kind = ""
        self._pieces: list[str] = []
        self._quiet_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def put(self, update: Update) -> None:
        """Send an update, or keep its text for a moment; nothing is sent after `close`."""
        if self._closed:
            return
        kind = str(update["sessionUpdate"])
        if kind in _TEXT_KINDS:
            content = cast("dict[str, str]", update["content"])
            self._gather(kind, content["text"])
        else:
            self.flush()
            self._send(update)
        await self._drain()

    def flush(self) -> None:
        """Send the text that waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pieces:
            text, self._pieces = "".join(self._pieces), []
            self._quiet_until = self._loop.time() + self._interval_s
            self._send(chunk(self._kind, text))

    def close(self) -> None:
        """Send the text that waits, and nothing more."""
        self.flush()
        self._closed = True

    def _gather(self, kind: str, text: str) -> None:
        if kind != self._kind:
            self.flush()
            self._kind = kind
        self._pieces.append(text)
        if self._timer is None:
            if self._loop.time() >= self._quiet_until:
                self.flush()
            else:
                self._timer = self._loop.call_at(self._quiet_until, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        self.flush()
