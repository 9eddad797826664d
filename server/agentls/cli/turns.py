"""Runs one turn for a surface: events to a view, failures and signals to an outcome.

Knows sessions and views; not how anything looks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from agentls.agent.session import Session, TurnResult
from agentls.cli.failures import DONE, FAILED, INTERRUPTED, exit_code, internal_error
from agentls.cli.streams import OutputLost
from agentls.core.errors import AgentlsError
from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event, Usage
from agentls.core.messages import TextBlock, ToolResult
from agentls.core.ports import Approver, Passage


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended, with what was seen of it even when it broke.

    Exactly one of `result`, `error` and `cancelled` tells the end. `files` are the paths that were
    changed, in order.
    """

    session_id: str
    text: str
    usage: Usage
    files: tuple[str, ...]
    result: TurnResult | None = None
    error: AgentlsError | None = None
    cancelled: bool = False

    @classmethod
    def failed(cls, error: AgentlsError) -> Outcome:
        """A turn that failed before there was a session."""
        return cls(session_id="", text="", usage=Usage(), files=(), error=error)

    @property
    def notice(self) -> str:
        """Why a turn that did not fail ended without a complete answer; empty when it has one."""
        if self.cancelled:
            return "cancelled"
        if self.result is None:
            return ""
        reasons = {
            "max_tokens": "The answer was cut off at the token limit.",
            "refusal": "The model refused to answer.",
            "max_turn_requests": "The turn used all of its model calls.",
        }
        return self.result.notice or reasons.get(self.result.stop_reason, "")

    @property
    def exit_code(self) -> int:
        """0 only for a complete answer."""
        if self.cancelled:
            return INTERRUPTED
        if self.error is not None:
            return exit_code(self.error)
        complete = self.result is not None and self.result.stop_reason == "end_turn"
        return DONE if complete else FAILED


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
        self._waiting = deque()
        try:
            yield
        finally:
            while self._waiting:
                await self._view.take(self._waiting.popleft())
            self._waiting = None


class Record:
    """What is worth keeping of the events of a turn.

    `text` is the answer as the session defines it: what the model said after its last tool call.
    """

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.text = ""
        self.usage = Usage()
        self.files: dict[str, None] = {}
        self._text_blocks: set[int] = set()

    def take(self, event: Event) -> None:
        """Note one event."""
        match event:
            case BlockStart(block="text", index=index):
                self._text_blocks.add(index)
            case BlockDelta(index=index, text=text) if index in self._text_blocks:
                self.text += text
            case BlockStop(item=ToolResult() as result):
                self.text = ""
                if not result.is_error:
                    self.files.update(dict.fromkeys(diff.path for diff in result.diff))
            case Usage():
                self.usage = self.usage + event
            case _:
                pass


async def run_turn(session: Session, question: str, *, view: View, approver: Approver) -> Outcome:
    """Run a turn to its end, whatever the end is, and show it.

    A view that cannot be seen any more cancels the turn.

    Raises:
        OutputLost: the view cannot be seen any more.
        asyncio.CancelledError: the caller was cancelled; the turn has been shown as cancelled.
    """
    record = Record()
    broken: OutputLost | None = None

    async def sink(event: Event) -> None:
        nonlocal broken
        record.take(event)
        if broken is None:
            try:
                await view.take(event)
            except OutputLost as error:
                broken = error
                turn.cancel()

    def show() -> Outcome:
        if broken is not None:
            raise broken
        outcome = _outcome(session, record, turn)
        view.close(outcome)
        return outcome

    view.begin()
    turn = asyncio.create_task(
        session.prompt([TextBlock(text=question)], sink=sink, approver=approver)
    )
    try:
        await asyncio.wait({turn})
    except asyncio.CancelledError:
        turn.cancel()
        await asyncio.wait({turn})
        show()
        raise
    return show()


def _outcome(session: Session, record: Record, turn: asyncio.Task[TurnResult]) -> Outcome:
    seen = Outcome(session.session_id, record.text, record.usage, tuple(record.files))
    if turn.cancelled():
        return replace(seen, cancelled=True)
    error = turn.exception()
    if isinstance(error, AgentlsError):
        return replace(seen, error=error)
    if isinstance(error, Exception):
        return replace(seen, error=internal_error(error))
    return replace(seen, result=turn.result())
