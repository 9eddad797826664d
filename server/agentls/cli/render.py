"""The view for a terminal: markdown as it grows, thinking folded, one line a tool call.

What is complete is printed once and never touched again; what grows is redrawn in place at the
bottom, a few times a second. Knows events; not where they come from.
"""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from typing import IO, TYPE_CHECKING, cast

from rich.console import Console, Group, RenderableType
from rich.text import Text

from agentls.cli.diffs import STYLES, diff_lines
from agentls.cli.failures import report
from agentls.cli.outcomes import Outcome
from agentls.cli.plain import passages_text
from agentls.cli.region import TICK_S, Region
from agentls.cli.streams import Output
from agentls.core.errors import AgentlsError
from agentls.core.events import BlockAbort, BlockDelta, BlockStart, BlockStop, Event, Status
from agentls.core.messages import FileDiff, ToolCall, ToolResult
from agentls.core.ports import Passage
from agentls.core.text import visible
from agentls.core.wording import call_title, result_note

if TYPE_CHECKING:
    from agentls.cli.markdown import GrowingText

_MAX_DIFF_LINES = 60


def terminal_console(output: Output) -> Console:
    """A console that prints text as it is: no markup, no guesses at what to highlight."""
    return Console(
        file=cast("IO[str]", output), markup=False, highlight=False, emoji=False, soft_wrap=False
    )


