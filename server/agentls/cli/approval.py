"""Asks a person on the terminal whether a call may run; `core.ports.Approver`.

Owns what is shown: the full call and the reason, nothing hidden, nothing that could pass for the
prompt itself. Knows nothing of rules.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from pydantic import JsonValue

from agentls.cli.diffs import STYLES, DiffLine, diff_lines
from agentls.core.messages import ToolCall
from agentls.core.ports import Answer, Prepared
from agentls.core.text import escaped_line, visible
from agentls.core.wording import path_note

if TYPE_CHECKING:
    from rich.console import Console

_QUESTION = "Allow? [y]es once, [a]lways, [n]o, never: "
_WORDS: dict[str, Answer] = {
    "y": "allow_once",
    "yes": "allow_once",
    "a": "allow_always",
    "always": "allow_always",
    "n": "reject_once",
    "no": "reject_once",
    "never": "reject_always",
}


class ApproveAll:
    """`--yes`: what would be asked is approved, once each time."""

    async def request(self, call: ToolCall, prepared: Prepared, reason: str) -> Answer | None:  # noqa: ARG002 - port
        """Approve."""
        return "allow_once"


class NobodyToAsk:
    """No terminal and no `--yes`: denied, and said how to allow it."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """`warn` shows a notice to whoever reads the log."""
        self._warn = warn

    async def request(self, call: ToolCall, prepared: Prepared, reason: str) -> Answer | None:  # noqa: ARG002 - port
        """Deny."""
        self._warn(
            f"not run: {prepared.title}. It needs approval and standard input is not a terminal. "
            "Approve everything with --yes, or allow this kind of call under [permissions] in "
            "your config.toml."
        )
        return None


class TerminalApprover:
    """Shows a call and waits for y, a, n or never. One call at a time, in the order they come."""

    def __init__(
        self,
        console: Console,
        *,
        read: Callable[[str], Awaitable[str]],
        interrupt: Callable[[], None],
        aside: Callable[[], AbstractAsyncContextManager[None]],
        seen_diffs: set[str],
    ) -> None:
        """`read` shows a question and gives a line; inside `aside` nobody else uses the terminal.

        `read` raises `EOFError` for Ctrl-D and `KeyboardInterrupt` for Ctrl-C, which calls
        `interrupt`. `seen_diffs` collects the ids of calls whose change was shown here.
        """
        self._console = console
        self._read = read
        self._interrupt = interrupt
        self._aside = aside
        self._lock = asyncio.Lock()
        self._seen_diffs = seen_diffs

    async def request(self, call: ToolCall, prepared: Prepared, reason: str) -> Answer | None:
        """Ask until one of the four answers is given; None when the person leaves the question."""
        async with self._lock, self._aside():
            self._show(call, prepared, reason)
            if prepared.diff:
                self._seen_diffs.add(call.call_id)
            try:
                while True:
                    line = await self._read(_QUESTION)
                    answer = _WORDS.get(line.strip().lower())
                    if answer is not None:
                        return answer
            except EOFError:
                return None
            except KeyboardInterrupt:
                self._interrupt()
                return None

    def _show(self, call: ToolCall, prepared: Prepared, reason: str) -> None:
        body = list(_body(call, prepared))
        paths = prepared.access.paths
        said = [prepared.title, *_strings(call.arguments), *(line.text for line in body)]
        said += [name for facts in paths for name in (facts.path, facts.target or "")]
        self._note(escaped_line(prepared.title), "bold")
        self._framed(body)
        for facts in paths:
            self._note(path_note(facts), "yellow")
        if any(visible(text) != text for text in said):
            self._note(
                "Careful: this holds invisible or terminal control characters, shown as \\u{…}.",
                "bold red",
            )
        self._note(f"Asked because: {escaped_line(reason)}" if reason else "", "dim")

    def _note(self, text: str, style: str) -> None:
        """Print prose; what wraps is set in, so that no content can start at the margin."""
        from rich.text import Text

        lines = Text(text, style).wrap(self._console, max(self._console.width - 4, 1))
        for number, line in enumerate(lines if text else ()):
            self._console.print(Text("    " if number else "").append_text(line), soft_wrap=True)

    def _framed(self, body: Sequence[DiffLine]) -> None:
        """Print lines exactly, behind a bar; the rest of a long one too."""
        from rich.cells import chop_cells
        from rich.text import Text

        bar = "│ " if self._console.encoding.startswith("utf") else "| "
        width = max(self._console.width - len(bar), 1)
        for line in body:
            for piece in chop_cells(visible(line.text).replace("\t", "    "), width) or [""]:
                text = Text.assemble((bar, "dim"), (piece, STYLES[line.kind]))
                self._console.print(text, soft_wrap=True)


def _body(call: ToolCall, prepared: Prepared) -> Iterator[DiffLine]:
    """The call in full: the command, the change, or the arguments."""
    if prepared.access.command is not None:
        for line in prepared.access.command.split("\n"):
            yield DiffLine("context", line)
    elif prepared.diff:
        for diff in prepared.diff:
            yield from diff_lines(diff)
    else:
        arguments = json.dumps(call.arguments, ensure_ascii=False, indent=2)
        for line in f"{call.name} {arguments}".split("\n"):
            yield DiffLine("context", line)


def _strings(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for inner in value:
                yield from _strings(inner)
        case dict():
            for key, inner in value.items():
                yield key
                yield from _strings(inner)
        case _:
            pass
