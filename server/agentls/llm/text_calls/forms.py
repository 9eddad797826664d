"""What the JSON of a call that a model printed means, in all the shapes models give it.

Pure. Knows neither the tags around the JSON nor how it streams.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agentls.core.requests import ToolDefinition
from agentls.llm.wire.halves import without_halves

_NAME_KEYS = ("name", "tool", "tool_name", "function")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_WRAPPERS = ("function", "function_call", "tool_call", "tool_calls")
_KEYS = frozenset((*_NAME_KEYS, *_ARGUMENT_KEYS, *_WRAPPERS, "id", "type"))
_NAMED = re.compile(r'"(?:name|tool|tool_name|function)"\s*:\s*"([\w.:-]{1,100})')
_BETWEEN = re.compile(r"[\s,;}\]]*")
_IN_STRING = re.compile(r'["\\<\n]')
_OUTSIDE = re.compile(r"[^\s\w,:.+\-]")

NAMELESS = "malformed_call"
"""The name of a call whose own cannot be read: the agent answers that there is no such tool."""


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as a model wrote it. `arguments` is the JSON of an object exactly when it is valid."""

    name: str
    arguments: str
    valid: bool = True


def read_calls(text: str, name: str = "") -> list[WrittenCall] | None:
    """The calls in one or more JSON values; None when the text is anything else.

    With a `name` the values are that tool's arguments.
    """
    decoder = json.JSONDecoder(strict=False)  # small models put line ends into strings
    calls: list[WrittenCall] = []
    at = len(text) - len(text.lstrip())
    try:
        while at < len(text):
            value, end = decoder.raw_decode(text, at)
            calls += [written(name, value)] if name else _calls(value)
            found = _BETWEEN.match(text, end)
            at = found.end() if found else end
    except (ValueError, RecursionError):
        return None
    return calls or None


def malformed(text: str, name: str = "") -> WrittenCall:
    """A call that is to be answered with an error; its name as far as it can be read."""
    found = _NAMED.search(text)
    named = name or (found[1] if found else NAMELESS)
    return WrittenCall(without_halves(named), without_halves(text), valid=False)


def fits(call: WrittenCall, tools: Sequence[ToolDefinition]) -> bool:
    """Whether a call names a tool exactly, has all it requires and nothing it does not know."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None or not call.valid:
        return False
    given = json.loads(call.arguments)
    properties, required = tool.parameters.get("properties"), tool.parameters.get("required")
    known = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    return given.keys() <= known.keys() and all(key in given for key in needed)


def may_call(head: str, names: Collection[str]) -> bool | None:
    """Whether what begins like this may be the JSON, or a list in Python, of calls.

    None when it is too short to tell.
    """
    body = head.lstrip(" \t\r\n[")
    inner = body[1:].lstrip()
    if body and "[" in head[: -len(body)] and body[0] not in '{"':
        called, opened, _ = body.partition("(")  # as Python
        return called in names if opened else _may_be(called, names)
    if not body.startswith("{") or not inner.startswith('"'):
        return None if not body or (body[0] == "{" and not inner) else False
    key, closed, rest = inner[1:].partition('"')
    if not closed:
        return _may_be(key, _KEYS)
    if key not in _NAME_KEYS:
        return key in _KEYS
    value = rest.lstrip().removeprefix(":").lstrip()
    if not value.startswith('"'):
        return None if not value else key == "function" and value[0] == "{"
    name, closed, _ = value[1:].partition('"')
    if closed:
        return name in names
    return _may_be(name, names)


def _may_be(beginning: str, names: Collection[str]) -> bool | None:
    return None if any(name.startswith(beginning) for name in names) else False


class JsonScan:
    """Finds the end of a JSON value that comes in pieces, by brackets and strings alone."""

    def __init__(self) -> None:
        """Before the first bracket."""
        self.in_string = False
        self._depth = 0

    def next(self, text: str, at: int) -> tuple[int, Literal["end", "tag", "odd", "more"]]:
        """Go on from `at` to a place that matters.

        "end" is just behind the value; "tag" at a `<`; "odd" at what valid JSON has not, a line end
        in a string included; "more" where the text has to go on.
        """
        while found := (_IN_STRING if self.in_string else _OUTSIDE).search(text, at):
            char, at = found[0], found.start()
            if char == "\\":
                if at + 1 == len(text):
                    return at, "more"
                at += 2
                continue
            if char == "<":
                return at, "tag"
            if char not in '"{}[]':
                return at, "odd"
            at += 1
            if char == '"':
                self.in_string = not self.in_string
            else:
                self._depth += 1 if char in "{[" else -1
                if self._depth <= 0:
                    return at, "end"
        return len(text), "more"


def _calls(value: object) -> Iterator[WrittenCall]:
    """The calls in a value.

    Raises:
        ValueError: something in it is none.
    """
    if isinstance(value, list):
        for each in value:
            yield from _calls(each)
        return
    if not isinstance(value, dict):
        raise ValueError("not an object")
    for key in _NAME_KEYS:
        if isinstance(named := value.get(key), str) and named.strip():
            given = next((value[k] for k in _ARGUMENT_KEYS if k in value), None)
            yield written(named.strip(), given)
            return
    wrapped = next((value[key] for key in _WRAPPERS if key in value), None)
    if not isinstance(wrapped, dict | list):
        raise ValueError("no name")
    yield from _calls(wrapped)


def written(name: str, given: object) -> WrittenCall:
    """A call from its name and what stands for its arguments: an object, or JSON in a text."""
    name = without_halves(name)
    raw = without_halves(given if isinstance(given, str) else _json(given))
    if isinstance(given, str):
        try:
            given = json.loads(given, strict=False) if given.strip() else {}
        except (ValueError, RecursionError):
            given = raw
    if given is None:
        given = {}
    if not isinstance(given, dict):
        return WrittenCall(name, raw, valid=False)
    return WrittenCall(name, without_halves(_json(given)))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
