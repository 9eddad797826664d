"""Lines typed at a terminal, through prompt_toolkit: the conversation's prompt, and answers.

Knows nothing of sessions or models.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_state_path
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output as TerminalOutput
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.shortcuts import CompleteStyle, PromptSession

from agentls.cli.streams import Output


class Prompt:
    """The prompt of the conversation: history, several lines, completion of slash commands."""

    def __init__(
        self,
        history: History,
        commands: Mapping[str, Iterable[str]],
        *,
        input: Input | None = None,
        output: TerminalOutput | None = None,
    ) -> None:
        """`commands` maps `/name` to the words its argument can be.

        `input` and `output` are the terminal's unless given.
        """
        self._session: PromptSession[str] = PromptSession(
            history=history,
            completer=_SlashCommands(commands),
            complete_style=CompleteStyle.READLINE_LIKE,
            multiline=True,
            key_bindings=_bindings(),
            prompt_continuation="... ",
            input=input,
            output=output,
        )

    async def read(self, prompt: str) -> str | None:
        """One message, perhaps of several lines; None when Ctrl-C discarded it.

        Raises:
            EOFError: Ctrl-D on an empty line, or the terminal is gone.
        """
        try:
            # A SIGINT from outside is the program's own business; the key is read in raw mode.
            return await self._session.prompt_async(prompt, handle_sigint=False)
        except KeyboardInterrupt:
            # It must not leave as what it is: asyncio would end the loop over it.
            return None


async def read_answer(question: str, *, output: Output) -> str:
    """One line, where nothing typed before the question was shown counts.

    Raises:
        EOFError: Ctrl-D, or the terminal is gone.
        KeyboardInterrupt: Ctrl-C; to be caught in the same task.
    """
    session: PromptSession[str] = PromptSession(output=create_output(stdout=output.stream))
    clear_typeahead(session.input)
    _drop_pending_input()
    return await session.prompt_async(question, handle_sigint=False)


def history_file() -> Path:
    """Where what was typed in conversations is kept."""
    return user_state_path("agentls", appauthor=False) / "history"


def open_history(path: Path) -> History:
    """The history kept in a file that only its owner can read; in memory where that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return _Kept(path)


class _Kept(FileHistory):
    """A history file whose loss does not end a conversation."""

    def store_string(self, string: str) -> None:
        """Append, unless the disk is full or the file has gone."""
        with contextlib.suppress(OSError):
            super().store_string(string)


@contextmanager
def silent_typing() -> Iterator[None]:
    """Do not echo what is typed while an answer is drawn; it stays for the next prompt."""
    if sys.platform == "win32" or not sys.stdin.isatty():
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    quiet = termios.tcgetattr(descriptor)
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _drop_pending_input() -> None:
    if sys.platform == "win32" or not sys.stdin.isatty():
        return
    import termios

    with contextlib.suppress(termios.error):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def send(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    def new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings


class _SlashCommands(Completer):
    """Completes `/name` and its argument."""

    def __init__(self, commands: Mapping[str, Iterable[str]]) -> None:
        self._commands = {name: tuple(words) for name, words in commands.items()}

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - base class
    ) -> Iterable[Completion]:
        typed = document.text_before_cursor
        if not typed.startswith("/") or "\n" in typed:
            return
        name, space, argument = typed.partition(" ")
        candidates = self._commands.get(name, ()) if space else self._commands
        word = argument if space else name
        for candidate in candidates:
            if candidate.startswith(word):
                yield Completion(candidate, start_position=-len(word))
