from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from agentls.app import App
from agentls.cli.approval import ApproveAll
from agentls.cli.ask import answer
from agentls.cli.outcomes import Outcome
from agentls.cli.surface import Surface
from agentls.core.errors import AgentlsError, NoModel, ToolError, Unauthorized
from agentls.core.events import Event
from agentls.core.ports import Passage
from support.agent_fakes import SteppedModel, rig

PASSAGE = Passage("a.py", 1, 2, "text", 1.0)


class FailingApp:
    """An app whose model cannot be had."""

    def __init__(self, error: Exception, passages_error: AgentlsError | None = None) -> None:
        self._error = error
        self._passages_error = passages_error
        self.asked: list[str] = []

    async def model(self) -> None:
        raise self._error

    async def passages(self, question: str) -> Sequence[Passage]:
        self.asked.append(question)
        if self._passages_error is not None:
            raise self._passages_error
        return [PASSAGE]


class Failures:
    """A view that expects nothing but a failure."""

    def __init__(self) -> None:
        self.said: list[tuple[str, list[Passage]]] = []

    def begin(self) -> None:
        raise AssertionError

    async def take(self, event: Event) -> None:
        raise AssertionError(event)

    def warn(self, message: str) -> None:
        raise AssertionError(message)

    def pause(self) -> None:
        raise AssertionError

    def close(self, outcome: Outcome) -> None:
        raise AssertionError(outcome)

    def failed(self, error: AgentlsError, passages: Sequence[Passage] = ()) -> None:
        self.said.append((error.code, list(passages)))


@pytest.mark.parametrize(
    ("app", "said", "asked"),
    [
        (FailingApp(NoModel("None.")), ("no_model", [PASSAGE]), ["Why?"]),
        (FailingApp(NoModel("None."), ToolError("No rg.")), ("no_model", []), ["Why?"]),
        (FailingApp(Unauthorized("Key.")), ("unauthorized", []), []),
        (FailingApp(ZeroDivisionError()), ("internal", []), []),
    ],
    ids=["no model", "no search either", "no key", "defect"],
)
async def test_a_turn_that_cannot_begin(
    app: FailingApp, said: tuple[str, list[Passage]], asked: list[str]
) -> None:
    view = Failures()
    session = rig(SteppedModel()).session
    code = await answer(cast("App", app), session, "Why?", Surface(view, ApproveAll()))
    assert (code, view.said, app.asked) == (1, [said], asked)
    assert session.history == []
