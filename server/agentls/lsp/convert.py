"""The agent's events as ACP's session updates. Pure: events in, JSON out.

One `Updates` serves one turn, because a delta does not say what kind of block it belongs to. Text
of people and models is passed on as it is; showing it safely is the client's task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_never

from pydantic import JsonValue

from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockKind,
    BlockStart,
    BlockStop,
    Event,
    Failure,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import FileDiff, Item, Message, Reasoning, ToolCall, ToolResult
from agentls.core.requests import ToolKind
from agentls.core.wording import call_title

Update = dict[str, JsonValue]

_CHUNKS = {"text": "agent_message_chunk", "thinking": "agent_thought_chunk"}


class Updates:
    """Turns the events of one turn into updates, in order."""

    def __init__(self, root: Path, kind_of: Callable[[str], ToolKind], context_window: int) -> None:
        """`root` makes paths absolute; `context_window` is in tokens, 0 when it is unknown."""
        self._root = root
        self._kind_of = kind_of
        self.context_window = context_window
        self.cost_usd: float | None = None  # of the session so far
        self._blocks: dict[int, BlockKind] = {}
        self._streamed: set[int] = set()
        self._open_calls: dict[str, None] = {}

    def of(self, event: Event) -> list[Update]:
        """The updates an event causes: mostly one, or none."""
        match event:
            case BlockStart():
                return self._started(event)
            case BlockDelta():
                return self._grown(event)
            case BlockStop():
                return self._stopped(event)
            case Usage():
                return [self._used(event)]
            case Ping() | Status() | Failure() | BlockAbort():
                return []
            case _:
                assert_never(event)

    def closing(self) -> list[Update]:
        """What to send when a turn ends early: no call is left looking as if it still ran."""
        calls, self._open_calls = list(self._open_calls), {}
        return [_call_update(call_id, status="failed") for call_id in calls]

    def _started(self, event: BlockStart) -> list[Update]:
        self._blocks[event.index] = event.block
        if event.block == "tool_result":
            return [_call_update(event.call_id, status="in_progress")]
        return []

    def _grown(self, event: BlockDelta) -> list[Update]:
        kind = _CHUNKS.get(self._blocks.get(event.index, ""))
        if kind is None or not event.text:
            return []
        self._streamed.add(event.index)
        return [chunk(kind, event.text)]

    def _stopped(self, event: BlockStop) -> list[Update]:
        item: Item = event.item
        match item:
            case ToolCall():
                self._open_calls[item.call_id] = None
                return [{"sessionUpdate": "tool_call", **self.call(item), "status": "pending"}]
            case ToolResult():
                self._open_calls.pop(item.call_id, None)
                return [self._result(item)]
            case Message() | Reasoning():
                # A provider that does not stream its text has it here only.
                if event.index in self._streamed or not item.text:
                    return []
                kind = "thinking" if isinstance(item, Reasoning) else "text"
                return [chunk(_CHUNKS[kind], item.text)]
            case _:
                assert_never(item)

    def call(self, call: ToolCall) -> Update:
        """ACP's description of a call, without its status."""
        raw: JsonValue = dict(call.arguments) if call.invalid is None else call.invalid
        return {
            "toolCallId": call.call_id,
            "name": call.name,
            "title": call_title(call),
            "kind": self._kind_of(call.name),
            "rawInput": raw,
            "locations": self._locations(call),
        }

    def diffs(self, diffs: Sequence[FileDiff]) -> list[JsonValue]:
        """ACP's diff contents; paths are absolute."""
        return [
            {
                "type": "diff",
                "path": self._absolute(diff.path),
                "oldText": diff.old_text,
                "newText": diff.new_text,
            }
            for diff in diffs
        ]

    def _result(self, result: ToolResult) -> Update:
        status = "failed" if result.is_error else "completed"
        content = [text_content(result.content), *self.diffs(result.diff)]
        return {**_call_update(result.call_id, status=status), "content": content}

    def _used(self, usage: Usage) -> Update:
        used = usage.input_tokens + usage.output_tokens
        update: Update = {
            "sessionUpdate": "usage_update",
            "used": used,
            "size": self.context_window,
        }
        if self.cost_usd is not None:
            update["cost"] = {"amount": self.cost_usd, "currency": "USD"}
        return update

    def _locations(self, call: ToolCall) -> list[JsonValue]:
        path = call.arguments.get("path")
        if not isinstance(path, str) or not path:
            return []
        location: dict[str, JsonValue] = {"path": self._absolute(path)}
        line_no = call.arguments.get("start_line")
        if type(line_no) is int and line_no > 0:
            location["line"] = line_no
        return [location]

    def _absolute(self, path: str) -> str:
        """As the client would write it; only a name, whoever opens it has to check it."""
        return str(self._root / path)


def chunk(kind: str, text: str) -> Update:
    """A piece of the answer or of the thinking."""
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def text_content(text: str) -> Update:
    """ACP's tool call content of plain text."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def mode_update(mode: str) -> Update:
    """The mode of a session changed."""
    return {"sessionUpdate": "current_mode_update", "currentModeId": mode}


def _call_update(call_id: str, *, status: str) -> Update:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": status}
