"""Chooses how a turn is shown and who approves, by what the streams are."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from agentls.cli.approval import ApproveAll, NobodyToAsk
from agentls.cli.plain import JsonView, PlainView
from agentls.cli.start import Environment
from agentls.cli.streams import Output
from agentls.cli.views import HeldView, View
from agentls.core.ports import Approver


@dataclass(frozen=True, slots=True)
class Surface:
    """What one turn needs of the outside."""

    view: View
    approver: Approver


def make_surface(environment: Environment) -> Surface:
    """A view and an approver for one turn.

    A terminal gets drawing, a pipe the bare answer, `--json` events. A person is asked only where
    both the question can be seen and the answer can be typed.
    """
    seen_diffs: set[str] = set()
    view = HeldView(_view(environment, seen_diffs))
    if environment.arguments.yes:
        return Surface(view, ApproveAll())
    stage = find_stage(environment)
    if stage is None:
        return Surface(view, NobodyToAsk(view.warn))

    from agentls.cli.approval import TerminalApprover
    from agentls.cli.render import terminal_console

    async def read(question: str) -> str:
        # Loaded on the first question only: it takes a fifth of a second.
        from agentls.cli.prompts import read_answer

        return await read_answer(question, output=stage)

    approver = TerminalApprover(
        terminal_console(stage),
        read=read,
        interrupt=environment.interrupts.interrupt,
        aside=view.aside,
        seen_diffs=seen_diffs,
    )
    return Surface(view, approver)


def _draws(environment: Environment) -> bool:
    """Whether stdout is a terminal that can redraw, and no log runs through the drawing."""
    capable = os.environ.get("TERM", "") not in ("", "dumb", "unknown") or sys.platform == "win32"
    logged = environment.arguments.verbose > 0 and environment.stderr.isatty()
    return capable and not logged and environment.stdout.isatty()


def _view(environment: Environment, seen_diffs: set[str]) -> View:
    stdout, stderr = environment.stdout, environment.stderr
    if environment.arguments.json:
        return JsonView(stdout, stderr)
    if _draws(environment):
        from agentls.cli.render import TerminalView

        return TerminalView(stdout, stderr, seen_diffs=seen_diffs)
    return PlainView(stdout, stderr)


def find_stage(environment: Environment) -> Output | None:
    """Where a person who types on stdin sees what is asked; None when there is no one."""
    if not sys.stdin.isatty():
        return None
    shown = [environment.stdout, environment.stderr]
    if environment.arguments.json:
        shown = shown[1:]
    return next((output for output in shown if output.isatty()), None)
