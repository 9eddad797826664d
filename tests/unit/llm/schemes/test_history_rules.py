"""The judges of request bodies pass good ones, and each of their rules can fail."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from support.history_rules import problems

Body = dict[str, Any]

_TWO = {"type": "text", "text": "2"}
ANTHROPIC: Body = {
    "model": "m",
    "max_tokens": 4096,
    "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "f", "input_schema": {"type": "object"}}],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "I will"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
                {"type": "tool_use", "id": "t2", "name": "f", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "1"},
                {"type": "tool_result", "tool_use_id": "t2", "content": [_TWO]},
                {"type": "text", "text": "go on"},
            ],
        },
    ],
}  # fmt: skip
CHAT: Body = {
    "model": "m",
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": "more"},
    ],
}
RESPONSES: Body = {
    "model": "m",
    "store": False,
    "tools": [{"type": "function", "name": "f"}],
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "id": "fc_1"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        {"role": "user", "content": "more"},
    ],
}
GEMINI: Body = {
    "systemInstruction": {"parts": [{"text": "s"}]},
    "tools": [{"functionDeclarations": [{"name": "f"}]}],
    "contents": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {
            "role": "model",
            "parts": [
                {"text": "I will"},
                {"functionCall": {"name": "f", "args": {}, "id": "1"}, "thoughtSignature": "aGk="},
                {"functionCall": {"name": "g", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"a": 1}, "id": "1"}},
                {"functionResponse": {"name": "g", "response": {"a": 2}}},
                {"text": "go on"},
            ],
        },
    ],
}
OLLAMA: Body = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "hi", "images": ["aGk="]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
        },
        {"role": "tool", "tool_name": "f", "content": "1"},
        {"role": "user", "content": "more"},
    ],
}
GOOD = {
    "anthropic": ANTHROPIC,
    "openai_chat": CHAT,
    "openai_responses": RESPONSES,
    "gemini": GEMINI,
    "ollama": OLLAMA,
}


@pytest.mark.parametrize("wire", GOOD)
def test_a_good_body_passes(wire: str) -> None:
    assert problems(wire, GOOD[wire]) == []


def put(value: object, *path: str | int) -> Callable[[Body], None]:
    """Set what is at a path."""

    def change(body: Body) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        at[path[-1]] = value

    return change


def drop(*path: str | int) -> Callable[[Body], None]:
    """Delete what is at a path."""

    def change(body: Body) -> None:
        at: Any = body
        for step in path[:-1]:
            at = at[step]
        del at[path[-1]]

    return change


def swap(one: int, other: int, *path: str | int) -> Callable[[Body], None]:
    """Exchange two entries of the list at a path."""

    def change(body: Body) -> None:
        at: Any = body
        for step in path:
            at = at[step]
        at[one], at[other] = at[other], at[one]

    return change


TEXT = {"type": "text", "text": "x"}
USER = {"role": "user", "content": "x"}
MARK = {"cache_control": {"type": "ephemeral"}}
SAYS = ("messages", 1, "content")
GIVES = ("messages", 2, "content")
PART = ("contents", 1, "parts")
ANSWER = ("contents", 2, "parts")
CALL = ("messages", 2, "tool_calls", 0)

BAD: list[tuple[str, Callable[[Body], None], str]] = [
    ("anthropic", drop("model"), "no model"),
    ("anthropic", put(float("nan"), "temperature"), "not JSON"),
    ("anthropic", put("\ud800", "messages", 0, "content"), "not JSON"),
    ("anthropic", put([], "messages"), "no messages"),
    ("anthropic", drop("messages", 0), "begins with assistant"),
    ("anthropic", drop("messages", 2), "ends with assistant"),
    ("anthropic", drop("messages", 2), "without tool_result"),
    ("anthropic", put("system", "messages", 0, "role"), "roles ['system']"),
    ("anthropic", put("user", "messages", 1, "role"), "do not alternate"),
    ("anthropic", put("user", "messages", 1, "role"), "from the user"),
    ("anthropic", drop("max_tokens"), "max_tokens is required"),
    ("anthropic", put("a b", "tools", 0, "name"), "is not a name"),
    ("anthropic", put("string", "tools", 0, "input_schema", "type"), "input_schema"),
    ("anthropic", put([ANTHROPIC["tools"][0]] * 2, "tools"), "tool names are not unique"),
    ("anthropic", put(" ", "system", 0, "text"), "an empty text block"),
    ("anthropic", put("", *SAYS, 2, "text"), "an empty text block"),
    ("anthropic", put("", "messages", 0, "content"), "an empty text block"),
    ("anthropic", put("", *GIVES, 1, "content", 0, "text"), "an empty text block"),
    ("anthropic", put([], "messages", 0, "content"), "a message without content"),
    ("anthropic", put([TEXT | MARK] * 4, "messages", 0, "content"), "5 cache_control blocks"),
    ("anthropic", put(MARK["cache_control"], *SAYS, 0, "cache_control"), "on thinking"),
    ("anthropic", put("t1", *SAYS, 4, "id"), "tool_use ids are not unique"),
    ("anthropic", put({"type": "image"}, *SAYS, 2), "image from the assistant"),
    ("anthropic", put("{}", *SAYS, 3, "input"), "input is no object"),
    ("anthropic", put("a.b", *SAYS, 3, "id"), "is no id"),
    ("anthropic", put("a b", *SAYS, 3, "name"), "is not a name"),
    ("anthropic", drop(*SAYS, 0, "signature"), "thinking without signature"),
    ("anthropic", put("", *SAYS, 1, "data"), "redacted_thinking without data"),
    ("anthropic", swap(0, 4, *SAYS), "ends with thinking"),
    ("anthropic", swap(0, 3, *SAYS), "expected thinking, found tool_use"),
    ("anthropic", swap(0, 2, *GIVES), "tool_result behind something else"),
    ("anthropic", drop(*GIVES, 0), "for tool_uses"),
    ("anthropic", put("t9", *GIVES, 0, "tool_use_id"), "for tool_uses"),
    ("anthropic", put(1000, "thinking", "budget_tokens"), "budget_tokens 1000"),
    ("anthropic", put(1024, "max_tokens"), "budget_tokens 1024"),
    ("anthropic", put(0.5, "temperature"), "temperature with thinking"),
    ("openai_chat", put([], "messages"), "no messages"),
    ("openai_chat", drop("messages", 4), "must be followed by tool messages"),
    ("openai_chat", put(CHAT["messages"][:4], "messages"), "must be followed by tool messages"),
    ("openai_chat", swap(3, 5, "messages"), "which is not open"),
    ("openai_chat", put("a", "messages", 4, "tool_call_id"), "which is not open"),
    ("openai_chat", put(None, "messages", 3, "content"), "a tool message without text"),
    ("openai_chat", put("robot", "messages", 1, "role"), "role 'robot'"),
    ("openai_chat", put(None, "messages", 1, "content"), "a user message without content"),
    ("openai_chat", put("a", "messages", 2, "tool_calls", 1, "id"), "ids are not unique"),
    ("openai_chat", put("a" * 41, "messages", 2, "tool_calls", 1, "id"), "ids longer than 40"),
    ("openai_chat", put([], "tools"), "tools is an empty list"),
    ("openai_chat", put("a.b", "tools", 0, "function", "name"), "is not a name"),
    ("openai_chat", put("", "messages", 5, "content"), "without content or tool_calls"),
    ("openai_chat", put([], "messages", 5, "tool_calls"), "tool_calls is an empty list"),
    ("openai_chat", drop(*CALL, "type"), "a call without type or id"),
    ("openai_chat", put("a b", *CALL, "function", "name"), "is not a name"),
    ("openai_chat", put({}, *CALL, "function", "arguments"), "no text of an object"),
    ("openai_chat", put("[]", *CALL, "function", "arguments"), "no text of an object"),
    ("openai_chat", put('{"a', *CALL, "function", "arguments"), "no text of an object"),
    ("openai_responses", put([], "input"), "no input"),
    ("openai_responses", put("x", "input", 2, "id"), "the id 'x' of a function_call"),
    ("openai_responses", put("a b", "input", 2, "name"), "is not a name"),
    ("openai_responses", put("{", "input", 2, "arguments"), "no text of an object"),
    ("openai_responses", drop("input", 2), "no tool call found"),
    ("openai_responses", swap(2, 3, "input"), "no tool call found"),
    ("openai_responses", drop("input", 3), "no tool output found"),
    ("openai_responses", drop("input", 3, "output"), "without output"),
    ("openai_responses", put("what", "input", 0, "type"), "an item of type 'what'"),
    ("openai_responses", put([RESPONSES["input"][2]] * 2, "input"), "call ids are not unique"),
    ("openai_responses", put("a" * 65, "input", 2, "call_id"), "ids longer than 64"),
    ("openai_responses", put("a b", "tools", 0, "name"), "is not a name"),
    ("openai_responses", put("tool", "input", 0, "role"), "role 'tool'"),
    ("openai_responses", put([], "input", 0, "content"), "a message without content"),
    ("openai_responses", put("input_text", "input", 4, "content", 0, "type"), "of the assistant"),
    ("openai_responses", drop("input", 1, "summary"), "reasoning without summary"),
    ("openai_responses", drop("input", 1, "encrypted_content"), "without encrypted_content"),
    ("openai_responses", put(USER, "input", 2), "without its required following item"),
    ("openai_responses", put(RESPONSES["input"][:2], "input"), "required following item"),
    ("gemini", put([], "contents"), "no messages"),
    ("gemini", drop("contents", 0), "begins with model"),
    ("gemini", drop("contents", 2), "ends with model"),
    ("gemini", put("assistant", "contents", 1, "role"), "roles ['assistant']"),
    ("gemini", put("user", "contents", 1, "role"), "do not alternate"),
    ("gemini", put("user", "contents", 1, "role"), "functionCall from the user"),
    ("gemini", put("user", "contents", 1, "role"), "thoughtSignature from the user"),
    ("gemini", put("model", "contents", 2, "role"), "functionResponse from the model"),
    ("gemini", swap(0, 2, *ANSWER), "functionResponse behind something else"),
    ("gemini", drop(*ANSWER, 0), "1 functionResponses for 2 functionCalls"),
    ("gemini", put("g", *ANSWER, 0, "functionResponse", "name"), "names of functionResponses"),
    ("gemini", put("2", *ANSWER, 0, "functionResponse", "id"), "ids of functionResponses"),
    ("gemini", put([], "systemInstruction", "parts"), "no parts"),
    ("gemini", put([], "contents", 0, "parts"), "no parts"),
    ("gemini", put("1a", "tools", 0, "functionDeclarations", 0, "name"), "is not a name"),
    ("gemini", put({}, *PART, 0), "a part with the data []"),
    ("gemini", put("x", *PART, 1, "text"), "a part with the data ['functionCall', 'text']"),
    ("gemini", put("", *PART, 0, "text"), "an empty text"),
    ("gemini", put("a b", *PART, 1, "functionCall", "name"), "is not a name"),
    ("gemini", put("{}", *PART, 1, "functionCall", "args"), "args are no object"),
    ("gemini", put("1", *ANSWER, 0, "functionResponse", "response"), "response is no object"),
    ("gemini", put("a b", *PART, 1, "thoughtSignature"), "is not base64"),
    ("ollama", put([], "messages"), "no messages"),
    ("ollama", put("robot", "messages", 1, "role"), "role 'robot'"),
    ("ollama", put([], "messages", 1, "content"), "content is no text"),
    ("ollama", put("data:image/png;base64,A", "messages", 1, "images", 0), "not base64"),
    ("ollama", put("g", "messages", 3, "tool_name"), "which is not open"),
    ("ollama", drop("messages", 3), "calls of ['f'] without tool messages"),
    ("ollama", put(OLLAMA["messages"][:3], "messages"), "calls of ['f'] without tool messages"),
    ("ollama", drop("messages", 2, "tool_calls"), "without content or tool_calls"),
    ("ollama", put("a b", *CALL, "function", "name"), "is not a name"),
    ("ollama", put("{}", *CALL, "function", "arguments"), "arguments are no object"),
]  # fmt: skip


@pytest.mark.parametrize(("wire", "spoil", "problem"), BAD)
def test_each_rule_can_fail(wire: str, spoil: Callable[[Body], None], problem: str) -> None:
    body = copy.deepcopy(GOOD[wire])
    spoil(body)
    found = problems(wire, body)
    assert any(problem in each for each in found), found
