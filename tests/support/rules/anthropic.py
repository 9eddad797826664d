"""Anthropic's Messages API: tool use, extended thinking, prompt caching."""

from __future__ import annotations

import re
from collections.abc import Iterator

from support.rules.common import Body, alternating, name, unique

_THOUGHTS = ("thinking", "redacted_thinking")


def judge(body: Body) -> Iterator[str]:
    messages = body.get("messages") or []
    yield from alternating([message["role"] for message in messages], {"user", "assistant"})
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens is required"
    yield from _thinking(body)
    tools = body.get("tools", [])
    for tool in tools:
        yield from name(tool.get("name"))
        if tool.get("input_schema", {}).get("type") != "object":
            yield "input_schema is no schema of an object"
    yield from unique("tool names", [tool.get("name") for tool in tools])
    system = body.get("system", [])
    blocks = [block for message in messages for block in _blocks(message)]
    for block in system if isinstance(system, list) else [{"type": "text", "text": system}]:
        yield from _text(block)
    cached = [each for each in (*tools, *blocks, *system) if "cache_control" in each]
    if len(cached) > 4:
        yield f"{len(cached)} cache_control blocks"
    if any(each.get("type") in _THOUGHTS for each in cached):
        yield "cache_control on thinking"
    yield from unique("tool_use ids", [b.get("id") for b in blocks if b["type"] == "tool_use"])
    waiting: list[str] = []
    for message in messages:
        yield from _message(message, waiting)
        uses = [block for block in _blocks(message) if block["type"] == "tool_use"]
        waiting = [use["id"] for use in uses]
    if waiting:
        yield f"tool_use {waiting} without tool_result"


def _blocks(message: Body) -> list[Body]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _text(block: Body) -> Iterator[str]:
    if block["type"] == "text" and not block["text"].strip():
        yield "an empty text block"


def _message(message: Body, waiting: list[str]) -> Iterator[str]:
    blocks = _blocks(message)
    kinds = [block["type"] for block in blocks]
    if not blocks:
        yield "a message without content"
    for block in blocks:
        yield from _text(block)
    if message["role"] == "user":
        yield from _results(blocks, waiting)
        return
    for kind in set(kinds) - {"text", "tool_use", "thinking", "redacted_thinking"}:
        yield f"{kind} from the assistant"
    for block in blocks:
        match block["type"]:
            case "tool_use":
                yield from name(block["name"])
                if not isinstance(block["input"], dict):
                    yield "input is no object"
                if not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
                    yield f"{block['id']!r} is no id"
            case "thinking":
                if not block.get("signature") or not isinstance(block.get("thinking"), str):
                    yield "thinking without signature"
            case "redacted_thinking":
                if not block.get("data"):
                    yield "redacted_thinking without data"
            case _:
                pass
    if kinds and kinds[-1] in _THOUGHTS:
        yield "a reply that ends with thinking"


def _results(blocks: list[Body], waiting: list[str]) -> Iterator[str]:
    results = [block for block in blocks if block["type"] == "tool_result"]
    if [block["type"] for block in blocks[: len(results)]] != ["tool_result"] * len(results):
        yield "tool_result behind something else"
    if sorted(result["tool_use_id"] for result in results) != sorted(waiting):
        yield f"tool_results {[r['tool_use_id'] for r in results]} for tool_uses {waiting}"
    for result in results:
        inner = result.get("content", [])
        for block in inner if isinstance(inner, list) else []:
            yield from _text(block)
    for kind in {block["type"] for block in blocks} & {"tool_use", "thinking", "redacted_thinking"}:
        yield f"{kind} from the user"


def _thinking(body: Body) -> Iterator[str]:
    thinking = body.get("thinking") or {}
    if thinking.get("type") not in ("enabled", "adaptive"):
        return
    budget = thinking.get("budget_tokens", 1024)
    if budget < 1024 or budget >= body.get("max_tokens", 0):
        yield f"budget_tokens {budget} of max_tokens {body.get('max_tokens')}"
    if body.get("temperature", 1) != 1:
        yield "temperature with thinking"
    # Calls, results and what follows on them are one reply, which thinking has to begin.
    at = len(body["messages"]) - 1
    while at > 0 and any(b["type"] == "tool_result" for b in _blocks(body["messages"][at])):
        at -= 2
    begun = body["messages"][at + 1 :]
    first = next(iter(_blocks(begun[0])), {"type": "nothing"}) if begun else None
    if first and thinking["type"] == "enabled" and first["type"] not in _THOUGHTS:
        yield f"expected thinking, found {first['type']}"
