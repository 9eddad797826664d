from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agentls.cli.approval import ApproveAll
from agentls.cli.outcomes import Outcome, Record
from agentls.cli.streams import OutputLost
from agentls.cli.turns import run_turn
from agentls.cli.views import HeldView
from agentls.core.errors import AgentlsError, Unreachable
from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event, Ping, Status, Usage
from agentls.core.messages import FileDiff, Message, ToolResult
from agentls.core.ports import Passage
from support.agent_fakes import Rig, SteppedModel, rig

SAID: list[Event] = [
    BlockStart(index=0, block="text"),
    BlockDelta(index=0, text="Hello"),
    BlockStop(index=0, item=Message.of("assistant", "Hello")),
    Usage(input_tokens=5, output_tokens=1),
    Status(state="finished", stop_reason="end_turn"),
]


class Watcher:
    """A view that keeps what it was shown, and can break."""

    def __init__(self, breaks_at: int | None = None) -> None:
        self.events: list[Event] = []
        self.ends: list[Outcome] = []
        self.pauses = 0
        self._breaks_at = breaks_at

    def begin(self) -> None:
        assert not self.events

    async def take(self, event: Event) -> None:
        if len(self.events) == self._breaks_at:
            raise OutputLost(BrokenPipeError())
        self.events.append(event)

    def warn(self, message: str) -> None:
        raise AssertionError(message)

    def pause(self) -> None:
        self.pauses += 1

    def close(self, outcome: Outcome) -> None:
        self.ends.append(outcome)

    def failed(self, error: AgentlsError, passages: Sequence[Passage] = ()) -> None:
        raise AssertionError(error)


def running(made: Rig, view: Watcher) -> asyncio.Task[Outcome]:
    return asyncio.create_task(run_turn(made.session, "Hi", view=view, approver=ApproveAll()))


async def test_a_turn_is_shown_event_by_event_and_ends_once() -> None:
    made, view = rig(SteppedModel(SAID)), Watcher()
    outcome = await running(made, view)
    assert view.events == SAID
    assert view.ends == [outcome]
    assert (outcome.exit_code, outcome.text, outcome.usage, outcome.session_id) == (
        0,
        "Hello",
        Usage(input_tokens=5, output_tokens=1),
        made.session.session_id,
    )


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (Unreachable("It is down."), "unreachable", "It is down."),
        (
            ZeroDivisionError("oh\nno"),
            "internal",
            "internal error: ZeroDivisionError: oh no, please report; run with -v for details",
        ),
    ],
)
async def test_a_failure_is_an_outcome_and_what_was_said_stays(
    raised: Exception, code: str, message: str
) -> None:
    made, view = rig(SteppedModel([*SAID[:2], raised])), Watcher()
    outcome = await running(made, view)
    assert outcome.error is not None
    assert (outcome.error.code, outcome.error.message) == (code, message)
    assert (outcome.exit_code, outcome.text, view.ends) == (1, "Hello", [outcome])


async def test_cancelling_shows_the_turn_as_cancelled_and_keeps_its_text() -> None:
    model = SteppedModel([*SAID[:2], asyncio.Event()])
    made, view = rig(model), Watcher()
    task = running(made, view)
    await model.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(end.cancelled, end.text, end.exit_code) for end in view.ends] == [(True, "Hello", 130)]
    assert made.history()[-1] == Message.of("assistant", "Hello")
    assert not made.session.busy


async def test_a_view_nobody_reads_cancels_the_turn() -> None:
    model = SteppedModel([*SAID[:2], asyncio.Event()])
    made, view = rig(model), Watcher(breaks_at=1)
    with pytest.raises(OutputLost):
        await running(made, view)
    assert (view.ends, model.closed, made.session.busy) == ([], 1, False)


def test_the_record_keeps_the_answer_and_the_changed_files() -> None:
    def result(path: str, is_error: bool = False) -> BlockStop:
        diff = (FileDiff(path=path, old_text="", new_text="x"),)
        item = ToolResult(call_id="c", name="t", content="", diff=diff, is_error=is_error)
        return BlockStop(index=9, item=item)

    record = Record()
    events: list[Any] = [
        *SAID,
        result("b.py"),
        result("a.py"),
        result("b.py"),
        result("failed.py", is_error=True),
        BlockStart(index=10, block="thinking"),
        BlockDelta(index=10, text="hm"),
        BlockStart(index=11, block="text"),
        BlockDelta(index=11, text="Done."),
        Usage(input_tokens=1, output_tokens=2),
    ]
    for event in events:
        record.take(event)
    assert (record.text, list(record.files), record.usage) == (
        "Done.",
        ["b.py", "a.py"],
        Usage(input_tokens=6, output_tokens=3),
    )


async def test_events_wait_while_a_person_is_asked_and_keep_their_order() -> None:
    inner = Watcher()
    view = HeldView(inner)
    first, second, third = Ping(), Status(state="requesting"), Usage(input_tokens=1)
    await view.take(first)
    async with view.aside():
        await view.take(second)
        await view.take(third)
        assert (inner.events, inner.pauses) == ([first], 1)
    await view.take(first)
    assert inner.events == [first, second, third, first]
