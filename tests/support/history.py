"""A strict judge of histories: the union of what providers demand."""

from __future__ import annotations

import json
from collections.abc import Sequence

from agentls.core.messages import Item, Message, ToolCall, ToolResult


def problems(items: Sequence[Item]) -> list[str]:
    """What a provider would refuse about a history; empty when it is valid."""
    found: list[str] = []
    waiting: list[str] = []
    used: set[str] = set()
    for at, item in enumerate(items):
        match item:
            case ToolCall():
                if item.call_id in used or not item.call_id:
                    found.append(f"{at}: call id {item.call_id!r} is not unique")
                if not item.name.strip():
                    found.append(f"{at}: a call without a name")
                json.dumps(item.arguments, allow_nan=False)
                used.add(item.call_id)
                waiting.append(item.call_id)
            case ToolResult():
                if item.call_id not in waiting:
                    found.append(f"{at}: result for {item.call_id!r}, which is not open")
                else:
                    waiting.remove(item.call_id)
            case Message():
                if waiting:
                    found.append(f"{at}: a message while {waiting} have no result")
                    waiting = []
                if item.role == "assistant" and not item.text.strip():
                    found.append(f"{at}: an empty reply")
            case _:
                pass
    if waiting:
        found.append(f"end: {waiting} have no result")
    return found
