from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import JsonValue

from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Failure,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import FileDiff, Message, Reasoning, ToolCall, ToolResult
from agentls.core.requests import ToolKind
from agentls.lsp.convert import Updates

ROOT = Path("/w")


def kind_of(name: str) -> ToolKind:
    return {"read_file": "read", "edit_file": "edit"}.get(name, "other")  # type: ignore[return-value]


def converted(*events: Event, context_window: int = 0) -> list[Any]:
    updates = Updates(ROOT, kind_of, context_window)
    return [update for event in events for update in updates.of(event)]


def test_text_and_thinking_become_chunks_once() -> None:
    assert converted(
        BlockStart(index=0, block="thinking"),
        BlockDelta(index=0, text="hm"),
        BlockStop(index=0, item=Reasoning(text="hm")),
        BlockStart(index=1, block="text"),
        BlockDelta(index=1, text="a"),
        BlockDelta(index=1, text=""),
        BlockDelta(index=1, text="b"),
        BlockStop(index=1, item=Message.of("assistant", "ab")),
    ) == [
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "a"}},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "b"}},
    ]


def test_text_that_was_not_streamed_is_sent_whole_at_its_end() -> None:
    assert converted(
        BlockStart(index=0, block="text"),
        BlockStop(index=0, item=Message.of("assistant", "all")),
        BlockStart(index=1, block="thinking"),
        BlockStop(index=1, item=Reasoning(encrypted="x")),
    ) == [{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "all"}}]


def test_a_call_from_its_end_to_its_result() -> None:
    call = ToolCall(call_id="c", name="edit_file", arguments={"path": "a/b.py", "old_text": "x"})
    diff = FileDiff(path="a/b.py", old_text="x", new_text="y")
    result = ToolResult(call_id="c", name="edit_file", content="edited", diff=(diff,))
    assert converted(
        BlockStart(index=0, block="tool_call", call_id="c", name="edit_file"),
        BlockDelta(index=0, text='{"path": '),
        BlockStop(index=0, item=call),
        BlockStart(index=1, block="tool_result", call_id="c", name="edit_file"),
        BlockStop(index=1, item=result),
    ) == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "name": "edit_file",
            "title": "edit_file a/b.py",
            "kind": "edit",
            "status": "pending",
            "rawInput": {"path": "a/b.py", "old_text": "x"},
            "locations": [{"path": "/w/a/b.py"}],
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "in_progress"},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "status": "completed",
            "content": [
                {"type": "content", "content": {"type": "text", "text": "edited"}},
                {"type": "diff", "path": "/w/a/b.py", "oldText": "x", "newText": "y"},
            ],
        },
    ]


def test_a_new_file_has_no_old_text_and_a_failure_is_said() -> None:
    diff = FileDiff(path="n", old_text=None, new_text="y")
    failed = ToolResult(call_id="c", name="x", content="Error: no", is_error=True, diff=(diff,))
    assert converted(BlockStop(index=1, item=failed)) == [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "status": "failed",
            "content": [
                {"type": "content", "content": {"type": "text", "text": "Error: no"}},
                {"type": "diff", "path": "/w/n", "oldText": None, "newText": "y"},
            ],
        }
    ]


def test_usage_is_what_the_last_request_holds_of_the_window() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cache_read_tokens=8)
    assert converted(usage, context_window=100) == [
        {"sessionUpdate": "usage_update", "used": 15, "size": 100}
    ]


def test_the_cost_of_the_session_is_told_where_it_is_known(tmp_path: Path) -> None:
    updates = Updates(tmp_path, lambda name: "other", 100)
    updates.cost_usd = 0.25
    assert updates.of(Usage(input_tokens=1)) == [
        {
            "sessionUpdate": "usage_update",
            "used": 1,
            "size": 100,
            "cost": {"amount": 0.25, "currency": "USD"},
        }
    ]


def test_what_has_no_shape_in_acp_is_left_out() -> None:
    assert (
        converted(
            Ping(),
            Status(state="warning", message="x"),
            Failure(message="x"),
            BlockStart(index=0, block="tool_call"),
            BlockAbort(index=0),
            BlockDelta(index=99, text="of no known block"),
        )
        == []
    )


def test_calls_that_never_ended_are_closed_once() -> None:
    updates = Updates(ROOT, kind_of, 0)
    for call_id in ("a", "b"):
        updates.of(BlockStop(index=0, item=ToolCall(call_id=call_id, name="x")))
    updates.of(BlockStop(index=1, item=ToolResult(call_id="a", name="x", content="")))
    assert updates.closing() == [
        {"sessionUpdate": "tool_call_update", "toolCallId": "b", "status": "failed"}
    ]
    assert updates.closing() == []


def test_where_a_call_looks() -> None:
    def locations(**arguments: JsonValue) -> JsonValue:
        updates = Updates(ROOT, kind_of, 0)
        return updates.call(ToolCall(call_id="c", name="x", arguments=arguments))["locations"]

    assert locations(path="a", start_line=7) == [{"path": "/w/a", "line": 7}]
    assert locations(path="/etc/x", start_line=0) == [{"path": "/etc/x"}]
    assert [locations(path=5), locations(path=""), locations()] == [[], [], []]


def test_arguments_that_are_no_object_are_shown_raw() -> None:
    call = ToolCall.parse("c", "read_file", '{"path": "a')
    update = Updates(ROOT, kind_of, 0).call(call)
    assert (update["rawInput"], update["title"]) == ('{"path": "a', 'read_file {"path": "a')
