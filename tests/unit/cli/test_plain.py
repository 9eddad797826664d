from __future__ import annotations

import io
import json
from typing import Any

import pytest

from agentls.agent.session import TurnResult
from agentls.cli.outcomes import Outcome
from agentls.cli.plain import JsonView, PlainView
from agentls.cli.streams import Output
from agentls.core.errors import NoModel, RateLimited
from agentls.core.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Status,
    StopReason,
    Usage,
)
from agentls.core.messages import FileDiff, Message, ToolCall, ToolResult
from agentls.core.ports import Passage

PASSAGE = Passage("a.py", 3, 4, "x = 1\ny = \x1b2\n", 1.5)


class Terminal:
    def __init__(self, encoding: str = "utf-8") -> None:
        self.raw_out, self.raw_err = io.BytesIO(), io.BytesIO()
        wrap = [
            io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace", newline="")
            for raw in (self.raw_out, self.raw_err)
        ]
        self.stdout, self.stderr = Output(wrap[0]), Output(wrap[1])

    @property
    def out(self) -> str:
        self.stdout.flush()
        return self.raw_out.getvalue().decode("utf-8")

    @property
    def err(self) -> str:
        self.stderr.flush()
        return self.raw_err.getvalue().decode("utf-8")


def outcome(
    text: str = "", stop_reason: StopReason = "end_turn", notice: str = "", **changes: Any
) -> Outcome:
    result = TurnResult(stop_reason, Usage(), text, notice, ())
    values: dict[str, Any] = {
        "session_id": "s1",
        "text": text,
        "usage": Usage(input_tokens=3, output_tokens=2),
        "files": (),
        "result": result,
        **changes,
    }
    return Outcome(**values)


CALL = ToolCall(call_id="c", name="edit_file", arguments={"path": "a.py"})
RESULT = ToolResult(
    call_id="c",
    name="edit_file",
    content="ok",
    summary="1 replaced",
    diff=(FileDiff(path="a.py", old_text="a", new_text="b"),),
)
TURN: list[Event] = [
    BlockStart(index=0, block="thinking"),
    BlockDelta(index=0, text="hm"),
    BlockStart(index=1, block="text"),
    BlockDelta(index=1, text="Let me "),
    BlockDelta(index=1, text="edit.\r"),
    BlockDelta(index=1, text="\nNow."),
    BlockStop(index=1, item=Message.of("assistant", "Let me edit.\r\nNow.")),
    BlockStart(index=2, block="tool_call", call_id="c", name="edit_file"),
    BlockStop(index=2, item=CALL),
    BlockStart(index=3, block="tool_result", call_id="c", name="edit_file"),
    BlockStop(index=3, item=RESULT),
    BlockStart(index=4, block="text"),
    BlockDelta(index=4, text="Done \x1b]0;x\x07é\n"),
    BlockStop(index=4, item=Message.of("assistant", "Done")),
]


async def test_a_pipe_gets_the_text_and_stderr_the_rest() -> None:
    terminal = Terminal()
    view = PlainView(terminal.stdout, terminal.stderr)
    for event in TURN:
        await view.take(event)
    view.close(outcome())
    assert terminal.out == "Let me edit.\r\nNow.\n\nDone \\u{1b}]0;x\\u{7}é\n"
    assert terminal.err == "✓ edit_file a.py - 1 replaced\n"


async def test_deltas_are_on_their_way_at_once() -> None:
    terminal = Terminal()
    view = PlainView(terminal.stdout, terminal.stderr)
    await view.take(BlockStart(index=0, block="text"))
    await view.take(BlockDelta(index=0, text="first"))
    assert terminal.raw_out.getvalue() == b"first"


