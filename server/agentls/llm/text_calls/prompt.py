"""How tools are put to a model that calls them in its text.

Owns the wording and the rewriting of the history, both pure. The same tools give the same words,
and a longer history begins like the shorter one, so that prompt caches hit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from agentls.core.messages import Item, Message, TextBlock, ToolCall, ToolResult
from agentls.core.requests import ToolDefinition
from agentls.llm.wire.content import tool_name

_INTRODUCTION = """\
# Tools
To call a tool, write exactly this, the arguments as JSON:
<tool_call>{"name": "NAME", "arguments": {}}</tool_call>
Call several by writing several. After the calls stop: the user sends each result as \
<tool_result>; never write one yourself. When nothing is left to call, answer in plain text.
"""
_UNSAID = frozenset({"title", "$schema", "additionalProperties"})
"""Parts of a schema that tell a model nothing and cost it time."""
_MARK = re.compile(
    r"<(?=/?(?:\w+:)?(?:tool_(?:calls?|result|response|output|use)|tool>|TOOLCALL>|invoke\b"
    r"|function(?:_calls?|_result|=|>)))|<(?=/?\uff5c|\|/?\w+\|?>)|\[(?=/?TOOL_CALLS\])"
)
"""What could end a result, look like a call, or end the user's turn in a chat template."""


def with_tools(system: str, tools: Iterable[ToolDefinition]) -> str:
    """The system prompt with the form of calls and, ordered by name, the tools behind it."""
    lines = [_described(tool) for tool in sorted(tools, key=lambda tool: tool.name)]
    return "\n".join([f"{system}\n\n{_INTRODUCTION}".strip(), *lines])


def rewritten(items: Sequence[Item]) -> Iterator[Item]:
    """The history without calls and results: both are text, calls in the form they are written in.

    What one side says in a row is one message where a call or a result is part of it: many chat
    templates demand that the sides alternate.
    """
    last: Message | None = None
    joins = False
    for item in items:
        message, is_tool = _as_message(item)
        if message is None:
            if last is not None:
                yield last
            last, joins = None, False
            yield item
        elif last is not None and last.role == message.role and (joins or is_tool):
            last, joins = _joined(last, message), joins or is_tool
        else:
            if last is not None:
                yield last
            last, joins = message, is_tool
    if last is not None:
        yield last


def _as_message(item: Item) -> tuple[Message | None, bool]:
    """The item as a message, and whether it was none before; thinking stays what it is."""
    match item:
        case Message():
            return item, False
        case ToolCall():
            return Message.of("assistant", _call(item)), True
        case ToolResult():
            return Message.of("user", _result(item)), True
        case _:
            return None, False


def _joined(one: Message, other: Message) -> Message:
    first, second = one.content, other.content
    if first and second and isinstance(first[-1], TextBlock) and isinstance(second[0], TextBlock):
        text = TextBlock(text=f"{first[-1].text}\n{second[0].text}")
        first, second = (*first[:-1], text), second[1:]
    return one.model_copy(update={"content": (*first, *second)})


def _call(call: ToolCall) -> str:
    """A call as the model should have written it; what it wrote as arguments, if they were bad."""
    arguments: JsonValue = {**call.arguments} if call.invalid is None else call.invalid
    written = _json({"name": call.name, "arguments": arguments}).replace("</", "<\\/")
    return f"<tool_call>{written}</tool_call>"


def _result(result: ToolResult) -> str:
    """A result as data: nothing in it can end it, or look like a call."""
    content = _MARK.sub(lambda found: "&lt;" if found[0] == "<" else "&#91;", result.content)
    return f'<tool_result name="{tool_name(result.name)}">\n{content}\n</tool_result>'


def _described(tool: ToolDefinition) -> str:
    return _json(
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": _short(tool.parameters),
        }
    )


def _short(schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A schema without what a model can do without. Names of properties are not keywords."""
    kept: dict[str, JsonValue] = {}
    for key, value in schema.items():
        if key in _UNSAID or (key == "default" and value is None):
            continue
        if key in ("properties", "$defs") and isinstance(value, dict):
            kept[key] = {name: _shorter(each) for name, each in value.items()}
        elif key in ("default", "enum", "const", "examples"):
            kept[key] = value
        else:
            kept[key] = _shorter(value)
    return kept


def _shorter(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {**_short(value)}
    return [_shorter(each) for each in value] if isinstance(value, list) else value


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
