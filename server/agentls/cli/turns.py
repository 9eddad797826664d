"""Runs one turn for a surface: events to a view, failures and signals to an outcome.

Knows sessions and views; not how anything looks.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agentls.agent.session import Session, TurnResult
from agentls.cli.failures import classified
from agentls.cli.outcomes import Outcome, Record
from agentls.cli.streams import OutputLost
from agentls.cli.views import View
from agentls.core.events import Event
from agentls.core.messages import TextBlock
from agentls.core.ports import Approver


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
    if isinstance(error, Exception):
        return replace(seen, error=classified(error))
    return replace(seen, result=turn.result())
