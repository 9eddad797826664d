"""`agentls` without a command: a conversation in the terminal, or over the lines of a pipe."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from agentls import __version__
from agentls.cli.ask import answer
from agentls.cli.failures import DONE, FAILED, report
from agentls.cli.lines import piped_lines
from agentls.cli.start import Environment, flags_of, open_app
from agentls.cli.streams import Output
from agentls.cli.surface import find_stage, make_surface
from agentls.core.errors import AgentlsError
from agentls.core.ports import Mode
from agentls.core.text import visible
from agentls.settings import load

if TYPE_CHECKING:
    from agentls.app import App

_LEAVE = ("exit", "quit", "/exit", "/quit")
_HELP = """\
/mode [plan|ask|edit]  show or change the mode: look, ask before changes, set out to make them
/model [NAME]          show or change the model; the conversation goes on
/new                   start a new conversation
/usage                 tokens used in this conversation
/clear                 clear the screen
/help                  this list
exit, /exit, Ctrl-D    leave; Ctrl-C cancels what is running or clears the line
Alt-Enter, or \\ at the end of a line, begins a new line"""
_COMMAND = re.compile(r"/[a-z]+")
_T = TypeVar("_T")


def repl(environment: Environment) -> int:
    """Talk until the person leaves (0) or the lines end (0, or 1 when a turn failed).

    Raises:
        UsageError: no workspace.
        OutputLost: nobody reads the answers any more.
    """
    return environment.interrupts.run(_repl(environment))


async def _repl(environment: Environment) -> int:
    async with open_app(environment) as app:
        conversation = Conversation(app, environment)
        stage = find_stage(environment)
        if stage is None:
            return await conversation.follow(piped_lines(sys.stdin.fileno()))
        environment.interrupts.spare_program()
        return await conversation.talk(stage)


class Conversation:
    """One session after another, and the slash commands between the questions."""

    def __init__(self, app: App, environment: Environment) -> None:
        """Starts with a new session."""
        self._app = app
        self._environment = environment
        self._session = app.new_session()
        self._out = environment.stdout
        self._commands: Mapping[str, Callable[[str], Awaitable[int]]] = {
            "/help": self._help,
            "/mode": self._mode,
            "/model": self._model,
            "/new": self._new,
            "/usage": self._usage,
            "/clear": self._clear,
        }

    async def follow(self, lines: AsyncIterator[str]) -> int:
        """Answer each line; 1 when one of them failed."""
        worst = DONE
        async for line in lines:
            text = line.strip()
            if text in _LEAVE:
                break
            worst = max(worst, await self._handle(text))
        return worst

    async def talk(self, stage: Output) -> int:
        """Read, answer, repeat. Failures are shown and the conversation goes on."""
        from prompt_toolkit.output.defaults import create_output

        from agentls.cli.prompts import Prompt, history_file, open_history, silent_typing

        words = {name: get_args(Mode) if name == "/mode" else () for name in self._commands}
        prompt = Prompt(
            open_history(history_file()), words, output=create_output(stdout=stage.stream)
        )
        await self._greet(stage)
        while True:
            try:
                text = await self._cancellable(prompt.read(f"{self._session.mode}> "))
            except EOFError:
                return DONE
            text = (text or "").strip()
            if text in _LEAVE:
                return DONE
            if text:
                with silent_typing():
                    await self._cancellable(self._handle(text))
                stage.line()

    async def _cancellable(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """Run something that Ctrl-C may end; None when it did."""
        task = asyncio.create_task(work)
        with self._environment.interrupts.aimed_at(task):
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                task.cancel()
                await asyncio.wait({task})
                raise
        return None if task.cancelled() else task.result()

    async def _greet(self, stage: Output) -> None:
        """One line, and what is wrong with the model if something is."""
        problem: AgentlsError | None = None
        try:
            model = await self._model_line()
        except AgentlsError as error:
            model, problem = "no model", error
        dot = stage.mark("·", "|")
        parts = (f"agentls {__version__}", model, f"mode {self._session.mode}", self._place())
        stage.line(f" {dot} ".join(visible(part) for part in parts))
        if problem is not None:
            report(problem, self._environment.stderr)

    def _place(self) -> str:
        """The workspace, short where it is below the home folder."""
        workspace = self._app.workspace
        with contextlib.suppress(ValueError, RuntimeError):
            return f"~/{workspace.relative_to(Path.home())}"
        return str(workspace)

    async def _handle(self, text: str) -> int:
        if not text:
            return DONE
        name, _, argument = text.partition(" ")
        if _COMMAND.fullmatch(name):
            command = self._commands.get(name)
            if command is None:
                self._environment.stderr.line(
                    f"agentls: there is no {visible(name)}; /help lists what there is"
                )
                return FAILED
            return await command(argument.strip())
        return await answer(self._app, self._session, text, make_surface(self._environment))

    # --- commands -------------------------------------------------------------------------

    async def _help(self, argument: str) -> int:  # noqa: ARG002 - one signature for all
        self._out.line(_HELP)
        return DONE

    async def _mode(self, argument: str) -> int:
        for mode in get_args(Mode):
            if argument == mode:
                self._session.mode = mode
        if argument not in ("", *get_args(Mode)):
            self._environment.stderr.line("agentls: a mode is plan, ask or edit")
            return FAILED
        self._out.line(f"mode {self._session.mode}")
        return DONE

    async def _model(self, argument: str) -> int:
        before = self._app.settings
        try:
            if argument:
                arguments = replace(self._environment.arguments, model=argument)
                loaded = load(self._app.workspace, flags=flags_of(arguments))
                await self._app.reconfigure(loaded.settings)
            self._out.line(visible(await self._model_line()))
        except AgentlsError as error:
            await self._app.reconfigure(before)
            report(error, self._environment.stderr)
            return FAILED
        return DONE

    async def _new(self, argument: str) -> int:  # noqa: ARG002 - one signature for all
        self._session = self._app.new_session(mode=self._session.mode)
        self._out.line("new conversation")
        return DONE

    async def _usage(self, argument: str) -> int:  # noqa: ARG002 - one signature for all
        usage = self._session.usage
        parts = [
            f"{usage.input_tokens} tokens in",
            f"{usage.output_tokens} out",
            f"{usage.cache_read_tokens} from cache" if usage.cache_read_tokens else "",
            f"{usage.reasoning_tokens} of them thinking" if usage.reasoning_tokens else "",
            f"${usage.cost_usd:.4f}" if usage.cost_usd is not None else "",
        ]
        self._out.line(", ".join(part for part in parts if part))
        return DONE

    async def _clear(self, argument: str) -> int:  # noqa: ARG002 - one signature for all
        if self._out.isatty():
            self._out.write("\x1b[H\x1b[2J\x1b[3J")
            self._out.flush()
        return DONE

    async def _model_line(self) -> str:
        info = (await self._app.model()).info
        reason = self._app.reason
        return f"{info.name} ({info.provider}{f': {reason}' if reason else ''})"
