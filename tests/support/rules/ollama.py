"""Ollama's docs/api.md: chat, tools, images."""

from __future__ import annotations

from collections.abc import Iterator

from support.rules.common import BASE64, Body, name


def judge(body: Body) -> Iterator[str]:
    messages = body.get("messages") or []
    if not messages:
        yield "no messages"
    waiting: list[str] = []
    for message in messages:
        role = message.get("role")
        if role not in ("system", "user", "assistant", "tool"):
            yield f"role {role!r}"
        if not isinstance(message.get("content", ""), str):
            yield "content is no text"
        if not all(isinstance(i, str) and BASE64.fullmatch(i) for i in message.get("images", [])):
            yield "images are not base64"
        if role == "tool":
            if message.get("tool_name") not in waiting:
                yield f"a tool message for {message.get('tool_name')!r}, which is not open"
            else:
                waiting.remove(message["tool_name"])
            continue
        if waiting:
            yield f"calls of {waiting} without tool messages"
        calls = message.get("tool_calls", [])
        waiting = [call["function"]["name"] for call in calls]
        if role == "assistant" and not message.get("content") and not calls:
            yield "an assistant message without content or tool_calls"
        for call in calls:
            yield from name(call["function"]["name"])
            if not isinstance(call["function"].get("arguments"), dict):
                yield "arguments are no object"
    if waiting:
        yield f"calls of {waiting} without tool messages"
