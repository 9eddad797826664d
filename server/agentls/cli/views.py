"""What shows a turn; how it looks is `plain` and `render`."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from agentls.cli.outcomes import Outcome
from agentls.core.errors import AgentlsError
from agentls.core.events import Event
from agentls.core.ports import Passage


class View(Protocol):
    """Shows a turn. Every method raises `OutputLost` when nobody can see it any more."""

    def begin(self) -> None:
        """Show that something is going on; called once, first."""

    async def take(self, event: Event) -> None:
        """Show one event."""

    def warn(self, message: str) -> None:
        """Show something beside the answer."""

    def pause(self) -> None:
        """Stop drawing until the next event, so that a prompt can use the terminal."""

    def close(self, outcome: Outcome) -> None:
        """Show how the turn ended; called exactly once, last."""

    def failed(self, error: AgentlsError, passages: Sequence[Passage] = ()) -> None:
        """Show why a turn could not begin; instead of `close`."""


class HeldView:
    """A view that can be kept from the terminal while a person is asked something there.

    Events of calls that run meanwhile wait; none is lost or reordered.
    """

    def __init__(self, view: View) -> None:
        """Pass on to `view`."""
        self._view = view
        self._waiting: deque[Event] | None = None

    def begin(self) -> None:
        """Show that something is going on."""
        self._view.begin()

    async def take(self, event: Event) -> None:
        """Show an event, now or once the terminal is free."""
        if self._waiting is not None:
            self._waiting.append(event)
        else:
            await self._view.take(event)

    def warn(self, message: str) -> None:
        """Show something beside the answer."""
        self._view.warn(message)

    def pause(self) -> None:
        """Stop drawing until the next event."""
        self._view.pause()

    def close(self, outcome: Outcome) -> None:
        """Show how the turn ended."""
        self._view.close(outcome)

    def failed(self, error: AgentlsError, passages: Sequence[Passage] = ()) -> None:
        """Show why a turn could not begin."""
        self._view.failed(error, passages)

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """While inside, the terminal belongs to the caller."""
        self.pause()
        self._waiting = waiting = deque[Event]()
        try:
            yield
        finally:
            try:
                while waiting:
                    await self._view.take(waiting.popleft())
            finally:
                self._waiting = None
