"""Turns over the scripted model: whole histories and whole event lists."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

from agentls.agent.turn import Limits
from agentls.core.errors import (
    BadRequest,
    ModelError,
    NoResponse,
    RepeatedFailure,
    SessionBusy,
    SettingsError,
    StreamBroken,
)
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Status,
    Usage,
)
from agentls.core.messages import ImageBlock, Message, TextBlock, ToolCall, ToolResult
from agentls.core.ports import Access, Decision, Mode
from agentls.core.requests import ToolDefinition
from support.agent_fakes import FakeTool, FixedPolicy, SteppedModel, rig, scripted_rig
from support.history import problems

ECHO_CALL: dict[str, JsonValue] = {"name": "echo", "arguments": {"say": "hi"}}


async def echo(arguments: dict[str, JsonValue]) -> str:
    return str(arguments.get("say"))


async def fail(arguments: dict[str, JsonValue]) -> str:
    raise ValueError("no luck")


def text(index: int, *deltas: str) -> list[Event]:
    """A complete text block."""
    whole = Message.of("assistant", "".join(deltas))
    return [
        BlockStart(index=index, block="text"),
        *(BlockDelta(index=index, text=delta) for delta in deltas),
        BlockStop(index=index, item=whole),
    ]


FINISHED = Status(state="finished", stop_reason="end_turn")


async def test_a_call_and_an_answer(tmp_path: Path) -> None:
    model = scripted_rig(tmp_path, {"tool_calls": [ECHO_CALL]}, {"text": "done", "expect": "^hi$"})
    one = rig(model, FakeTool("echo", echo))
    assert await one.ask("go") == "done"
    call = ToolCall(call_id="call_1_0", name="echo", arguments={"say": "hi"})
    result = ToolResult(call_id="call_1_0", name="echo", content="hi")
    assert one.history() == [
        Message.of("user", "go"),
        call,
        result,
        Message.of("assistant", "done"),
    ]
    assert one.events == [
        BlockStart(index=0, block="tool_call", call_id="call_1_0", name="echo"),
        BlockDelta(index=0, text='{"say": "hi"}'),
        BlockStop(index=0, item=call),
        Usage(input_tokens=8, output_tokens=13),
        Status(state="finished", stop_reason="tool_use"),
        BlockStart(index=1, block="tool_result", call_id="call_1_0", name="echo"),
        BlockStop(index=1, item=result),
        *text(2, "done"),
        Usage(input_tokens=14, output_tokens=4),
        FINISHED,
    ]
    assert one.session.usage == Usage(input_tokens=22, output_tokens=17)


async def test_calls_of_one_step_run_at_once_with_results_in_call_order(tmp_path: Path) -> None:
    second_ran = asyncio.Event()

    async def act(arguments: dict[str, JsonValue]) -> str:
        # The first call can only end after the second one has run.
        if arguments["n"] == 1:
            await second_ran.wait()
        second_ran.set()
        return f"result {arguments['n']}"

    calls: list[JsonValue] = [{"name": "act", "arguments": {"n": n}} for n in (1, 2)]
    model = scripted_rig(tmp_path, {"tool_calls": calls}, {"text": "ok"})
    one = rig(model, FakeTool("act", act))
    await one.ask("go")
    results = [i.content for i in one.history() if isinstance(i, ToolResult)]
    assert results == ["result 1", "result 2"]
    assert problems(one.history()) == []


async def test_calls_that_change_something_run_one_at_a_time_in_order(tmp_path: Path) -> None:
    log: list[str] = []

    async def act(arguments: dict[str, JsonValue]) -> str:
        log.append(f"start {arguments['n']}")
        await asyncio.sleep(0)
        log.append(f"end {arguments['n']}")
        return ""

    calls: list[JsonValue] = [{"name": "act", "arguments": {"n": n}} for n in range(4)]
    model = scripted_rig(tmp_path, {"tool_calls": calls}, {"text": "ok"})
    await rig(model, FakeTool("act", act, mutates=True)).ask("go")
    assert log == [f"{what} {n}" for n in range(4) for what in ("start", "end")]


async def test_concurrency_is_bounded(tmp_path: Path) -> None:
    running = 0
    most = 0

    async def act(arguments: dict[str, JsonValue]) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return ""

    calls: list[JsonValue] = [{"name": "act", "arguments": {"n": n}} for n in range(7)]
    model = scripted_rig(tmp_path, {"tool_calls": calls}, {"text": "ok"})
    await rig(model, FakeTool("act", act), limits=Limits(tool_concurrency=3)).ask("go")
    assert most == 3


@pytest.mark.parametrize("field", ["max_iterations", "tool_concurrency", "tool_attempts"])
def test_a_limit_of_zero_is_refused(field: str) -> None:
    with pytest.raises(SettingsError, match=f"{field} must be at least 1"):
        Limits(**{field: 0})  # type: ignore[arg-type]  # a field that is a number


@pytest.mark.parametrize(
    ("call", "content"),
    [
        (
            {"name": "nope", "arguments": {}},
            "Error: there is no tool named 'nope'. Tools: echo, fail.",
        ),
        ({"name": "fail", "arguments": {}}, "Error: fail broke: ValueError: no luck"),
        (
            {"name": "echo", "arguments": '{"say": '},
            "Error: the arguments are not a JSON object: '{\"say\": '. Call again with valid JSON.",
        ),
        (
            {"name": "echo", "arguments": "[1]"},
            "Error: the arguments are not a JSON object: '[1]'. Call again with valid JSON.",
        ),
    ],
)
async def test_a_failing_call_becomes_error_text(
    tmp_path: Path, call: dict[str, JsonValue], content: str
) -> None:
    model = scripted_rig(tmp_path, {"tool_calls": [call]}, {"text": "sorry"})
    one = rig(model, FakeTool("echo", echo), FakeTool("fail", fail))
    assert await one.ask("go") == "sorry"
    result = next(i for i in one.history() if isinstance(i, ToolResult))
    assert (result.content, result.is_error) == (content, True)
    assert problems(one.history()) == []


async def test_calls_without_a_name_are_dropped(tmp_path: Path) -> None:
    model = scripted_rig(tmp_path, {"text": "hi", "tool_calls": [{"name": " ", "arguments": {}}]})
    one = rig(model)
    assert await one.ask("go") == "hi"
    assert one.history() == [Message.of("user", "go"), Message.of("assistant", "hi")]


async def test_neither_text_nor_call_is_an_error(tmp_path: Path) -> None:
    one = rig(scripted_rig(tmp_path, {"text": " "}, {"text": "now"}))
    with pytest.raises(NoResponse, match="Model returned no response"):
        await one.ask("go")
    assert await one.ask("again") == "now"
    assert problems(one.history()) == []


async def test_the_iteration_limit_counts_per_turn_and_the_turn_can_go_on(tmp_path: Path) -> None:
    replies: list[dict[str, JsonValue]] = [{"tool_calls": [ECHO_CALL]}] * 5
    model = scripted_rig(tmp_path, *replies, {"text": "finally"})
    one = rig(model, FakeTool("echo", echo), limits=Limits(max_iterations=2))
    results = [
        await one.session.prompt([TextBlock(text=t)], sink=one.sink, approver=one.approver)
        for t in ("a", "b", "c")
    ]
    assert [r.stop_reason for r in results] == [
        "max_turn_requests",
        "max_turn_requests",
        "end_turn",
    ]
    assert results[0].notice.startswith("Max iterations 2 reached")
    assert results[2].text == "finally"
    assert problems(one.history()) == []


async def test_the_third_identical_failure_in_a_row_stops_the_loop(tmp_path: Path) -> None:
    call: JsonValue = {"name": "fail", "arguments": {"a": 1}}
    replies: list[dict[str, JsonValue]] = [{"tool_calls": [call]}] * 4
    model = scripted_rig(tmp_path, *replies)
    one = rig(model, FakeTool("fail", fail))
    with pytest.raises(RepeatedFailure) as caught:
        await one.ask("go")
    assert "fail failed 3 times in a row" in str(caught.value)
    assert "no luck" in str(caught.value)
    assert sum(isinstance(i, ToolResult) for i in one.history()) == 3
    assert problems(one.history()) == []


async def test_a_success_between_failures_resets_the_count(tmp_path: Path) -> None:
    bad: JsonValue = {"name": "fail", "arguments": {}}
    replies: list[dict[str, JsonValue]] = [
        {"tool_calls": [c]} for c in (bad, bad, ECHO_CALL, bad, bad)
    ]
    model = scripted_rig(tmp_path, *replies, {"text": "ok"})
    assert await rig(model, FakeTool("fail", fail), FakeTool("echo", echo)).ask("go") == "ok"


@pytest.mark.parametrize("answer", ["reject_once", "reject_always", None])
async def test_a_call_that_is_not_approved_does_not_run(tmp_path: Path, answer: None) -> None:
    ran: list[str] = []

    async def act(arguments: dict[str, JsonValue]) -> str:
        ran.append("ran")
        return ""

    model = scripted_rig(
        tmp_path,
        {"tool_calls": [{"name": "act", "arguments": {"requires_approval": False}}]},
        {"text": "fine", "expect": "Error: "},
    )
    one = rig(model, FakeTool("act", act, mutates=True), verdict="ask", answer=answer)
    assert await one.ask("go") == "fine"
    assert (ran, one.approver.asked) == ([], ["act"])


async def test_a_denied_call_asks_nobody(tmp_path: Path) -> None:
    model = scripted_rig(
        tmp_path,
        {"tool_calls": [ECHO_CALL]},
        {"text": "fine", "expect": "^Error: not allowed: a fixed policy$"},
    )
    one = rig(model, FakeTool("echo", echo), verdict="deny")
    assert await one.ask("go") == "fine"
    assert one.approver.asked == []


async def test_only_idempotent_tools_are_tried_again_after_a_timeout(tmp_path: Path) -> None:
    tries = {"safe": 0, "unsafe": 0}

    def slow(name: str) -> FakeTool:
        async def act(arguments: dict[str, JsonValue]) -> str:
            tries[name] += 1
            await asyncio.Event().wait()
            return ""

        return FakeTool(name, act, idempotent=name == "safe", timeout_s=0.01)

    calls: list[JsonValue] = [{"name": name, "arguments": {}} for name in tries]
    model = scripted_rig(tmp_path, {"tool_calls": calls}, {"text": "ok"})
    one = rig(model, slow("safe"), slow("unsafe"))
    await one.ask("go")
    assert tries == {"safe": 3, "unsafe": 1}
    assert [i.content for i in one.history() if isinstance(i, ToolResult)] == [
        "Error: timed out after 0.01 s in each of 3 attempts.",
        "Error: timed out after 0.01 s.",
    ]


async def test_cancelling_mid_stream_keeps_the_text_and_drops_open_calls() -> None:
    call = ToolCall(call_id="c", name="echo")
    model = SteppedModel(
        [
            BlockStart(index=0, block="text"),
            BlockDelta(index=0, text="half a "),
            BlockStart(index=1, block="tool_call", call_id="c", name="echo"),
            BlockStop(index=1, item=call),
            asyncio.Event(),
        ]
    )
    one = rig(model, FakeTool("echo", echo))
    task = asyncio.create_task(one.ask("go"))
    await model.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert one.history() == [Message.of("user", "go"), Message.of("assistant", "half a ")]
    assert (model.closed, one.session.busy) == (1, False)


async def test_cancelling_tools_gives_every_call_one_result(tmp_path: Path) -> None:
    started = asyncio.Event()

    async def act(arguments: dict[str, JsonValue]) -> str:
        if arguments["n"] == 0:
            return "quick"
        started.set()
        await asyncio.Event().wait()
        return ""

    calls: list[JsonValue] = [{"name": "act", "arguments": {"n": n}} for n in (0, 1)]
    one = rig(scripted_rig(tmp_path, {"tool_calls": calls}), FakeTool("act", act))
    task = asyncio.create_task(one.ask("go"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    results = [i.content for i in one.history() if isinstance(i, ToolResult)]
    assert results == [
        "quick",
        "Error: cancelled by the user before it finished; its effects are unknown.",
    ]
    assert problems(one.history()) == []


async def test_one_turn_at_a_time() -> None:
    gate = asyncio.Event()
    model = SteppedModel([gate, *text(0, "first"), FINISHED])
    one = rig(model)
    first = asyncio.create_task(one.ask("a"))
    await model.reached.wait()
    with pytest.raises(SessionBusy):
        await one.ask("b")
    gate.set()
    assert await first == "first"


async def test_a_broken_stream_is_asked_again_and_nothing_is_said_twice() -> None:
    broken = StreamBroken("The connection broke.", provider="fake")
    start = BlockStart(index=0, block="text")
    model = SteppedModel(
        [start, BlockDelta(index=0, text="one two "), BlockAbort(index=0), broken],
        [start, BlockDelta(index=0, text="three "), BlockAbort(index=0), broken],
        [*text(0, "one ", "two three ", "four"), FINISHED],
    )
    one = rig(model)
    assert await one.ask("count") == "one two three four"
    shown = "".join(e.text for e in one.events if isinstance(e, BlockDelta))
    assert shown == "one two three four"
    assert one.history()[-1] == Message.of("assistant", "one two three four")
    assert [i.text for i in model.requests[1].items if isinstance(i, Message)] == [
        "count",
        "one two ",
        "The connection broke. Go on with your reply exactly where it stopped; repeat nothing.",
    ]
    assert [e.message for e in one.events if isinstance(e, Status) and e.state == "retrying"] == [
        "The connection broke. Asking again.",
        "The connection broke. Asking again.",
    ]


async def test_a_stream_that_ends_without_a_finish_is_broken_and_runs_nothing() -> None:
    ran: list[str] = []

    async def act(arguments: dict[str, JsonValue]) -> str:
        ran.append("ran")
        return ""

    call = ToolCall(call_id="c", name="act")
    unfinished: list[Event] = [
        BlockStart(index=0, block="tool_call", call_id="c", name="act"),
        BlockStop(index=0, item=call),
    ]
    one = rig(SteppedModel(*[unfinished] * 4), FakeTool("act", act))
    with pytest.raises(StreamBroken):
        await one.ask("go")
    assert (ran, one.history()) == ([], [Message.of("user", "go")])


async def test_a_reply_cut_inside_a_call_runs_nothing_and_the_model_is_told() -> None:
    cut: list[Event] = [
        BlockStart(index=0, block="tool_call", call_id="c", name="echo"),
        BlockAbort(index=0),
        Status(state="finished", stop_reason="max_tokens"),
    ]
    model = SteppedModel(cut, [*text(0, "shorter"), FINISHED])
    one = rig(model, FakeTool("echo", echo))
    assert await one.ask("go") == "shorter"
    told = model.requests[1].items[-1]
    assert isinstance(told, Message)
    assert "no tool was run" in told.text
    assert one.history() == [Message.of("user", "go"), Message.of("assistant", "shorter")]


async def test_reused_call_ids_are_made_unique(tmp_path: Path) -> None:
    call: JsonValue = {"id": "same", "name": "echo", "arguments": {"say": "x"}}
    replies: list[dict[str, JsonValue]] = [{"tool_calls": [call, call]}, {"tool_calls": [call]}]
    one = rig(scripted_rig(tmp_path, *replies, {"text": "ok"}), FakeTool("echo", echo))
    await one.ask("go")
    ids = [i.call_id for i in one.history() if isinstance(i, ToolCall)]
    assert ids == ["same", "same_1", "same_2"]
    assert problems(one.history()) == []


async def test_a_provider_failure_keeps_the_prompt(tmp_path: Path) -> None:
    one = rig(scripted_rig(tmp_path, {"error": "overloaded", "status": 529}, {"text": "back"}))
    with pytest.raises(ModelError) as caught:
        await one.ask("first")
    assert (caught.value.status, caught.value.retryable) == (529, True)
    assert await one.ask("second") == "back"
    assert [i.text for i in one.history() if isinstance(i, Message)] == ["first", "second", "back"]


async def test_an_image_for_a_model_without_eyes_is_refused_and_leaves_no_trace() -> None:
    one = rig(SteppedModel([*text(0, "hello"), FINISHED]))
    image = ImageBlock(mime_type="image/png", data="AAAA")
    with pytest.raises(BadRequest, match="cannot take images"):
        await one.session.prompt([image], sink=one.sink, approver=one.approver)
    assert one.history() == []
    assert await one.ask("hi") == "hello"


async def test_a_mode_set_during_a_turn_judges_its_next_call(tmp_path: Path) -> None:
    judged: list[str] = []

    class Judge(FixedPolicy):
        def decide(self, tool: ToolDefinition, access: Access, mode: Mode) -> Decision:
            judged.append(mode)
            return super().decide(tool, access, mode)

    async def act(_: dict[str, JsonValue]) -> str:
        one.session.set_mode("plan")
        return ""

    step: dict[str, JsonValue] = {"tool_calls": [{"name": "act"}]}
    one = rig(scripted_rig(tmp_path, step, step, {"text": "ok"}), FakeTool("act", act))
    one.session.agent = replace(one.session.agent, policy=Judge())
    await one.ask("go")
    assert judged == ["ask", "plan"]
    assert one.session.mode == "plan"
