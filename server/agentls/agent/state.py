"""The state a graph's nodes read and return."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentls.core.messages import Item, ToolCall, ToolResult

END = "__end__"


@dataclass(slots=True)
class State:
    """What nodes hand to one another.

    `messages` is the part of the history that is sent, plus what this turn adds. `context` is the
    side channel between nodes; the built-in nodes keep `iteration`, `stop_reason`, `cut_calls` and
    `failing` there for themselves, and `last_tool_count`, `last_tool_names`, `has_final_response`
    and `tool_results` for others. `next_node` names the node to run next; None or `END` stops the
    graph.
    """

    messages: list[Item] = field(default_factory=list)
    context: dict[str, object] = field(default_factory=dict)
    next_node: str | None = None


def unanswered(items: Iterable[Item]) -> list[ToolCall]:
    """Calls that have no result yet, in order."""
    calls: dict[str, ToolCall] = {}
    for item in items:
        match item:
            case ToolCall():
                calls[item.call_id] = item
            case ToolResult():
                calls.pop(item.call_id, None)
            case _:
                pass
    return list(calls.values())


def answer_all(items: Sequence[Item], reason: str) -> list[Item]:
    """Give every call without a result a synthetic one, so that the history can be sent again."""
    missing = unanswered(items)
    return [*items, *(failed(call, reason) for call in missing)]


def failed(call: ToolCall, reason: str) -> ToolResult:
    """An error result for a call."""
    return ToolResult(
        call_id=call.call_id,
        name=call.name,
        content=f"Error: {reason}",
        summary=f"{call.name}: failed",
        is_error=True,
    )