async def test_an_old_encoding_loses_nothing() -> None:
    terminal = Terminal("ascii")
    view = PlainView(terminal.stdout, terminal.stderr)
    for event in TURN:
        await view.take(event)
    view.close(outcome())
    assert terminal.out == "Let me edit.\r\nNow.\n\nDone \\u{1b}]0;x\\u{7}\\xe9\n"
    assert terminal.err == "done: edit_file a.py - 1 replaced\n"


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        (outcome(), 0, ""),
        (
            outcome(stop_reason="max_tokens"),
            1,
            "agentls: The answer was cut off at the token limit.\n",
        ),
        (outcome(stop_reason="refusal"), 1, "agentls: The model refused to answer.\n"),
        (outcome(stop_reason="max_turn_requests", notice="Limit."), 1, "agentls: Limit.\n"),
        (outcome(result=None, cancelled=True), 130, "agentls: cancelled\n"),
        (
            outcome(result=None, error=RateLimited("Too many \x1b.", hint="Wait.", status=429)),
            1,
            "agentls: error: Too many \\u{1b}.\nWait.\n",
        ),
    ],
)
def test_every_end_is_said_and_has_its_exit_code(end: Outcome, code: int, said: str) -> None:
    terminal = Terminal()
    PlainView(terminal.stdout, terminal.stderr).close(end)
    assert (end.exit_code, terminal.out, terminal.err) == (code, "", said)


async def test_retries_and_warnings_go_to_stderr_on_lines_of_their_own() -> None:
    terminal = Terminal()
    view = PlainView(terminal.stdout, terminal.stderr)
    await view.take(BlockStart(index=0, block="text"))
    await view.take(BlockDelta(index=0, text="half"))
    await view.take(Status(state="retrying", message="It broke."))
    await view.take(BlockDelta(index=0, text=" and half"))
    await view.take(Status(state="requesting", message="Reading a.py:1-9"))
    await view.take(Status(state="requesting"))
    view.close(outcome())
    assert terminal.out == "half\n and half\n"
    assert terminal.err == "agentls: It broke.\n· Reading a.py:1-9\n"


def test_passages_are_said_to_be_just_that() -> None:
    terminal = Terminal()
    view = PlainView(terminal.stdout, terminal.stderr)
    view.failed(NoModel("No model was found.", hint="Get one."), [PASSAGE])
    assert terminal.out == (
        "No model answered. These are the passages of the workspace that fit best:\n\n"
        "a.py:3-4\n    x = 1\n    y = \\u{1b}2\n"
    )
    assert terminal.err == "agentls: error: No model was found.\nGet one.\n"


async def test_json_is_the_events_then_the_result_in_ascii_lines() -> None:
    terminal = Terminal("ascii")
    view = JsonView(terminal.stdout, terminal.stderr)
    events: list[Event] = [*TURN, BlockDelta(index=9, text="\u2028 \x85 é 漢 😀")]
    for event in events:
        await view.take(event)
    view.close(outcome("Done", files=("a.py",)))
    lines = [json.loads(line) for line in terminal.out.splitlines()]
    assert lines[:-1] == [event.model_dump(mode="json") for event in events]
    assert lines[-1] == {
        "type": "result",
        "stopReason": "end_turn",
        "text": "Done",
        "usage": {
            "input_tokens": 3,
            "output_tokens": 2,
            "cache_read_tokens": 0,
            "cache_creation_tokens": 0,
            "reasoning_tokens": 0,
            "cost_usd": None,
        },
        "sessionId": "s1",
        "files": ["a.py"],
    }
    assert terminal.err == ""


def test_json_of_a_failure() -> None:
    terminal = Terminal()
    error = RateLimited("Slow down.", hint="Wait.", provider="p", status=429)
    JsonView(terminal.stdout, terminal.stderr).close(outcome("half", result=None, error=error))
    event, result = [json.loads(line) for line in terminal.out.splitlines()]
    assert event == {
        "type": "error",
        "message": "Slow down. Wait.",
        "code": "rate_limited",
        "provider": "p",
        "status": 429,
        "retryable": True,
    }
    assert (result["stopReason"], result["text"]) == ("error", "half")
    assert result["error"] == {
        "code": "rate_limited",
        "message": "Slow down.",
        "hint": "Wait.",
        "provider": "p",
        "status": 429,
        "retryable": True,
    }


def test_json_without_a_model_holds_the_passages() -> None:
    terminal = Terminal()
    JsonView(terminal.stdout, terminal.stderr).failed(NoModel("None."), [PASSAGE])
    result = json.loads(terminal.out.splitlines()[-1])
    assert (result["stopReason"], result["sessionId"]) == ("error", "")
    assert result["passages"] == [
        {"path": "a.py", "startLine": 3, "endLine": 4, "score": 1.5, "text": PASSAGE.text}
    ]
