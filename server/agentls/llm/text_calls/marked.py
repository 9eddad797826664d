"""Calls in the marks of a model's own chat template, which hold more than JSON.

Owns the reading of names that stand before their arguments (Mistral, DeepSeek, Kimi, gpt-oss),
of parameters in elements (Qwen3-Coder, GLM, MiniMax) and of calls written as Python (Llama 4).
Pure. The parser finds where such text begins and ends.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Collection, Sequence
from typing import Any

from agentls.core.requests import ToolDefinition
from agentls.llm.text_calls.forms import JsonScan, WrittenCall, read_calls, written

_NAME = r"(?:functions?\.)?([A-Za-z_][\w.-]{0,63})(?::\d+)?"
_TOKEN = r"<[|\uff5c](?!DSML)[^<>\n]{1,40}[|\uff5c]>"  # noqa: S105 - of a chat template
_NOISE = re.compile(
    rf"\s+|[;,]|function(?=<\uff5ctool)|{_TOKEN}|```\w*|</s>|\[(?:TOOL_CALLS|ARGS)\]"
    r"|\[CALL_ID\]\w+|(?:assistant|commentary|analysis)\b|json\b(?=\s*<)|to="
    r"|</?(?:\w+:)?(?:tool_calls?|function_calls?|TOOLCALL)>|</?\uff5cDSML\uff5c(?:function|tool)_calls>"
)
_ELEMENT = re.compile(rf'<(?:\uff5cDSML\uff5c)?(?:function=|invoke name="){_NAME}"?>')
_ELEMENT_END = re.compile(r"\s*</(?:\uff5cDSML\uff5c)?(?:function|invoke)>")
_PARAMETER = re.compile(
    r"\s*<((?:\uff5cDSML\uff5c)?parameter)(?:=|\s+name=\")([\w.-]{1,64})(?:\"[^<>\n]{0,80})?>"
)
_PAIR = re.compile(
    r"\s*<arg_key>\s*([^<]{1,64}?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL
)
_HEAD = re.compile(rf"{_NAME}(?=(\s*)(.?))", re.DOTALL)
_BEHIND_NAME = ("(", "{", "[ARGS]", "[CALL_ID]", "<arg_key>", "<|", "<\uff5c", "```", "</", "json<")
_BEGUN = ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "```")
_WORDS = ("functions.", "assistant", "commentary", "analysis", "json", "to")
_TAG_BEGUN = re.compile(r"<[/|\uff5c]?[\w:|\uff5c\u2581]*")
_ELEMENTS = ("<function=", '<invoke name="', '<\uff5cDSML\uff5cinvoke name="')


def read_marked(text: str, tools: Sequence[ToolDefinition]) -> list[WrittenCall] | None:
    """The calls in a text with its marks; None when there is anything else in it."""
    calls: list[WrittenCall] = []
    at = _skip(text, 0)
    while at < len(text):
        found = _python(text, at, tools) or _one(text, at, tools)
        if found is None:
            return None
        some, end = found
        calls += some
        at = _skip(text, end)
    return calls or None


def said_name(text: str) -> str:
    """The name of the first call in a text with its marks, as far as it can be told."""
    rest = text[_skip(text, 0) :]
    found = _ELEMENT.match(rest) or _HEAD.match(rest)
    return found[1] if found else ""


def may_be_marked(head: str, names: Collection[str]) -> bool | None:
    """Whether what begins like this, behind its first mark, is such a call; None if too short."""
    rest = head[_skip(head, 0) :]
    if not rest:
        return None
    if any(mark.startswith(rest) for mark in _BEGUN):
        return None
    if rest[0] in "{[":
        return True
    if rest[0] == "<":
        if element := _ELEMENT.match(rest):
            return element[1] in names
        begun = any(rest.startswith(mark) or mark.startswith(rest) for mark in _ELEMENTS)
        begun = begun or _TAG_BEGUN.fullmatch(rest) is not None
        in_token = rest[1:2] in ("", "|", "\uff5c") and ">" not in rest
        return None if begun or in_token else False
    found = _HEAD.match(rest)
    if found is None:
        return False
    behind = rest[found.end() :].lstrip()
    if not behind:
        said = found[1]
        begun = any(name.startswith(said) for name in (*names, *_WORDS))
        return None if begun else False
    if behind == ":":
        return None if found[1] in names else False
    if found[1] == "function" and "<\uff5ctool".startswith(behind):
        return None
    if any(behind.startswith(mark) for mark in _BEHIND_NAME):
        return found[1] in names
    return None if any(mark.startswith(behind) for mark in _BEHIND_NAME) else False


def has_open_value(text: str) -> bool:
    """Whether an argument goes on behind this text: a mark at its end is then the argument's."""
    marks = (("<parameter", "</parameter>"), ("<arg_value>", "</arg_value>"))
    if any(text.count(begin) > text.count(end) for begin, end in marks):
        return True
    scan, at = JsonScan(), text.find("{")
    while at >= 0 and (found := scan.next(text, at))[1] not in ("end", "more"):
        at = found[0] + 1
    return scan.in_string


