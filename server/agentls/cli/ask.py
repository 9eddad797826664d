"""`agentls ask`: one question, one answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentls.cli.failures import classified, exit_code
from agentls.cli.start import Environment, open_app
from agentls.cli.surface import Surface, make_surface
from agentls.cli.turns import run_turn
from agentls.core.errors import AgentlsError, NoModel, UsageError

if TYPE_CHECKING:
    from agentls.agent.session import Session
    from agentls.app import App
    from agentls.core.ports import Passage

MAX_QUESTION_BYTES = 4 * 1024 * 1024


def ask(environment: Environment) -> int:
    """Answer the question of the command line and give the exit code.

    Raises:
        UsageError: there is no question, or no workspace.
        OutputLost: nobody reads the answer any more.
    """
    # Before there is a loop: Ctrl-C while a person types the question ends at once.
    question = question_from(environment.arguments.question)
    return environment.interrupts.run(_ask(environment, question))


async def _ask(environment: Environment, question: str) -> int:
    async with open_app(environment) as app:
        return await answer(app, app.new_session(), question, make_surface(environment))


async def answer(app: App, session: Session, question: str, surface: Surface) -> int:
    """Run one turn of a session and give its exit code.

    Without any model, the passages that fit are shown instead, and said to be just that.

    Raises:
        OutputLost: nobody reads the answer any more.
        asyncio.CancelledError: cancelled; the turn has been shown as cancelled.
    """
    try:
        await app.model()
    except Exception as error:  # a defect ends this turn and not a conversation
        failure = classified(error)
        surface.view.failed(failure, await _instead(app, question, failure))
        return exit_code(failure)
    outcome = await run_turn(session, question, view=surface.view, approver=surface.approver)
    return outcome.exit_code


async def _instead(app: App, question: str, error: AgentlsError) -> Sequence[Passage]:
    if not isinstance(error, NoModel):
        return ()
    try:
        return await app.passages(question)
    except AgentlsError:
        return ()


def question_from(words: Sequence[str]) -> str:
    """The question: words joined, `-` replaced by standard input, or all of a piped input.

    Raises:
        UsageError: nothing is asked, or far too much.
    """
    piped = not words and not sys.stdin.isatty()
    said = " ".join(word for word in words if word != "-")
    read = _standard_input() if piped or "-" in words else ""
    parts = [part for part in (_clean(said), _clean(read)) if part]
    if not parts:
        raise UsageError("There is no question.", hint='Ask one: agentls ask "what does this do?"')
    return "\n\n".join(parts)


def _standard_input() -> str:
    text = sys.stdin.read(MAX_QUESTION_BYTES + 1)
    if len(text) > MAX_QUESTION_BYTES:
        raise UsageError(
            "The question is larger than 4 MiB.",
            hint="Name files instead; the model can read them.",
        )
    return text


def _clean(text: str) -> str:
    # Bytes of the command line that are no text arrive as lone surrogates, which no JSON can hold.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()