class TerminalView:
    """Draws one turn. Make one per turn."""

    def __init__(
        self, stdout: Output, stderr: Output, *, seen_diffs: Container[str] = frozenset()
    ) -> None:
        """`seen_diffs` are calls whose change a person approved and need not be shown again."""
        self._stdout = stdout
        self._stderr = stderr
        self._console = terminal_console(stdout)
        self._seen_diffs = seen_diffs
        self._region = Region(self._console, self._draw)
        self._text: tuple[int, GrowingText] | None = None
        self._thinking: tuple[int, str] | None = None
        self._calls: dict[str, ToolCall] = {}
        self._running: dict[str, tuple[str, float]] = {}
        self._waiting_since: float | None = time.monotonic()
        self._waiting_for = "waiting for the model"
        self._last = ""

    # --- View -----------------------------------------------------------------------------

    def begin(self) -> None:
        """Start drawing that the model is waited for."""
        self._region.start()

    async def take(self, event: Event) -> None:
        """Show an event."""
        self._region.start()
        match event:
            case BlockStart(block=block, index=index):
                self._begin(block, index, event)
            case BlockDelta(index=index, text=text):
                self._grow(index, text)
            case BlockStop(item=ToolCall() as call):
                self._calls[call.call_id] = call
            case BlockStop(item=ToolResult() as result):
                self._finish_tool(result)
            case BlockStop(index=index) | BlockAbort(index=index):
                self._end(index)
            case Status(state="requesting", message=message) if message:
                self._line(Text(f"{self._mark('·', '-')} {visible(message)}", "dim"))
            case Status(state="retrying" | "switching" | "warning", message=message) if message:
                self._line(Text(f"{self._mark('!', '!')} {visible(message)}", "yellow"))
            case _:
                pass

    def warn(self, message: str) -> None:
        """Show a notice beside the answer."""
        self.pause()
        self._stderr.line(f"agentls: {visible(message)}")

    def close(self, outcome: Outcome) -> None:
        """Print what is still growing and how the turn ended."""
        for index in self._open_blocks():
            self._end(index)
        self._running.clear()
        self.pause()
        if outcome.error is not None:
            report(outcome.error, self._stderr)
        elif outcome.notice:
            self._stderr.line(f"agentls: {visible(outcome.notice)}")

    def failed(self, error: AgentlsError, passages: Sequence[Passage] = ()) -> None:
        """Say why nothing can answer, and show what was found in the workspace instead."""
        self.pause()
        if passages:
            self._stdout.line(passages_text(passages))
        report(error, self._stderr)

    def pause(self) -> None:
        """Stop drawing, so that others can use the terminal; the next event resumes."""
        self._region.stop()

    # --- blocks ---------------------------------------------------------------------------

    def _begin(self, block: str, index: int, event: BlockStart) -> None:
        self._waiting_since = None
        if block in ("text", "thinking"):
            # Some providers end a block only when the next has begun: what it said comes first.
            for open_index in self._open_blocks():
                self._end(open_index)
            self._waiting_since = None
        if block == "text":
            from agentls.cli.markdown import GrowingText

            self._text = (index, GrowingText())
        elif block == "thinking":
            self._thinking = (index, "")
            self._wait("thinking")
        elif block == "tool_result":
            call = self._calls.get(event.call_id)
            title = call_title(call) if call else visible(event.name)
            self._running[event.call_id] = (title, time.monotonic())
        else:
            self._wait(f"writing a call of {visible(event.name)}")

    def _grow(self, index: int, text: str) -> None:
        if self._text is not None and self._text[0] == index:
            self._text[1].feed(text)
        elif self._thinking is not None and self._thinking[0] == index:
            self._thinking = (index, self._thinking[1] + text)

    def _end(self, index: int) -> None:
        if self._text is not None and self._text[0] == index:
            self._print_markdown(self._text[1].take_all())
            self._text = None
        elif self._thinking is not None and self._thinking[0] == index:
            thought = visible(" ".join(self._thinking[1].split()))
            self._thinking = None
            if thought:
                self._line(Text(f"{self._mark('∴', 'thought:')} {thought}", "dim italic"))
        self._wait("waiting for the model")

    def _finish_tool(self, result: ToolResult) -> None:
        call = self._calls.pop(result.call_id, None)
        title, _ = self._running.pop(result.call_id, (visible(result.name), 0.0))
        if call is not None:
            title = call_title(call)
        line = (
            Text(f"{self._mark('✗', 'failed:')} ", "red")
            if result.is_error
            else Text(f"{self._mark('✓', 'done:')} ", "green")
        )
        line.append(title, "bold")
        if note := result_note(result):
            line.append(f" - {note}", "red" if result.is_error else "dim")
        self._line(line)
        if result.call_id not in self._seen_diffs:
            for diff in result.diff:
                self._print_diff(diff)
        self._wait("waiting for the model")

    def _open_blocks(self) -> list[int]:
        return [block[0] for block in (self._thinking, self._text) if block is not None]

    # --- drawing --------------------------------------------------------------------------

    def _print_markdown(self, blocks: Sequence[str]) -> None:
        from agentls.cli.markdown import drawn, joined

        for source in blocks:
            if lines := drawn(self._console, source):
                if self._last:
                    self._console.print()
                self._console.print(joined(lines), end="")
                self._last = "text"

    def _line(self, text: Text) -> None:
        if self._last == "text":
            self._console.print()
        text.truncate(max(self._console.width, 1), overflow="ellipsis")
        self._console.print(text, no_wrap=True)
        self._last = "line"

    def _print_diff(self, diff: FileDiff) -> None:
        for number, line in enumerate(diff_lines(diff)):
            if number == _MAX_DIFF_LINES:
                self._line(Text("  (more)", "dim"))
                return
            self._line(Text(f"  {visible(line.text)}".expandtabs(4), STYLES[line.kind]))

    def _wait(self, what: str) -> None:
        self._waiting_for = what
        self._waiting_since = time.monotonic()

    def _draw(self) -> RenderableType:
        """Print what is complete and give what goes below it."""
        if self._text is not None:
            self._print_markdown(self._text[1].take_complete())
        return self._growing()

    def _growing(self) -> RenderableType:
        """What is drawn at the bottom, never taller than the screen."""
        if self._text is not None:
            return self._growing_text(self._text[1])
        now = time.monotonic()
        if self._running:
            return Group(
                *(self._status(title, now - since) for title, since in self._running.values())
            )
        if self._waiting_since is None:
            return Text("")
        what = self._waiting_for
        if self._thinking is not None:
            what = f"thinking: {visible(' '.join(self._thinking[1][-400:].split()))[-60:]}"
        return self._status(what, now - self._waiting_since)

    def _growing_text(self, text: GrowingText) -> RenderableType:
        from agentls.cli.markdown import drawn, joined

        width, height = self._console.size
        lines = drawn(self._console, text.tail(2 * width * height))
        return joined(lines[-max(height - 2, 1) :])

    def _status(self, what: str, seconds: float) -> Text:
        frames = self._mark("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "-\\|/")
        frame = frames[int(time.monotonic() / TICK_S) % len(frames)]
        text = Text(f"{frame} {what}", "dim")
        if seconds >= 1:
            text.append(f" ({int(seconds)} s)")
        text.truncate(max(self._console.width - 1, 1), overflow="ellipsis")
        return text

    def _mark(self, symbol: str, ascii_form: str) -> str:
        return self._stdout.mark(symbol, ascii_form)