def _skip(text: str, at: int) -> int:
    while found := _NOISE.match(text, at):
        at = found.end()
    return at


def _one(
    text: str, at: int, tools: Sequence[ToolDefinition]
) -> tuple[list[WrittenCall], int] | None:
    """The call at a place and where it ends."""
    if text[at] in "{[":
        end = _json_end(text, at)
        calls = read_calls(text[at:end])
        return (calls, end) if calls else None
    if element := _ELEMENT.match(text, at):
        return _element(text, element.end(), element[1], tools)
    head = _HEAD.match(text, at)
    if head is None or head[1] not in {tool.name for tool in tools}:
        return None
    name, at = head[1], _skip(text, head.end())
    if text[at : at + 1] == "{":
        end = _json_end(text, at)
        calls = read_calls(text[at:end], name)
        return (calls, end) if calls else None
    given: dict[str, Any] = {}
    while pair := _PAIR.match(text, at):
        given[pair[1]] = _value(pair[2], pair[1], name, tools)
        at = pair.end()
    return [written(name, given)], at


def _element(
    text: str, at: int, name: str, tools: Sequence[ToolDefinition]
) -> tuple[list[WrittenCall], int] | None:
    if text[_skip(text, at) : _skip(text, at) + 1] == "{":
        at = _skip(text, at)
        end = _json_end(text, at)
        calls = read_calls(text[at:end], name) or []
    else:
        given: dict[str, Any] = {}
        end = at
        while parameter := _PARAMETER.match(text, end):
            closer = re.compile(rf"</{parameter[1]}>(?=\s*<(?:/|\uff5c|parameter))")
            close = closer.search(text, parameter.end())
            if close is None:
                return None
            value = text[parameter.end() : close.start()]
            given[parameter[2]] = _value(value, parameter[2], name, tools)
            end = close.end()
        calls = [written(name, given)]
    close = _ELEMENT_END.match(text, end)
    return (calls, close.end()) if close and calls else None


def _value(text: str, key: str, name: str, tools: Sequence[ToolDefinition]) -> Any:
    """A parameter between its marks: text where the tool wants text, else what JSON makes of it."""
    text = text.removeprefix("\r").removeprefix("\n").removesuffix("\n").removesuffix("\r")
    tool = next((tool for tool in tools if tool.name == name), None)
    properties = tool.parameters.get("properties") if tool else None
    schema = properties.get(key) if isinstance(properties, dict) else None
    if isinstance(schema, dict) and schema.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _json_end(text: str, at: int) -> int:
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, at)[1]
    except (ValueError, RecursionError):
        return len(text)


def _python(
    text: str, at: int, tools: Sequence[ToolDefinition]
) -> tuple[list[WrittenCall], int] | None:
    """Calls as Python writes them, one or a list, arguments by name."""
    source = re.split(r"<[|/\uff5c]|```", text[at:], maxsplit=1)[0].rstrip()
    names = {tool.name for tool in tools}
    if not any(source.lstrip("[ \n").startswith(f"{name}(") for name in names):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes
            body = ast.parse(source).body
        nodes = [each.value for each in body if isinstance(each, ast.Expr)]
        flat = [n for node in nodes for n in (node.elts if isinstance(node, ast.List) else [node])]
        calls = [_python_call(node) for node in flat] if len(nodes) == len(body) else []
    except (SyntaxError, ValueError, TypeError, AttributeError, RecursionError, MemoryError):
        return None
    return (calls, at + len(source)) if calls else None


def _python_call(node: ast.expr) -> WrittenCall:
    """Raises ValueError for what is no call with literal arguments."""
    if not isinstance(node, ast.Call) or node.args:
        raise ValueError("no call by name")
    given = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
    return written(ast.unparse(node.func), given)
