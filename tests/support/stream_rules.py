"""A strict judge of the events of one reply: what every layer above relies on."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence

from agentls.core.errors import ModelError
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockKind,
    BlockStart,
    BlockStop,
    Event,
    Status,
    Usage,
)
from agentls.core.messages import Message, Reasoning, ToolCall


def problems(events: Sequence[Event], error: ModelError | None) -> list[str]:
    """What is wrong with the events of one attempt and the error it ended with."""
    found = _of_blocks(events)
    calls = called(events)
    if len({call.call_id for call in calls}) < len(calls) or not all(c.call_id for c in calls):
        found.append("call ids are empty or not unique")
    ends = [event for event in events if isinstance(event, Status) and event.state == "finished"]
    if error is not None:
        if calls:
            found.append("a call is complete although the reply is not")
        if ends:
            found.append("finished, and then an error")
    elif len(ends) != 1 or events[-1] != ends[0]:
        found.append("a whole reply does not end with one finished")
    elif (ends[0].stop_reason == "tool_use") != bool(calls):
        found.append(f"{len(calls)} calls, but stop reason {ends[0].stop_reason}")
    elif sum(isinstance(event, Usage) for event in events) != 1:
        found.append("usage is not told exactly once")
    for event in events:
        if isinstance(event, BlockDelta):
            event.text.encode("utf-8")
        else:
            json.loads(event.model_dump_json().encode("utf-8"))
    return found


def _of_blocks(events: Iterable[Event]) -> list[str]:
    found: list[str] = []
    opened: dict[int, BlockStart] = {}
    pieces: dict[int, list[str]] = {}
    closed: set[int] = set()
    numbers = itertools.count()
    for event in events:
        match event:
            case BlockStart(index=index):
                if index != next(numbers):
                    found.append(f"block {index} is numbered out of order")
                opened[index], pieces[index] = event, []
            case BlockDelta(index=index) | BlockStop(index=index) | BlockAbort(index=index):
                if index not in opened or index in closed:
                    found.append(f"{event.type} for block {index}, which is not open")
                elif isinstance(event, BlockDelta):
                    pieces[index].append(event.text)
                else:
                    closed.add(index)
                    if isinstance(event, BlockStop):
                        found += _of_item(opened[index], "".join(pieces[index]), event)
            case _:
                pass
    return found + [f"block {index} never ends" for index in opened.keys() - closed]


def _of_item(start: BlockStart, said: str, stop: BlockStop) -> list[str]:
    kind: BlockKind
    match stop.item:
        case ToolCall() as call:
            kind, same = "tool_call", call.call_id == start.call_id and bool(call.name.strip())
        case Message(role="assistant") as message:
            kind, same = "text", message.text == said != ""
        case Reasoning() as reasoning:
            kind, same = "thinking", reasoning.text == said
        case _:
            return [f"block {stop.index} ends with a {stop.item.kind}"]
    if kind != start.block:
        return [f"block {stop.index} began as {start.block} and ends as {kind}"]
    return [] if same else [f"block {stop.index} holds something else than was streamed"]


def called(events: Iterable[Event]) -> list[ToolCall]:
    """The complete calls, in the order they ended."""
    items = (event.item for event in events if isinstance(event, BlockStop))
    return [item for item in items if isinstance(item, ToolCall)]


def numbered(events: Iterable[Event]) -> list[Event]:
    """The events with call ids by number, for formats that make them up."""
    names: dict[str, str] = {}
    shown: list[Event] = []
    for event in events:
        if isinstance(event, BlockStart) and event.block == "tool_call":
            name = names.setdefault(event.call_id, f"call-{len(names)}")
            event = event.model_copy(update={"call_id": name})
        elif isinstance(event, BlockStop) and isinstance(event.item, ToolCall):
            item = event.item.model_copy(update={"call_id": names[event.item.call_id]})
            event = event.model_copy(update={"item": item})
        shown.append(event)
    return shown
