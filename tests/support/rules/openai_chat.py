"""OpenAI's API reference: chat completions and function calling."""

from __future__ import annotations

from collections.abc import Iterator

from support.rules.common import Body, arguments, name, short, unique


def judge(body: Body) -> Iterator[str]:
    messages = body.get("messages") or []
    if not messages:
        yield "no messages"
    waiting: list[str] = []
    ids: list[str] = []
    for message in messages:
        role = message["role"]
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"a tool message for {message['tool_call_id']!r}, which is not open"
            else:
                waiting.remove(message["tool_call_id"])
            if not isinstance(message.get("content"), str):
                yield "a tool message without text"
            continue
        if waiting:
            yield f"tool_calls {waiting} must be followed by tool messages"
        waiting = []
        if role == "assistant":
            calls = message.get("tool_calls", [])
            waiting = [call["id"] for call in calls]
            ids += waiting
            yield from _chat_reply(message, calls)
        elif role not in ("system", "developer", "user"):
            yield f"role {role!r}"
        elif not message.get("content"):
            yield f"a {role} message without content"
    if waiting:
        yield f"tool_calls {waiting} must be followed by tool messages"
    yield from unique("tool_call ids", ids)
    yield from short("tool_call ids", ids, 40)
    if "tools" in body and not body["tools"]:
        yield "tools is an empty list"
    for tool in body.get("tools", []):
        yield from name(tool["function"]["name"])


def _chat_reply(message: Body, calls: list[Body]) -> Iterator[str]:
    if not message.get("content") and not calls:
        yield "an assistant message without content or tool_calls"
    if "tool_calls" in message and not calls:
        yield "tool_calls is an empty list"
    for call in calls:
        if call.get("type") != "function" or not call["id"]:
            yield "a call without type or id"
        yield from name(call["function"]["name"])
        yield from arguments(call["function"]["arguments"])
