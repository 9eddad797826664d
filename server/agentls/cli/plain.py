"""Views for programs: events as JSON lines, and the bare answer for pipes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import JsonValue

from agentls.cli.failures import as_event, as_json, report
from agentls.cli.outcomes import Outcome
from agentls.cli.streams import Output, legible
from agentls.core.errors import AgentlsError
from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event, Status
from agentls.core.messages import ToolCall, ToolResult
from agentls.core.ports import Passage
from agentls.core.text import visible
from agentls.core.wording import call_title, result_note


def write_json(stdout: Output, value: object) -> None:
    """Write one object as one line.

    Everything but ASCII is escaped: no terminal, code page or line splitter can break it.
    """
    stdout.line(json.dumps(value, ensure_ascii=True, separators=(",", ":")))


class JsonView:
    """Every event as one line, then the result as one line."""

    def __init__(self, stdout: Output, stderr: Output) -> None:
        """Events go to `stdout`; what is not part of the stream to `stderr`."""
        self._stdout = stdout
        self._stderr = stderr

    def begin(self) -> None:
        """Nothing is drawn here."""

    async def take(self, event: Event) -> None:
        """Write an event."""
        write_json(self._stdout, event.model_dump(mode="json"))

    def warn(self, message: str) -> None:
        """Write a notice beside the stream."""
        self._stderr.line(f"agentls: {visible(message)}")

    def pause(self) -> None:
        """Nothing is drawn here."""

    def close(self, outcome: Outcome) -> None:
        """Write the failure, if there was one, and the result."""
        if outcome.error is not None:
            write_json(self._stdout, as_event(outcome.error).model_dump(mode="json"))
        write_json(self._stdout, result_line(outcome))

    def failed(self, error: AgentlsError, passages: Sequence[Passage] = ()) -> None:
        """Write the result of a turn that could not begin."""
        write_json(self._stdout, as_event(error).model_dump(mode="json"))
        line = result_line(Outcome.failed(error))
        if passages:
            line["passages"] = [_passage(passage) for passage in passages]
        write_json(self._stdout, line)


def result_line(outcome: Outcome) -> dict[str, JsonValue]:
    """The last line of `--json`."""
    line: dict[str, JsonValue] = {
        "type": "result",
        "stopReason": _stop_reason(outcome),
        "text": outcome.text,
        "usage": outcome.usage.model_dump(mode="json", exclude={"type"}),
        "sessionId": outcome.session_id,
        "files": list(outcome.files),
    }
    if outcome.notice and not outcome.cancelled:
        line["notice"] = outcome.notice
    if outcome.error is not None:
        line["error"] = as_json(outcome.error)
    return line


def _stop_reason(outcome: Outcome) -> str:
    if outcome.cancelled:
        return "cancelled"
    if outcome.error is not None or outcome.result is None:
        return "error"
    return outcome.result.stop_reason


def _passage(passage: Passage) -> dict[str, JsonValue]:
    return {
        "path": passage.path,
        "startLine": passage.start_line_no,
        "endLine": passage.end_line_no,
        "score": passage.score,
        "text": passage.text,
    }


class PlainView:
    """The answer as it comes on stdout; tool calls and notices as lines on stderr."""

    def __init__(self, stdout: Output, stderr: Output) -> None:
        """Nothing is open yet."""
        self._answer = _Answer(stdout)
        self._stderr = stderr
        self._text_block: int | None = None
        self._calls: dict[str, ToolCall] = {}

    def begin(self) -> None:
        """Nothing is drawn here."""

    async def take(self, event: Event) -> None:
        """Show an event."""
        match event:
            case BlockStart(block="text", index=index):
                self._answer.begin()
                self._text_block = index
            case BlockDelta(index=index, text=text) if index == self._text_block:
                self._answer.write(text)
            case BlockStop(item=ToolCall() as call):
                self._calls[call.call_id] = call
            case BlockStop(item=ToolResult() as result):
                self._tool(result)
            case Status(state="retrying" | "switching" | "warning", message=message) if message:
                self.warn(message)
            case Status(state="requesting", message=message) if message:
                self._answer.end()
                self._stderr.line(f"{self._stderr.mark('·', '-')} {visible(message)}")
            case _:
                pass

    def warn(self, message: str) -> None:
        """Write a notice beside the answer."""
        self._answer.end()
        self._stderr.line(f"agentls: {visible(message)}")

    def pause(self) -> None:
        """Leave the answer's open line, so that a prompt starts on its own."""
        self._answer.end()

    def close(self, outcome: Outcome) -> None:
        """End the answer's last line and say what went wrong, if something did."""
        self._answer.end()
        if outcome.error is not None:
            report(outcome.error, self._stderr)
        elif outcome.notice:
            self._stderr.line(f"agentls: {visible(outcome.notice)}")

    def failed(self, error: AgentlsError, passages: Sequence[Passage] = ()) -> None:
        """Say why nothing can answer, and show what was found in the workspace instead."""
        if passages:
            self._answer.write(passages_text(passages))
            self._answer.end()
        report(error, self._stderr)

    def _tool(self, result: ToolResult) -> None:
        self._answer.end()
        call = self._calls.pop(result.call_id, None)
        title = call_title(call) if call else visible(result.name)
        ok, failed = self._stderr.mark("✓", "done:"), self._stderr.mark("✗", "failed:")
        note = result_note(result)
        line = f"{failed if result.is_error else ok} {title}"
        self._stderr.line(f"{line} - {note}" if note else line)


class _Answer:
    """Text on its way to a pipe, each delta at once, an empty line between two blocks."""

    def __init__(self, stdout: Output) -> None:
        self._stdout = stdout
        self._held = ""
        self._line_open = False
        self._begun = False

    def begin(self) -> None:
        self.end()
        if self._begun:
            self._stdout.line()

    def write(self, text: str) -> None:
        text = self._held + text
        # A CR may be the first half of a line end: only the next delta tells.
        self._held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix(self._held)
        if text:
            self._stdout.write(legible(text))
            self._stdout.flush()
            self._begun = True
            self._line_open = not text.endswith("\n")

    def end(self) -> None:
        self._held = ""
        if self._line_open:
            self._stdout.line()
            self._line_open = False


def passages_text(passages: Sequence[Passage]) -> str:
    """Passages as the stand-in for an answer, and said to be just that."""
    parts = ["No model answered. These are the passages of the workspace that fit best:"]
    for passage in passages:
        place = f"{passage.path}:{passage.start_line_no}-{passage.end_line_no}"
        lines = visible(passage.text.replace("\r\n", "\n")).rstrip("\n").split("\n")
        parts.append("\n".join([visible(place), *(f"    {line}".rstrip() for line in lines)]))
    return "\n\n".join(parts) + "\n"
