"""How tools are put to a model that calls them only when its output is held to a schema.

Owns the wording, the schema and the rewriting of the history, all pure. The text before the newest
item is the same in every round, so that the engine's prompt cache hits; it is short, because a
local model reads some seventy tokens a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from agentls.core.messages import Item, Message, Reasoning, ToolCall, ToolResult
from agentls.core.requests import ToolDefinition

Schema = dict[str, JsonValue]

MAX_CALLS = 6
"""Calls after a user's message before the model has to answer."""

_INTRODUCTION = """\
Every reply is one JSON object: either one call
{tools}
or the answer, in whole sentences that name the file:
{{"answer": "..."}}"""
_EXAMPLES: tuple[tuple[str, str, Schema], ...] = (
    ("Where is the port set?", "grep", {"pattern": "port", "ignore_case": True}),
    ("Show main.py", "read_file", {"path": "main.py"}),
)
"""Without them a small model answers at once and makes it up."""
_LAST_EXAMPLE: tuple[str, Schema] = ("Thanks!", {"answer": "You are welcome."})
_AFTER_RESULT = (
    '\n\nIf this answers the question, reply with {"answer": "..."} in whole sentences. '
    "Else make a different call."
)
_AFTER_ERROR = "\n\nThe call failed. Make a different call."
_SAME = "The same as above: nothing has changed."
_KEPT = ("type", "enum", "const", "minimum", "maximum", "minItems", "maxItems")


def with_tools(system: str, tools: Sequence[ToolDefinition]) -> str:
    """The system prompt with the tools, the form of replies and examples of them behind it."""
    lines = "\n".join(_described(tool) for tool in tools)
    return f"{system}\n\n{_INTRODUCTION.format(tools=lines)}\n\n{_examples(tools)}".strip()


def _examples(tools: Sequence[ToolDefinition]) -> str:
    """First replies to three messages, with the tools that there are and what they take."""
    lines = ["Examples:"]
    for tool in tools:
        known = _properties(_parameters(tool))
        for question, name, arguments in _EXAMPLES:
            if name == tool.name:
                given = {key: value for key, value in arguments.items() if key in known}
                lines.append(f"{question} {_json({'tool': name, 'arguments': given})}")
    question, answer = _LAST_EXAMPLE
    return "\n".join([*lines, f"{question} {_json({**answer})}"])


def reply_schema(tools: Sequence[ToolDefinition], items: Sequence[Item]) -> Schema:
    """What the next reply may be: a call of one tool, or an answer.

    Only the answer is left after `MAX_CALLS`, and after a call that had been made before: a small
    model that repeats itself looks for nothing new, and does so without end.
    """
    calls = _calls_of_turn(items)
    offered = () if len(calls) >= MAX_CALLS or _repeats(calls) else tools
    replies: list[JsonValue] = [
        _object({"tool": {"const": tool.name}, "arguments": _parameters(tool)}) for tool in offered
    ]
    return {"oneOf": [*replies, _object({"answer": {"type": "string"}})]}


def rewritten(items: Sequence[Item], *, as_json: bool) -> Iterator[Item]:
    """The history as plain messages, calls in the form replies have; answers too with `as_json`.

    A result that says word for word what an earlier one said points there: reading it again would
    take a local model longer than all the rest.
    """
    seen: set[str] = set()
    for item in items:
        match item:
            case Message(role="assistant") if as_json:
                yield Message.of("assistant", _json({"answer": item.text}))
            case Message():
                yield item
            case ToolCall():
                call: Schema = {"tool": item.name, "arguments": item.arguments}
                yield Message.of("assistant", _json(call))
            case ToolResult():
                after = _AFTER_ERROR if item.is_error else _AFTER_RESULT
                known = item.content in seen and len(item.content) > len(_SAME)
                seen.add(item.content)
                content = _SAME if known else item.content
                yield Message.of("user", f"Result of {item.name}:\n{content}{after}")
            case Reasoning():
                pass


def _calls_of_turn(items: Sequence[Item]) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for item in items:
        if isinstance(item, ToolCall):
            calls.append(item)
        elif isinstance(item, Message) and item.role == "user":
            calls.clear()
    return calls


def _repeats(calls: Sequence[ToolCall]) -> bool:
    """Whether the last call was made before in this turn."""
    made = [(call.name, call.arguments) for call in calls]
    return bool(made) and made[-1] in made[:-1]


def _described(tool: ToolDefinition) -> str:
    """One line: an example of the call with what is required, what it does, what is optional."""
    schema = _parameters(tool)
    properties, required = _properties(schema), _required(schema)
    example = {name: _placeholder(properties[name]) for name in properties if name in required}
    call = _json({"tool": tool.name, "arguments": example})
    optional = [name for name in properties if name not in required]
    more = f" Optional: {', '.join(optional)}." if optional else ""
    return f"{call} {tool.description}{more}"


def _parameters(tool: ToolDefinition) -> Schema:
    """The tool's parameters without the optional texts: small models put inventions into them."""
    schema = _simple(tool.parameters, tool.parameters)
    required = _required(schema)
    properties = {
        name: value
        for name, value in _properties(schema).items()
        if name in required or value.get("type") != "string"
    }
    return {**schema, "properties": {**properties}}


def _simple(
    schema: Mapping[str, JsonValue], root: Mapping[str, JsonValue], depth: int = 0
) -> Schema:
    """The part of a JSON schema that every engine can hold a reply to; references are resolved."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and depth < 8:
        return _simple(_resolved(reference, root), root, depth + 1)
    for key in ("anyOf", "oneOf"):
        choices = schema.get(key)
        if isinstance(choices, list):
            kept = [
                _simple(choice, root, depth + 1)
                for choice in choices
                if isinstance(choice, dict) and choice.get("type") != "null"
            ]
            return kept[0] if len(kept) == 1 else {"anyOf": [*kept]}
    simple: Schema = {key: schema[key] for key in _KEPT if key in schema}
    items = schema.get("items")
    if isinstance(items, dict):
        simple["items"] = _simple(items, root, depth + 1)
    if schema.get("type") == "object" and "properties" in schema:
        properties = _properties(schema)
        simple["properties"] = {n: _simple(p, root, depth + 1) for n, p in properties.items()}
        simple["required"] = [name for name in properties if name in _required(schema)]
        simple["additionalProperties"] = False
    return simple


def _resolved(reference: str, root: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    at: JsonValue = dict(root)
    for key in reference.removeprefix("#/").split("/"):
        at = at.get(key) if isinstance(at, dict) else None
    return at if isinstance(at, dict) else {}


def _object(properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _properties(schema: Mapping[str, JsonValue]) -> dict[str, Schema]:
    found = schema.get("properties")
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, dict)}


def _required(schema: Mapping[str, JsonValue]) -> list[str]:
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def _placeholder(schema: Mapping[str, JsonValue]) -> JsonValue:
    match schema.get("type"):
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return {}
        case _:
            return "..."


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
