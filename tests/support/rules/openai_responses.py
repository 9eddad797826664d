"""OpenAI's API reference: Responses, function calling and reasoning items."""

from __future__ import annotations

from collections.abc import Iterator

from support.rules.common import Body, arguments, name, short, unique

_PARTS = {
    "user": {"input_text", "input_image", "input_file", "input_audio"},
    "system": {"input_text"},
    "developer": {"input_text"},
    "assistant": {"output_text", "refusal"},
}
_PREFIXES = {"reasoning": "rs", "function_call": "fc", "message": "msg"}


def judge(body: Body) -> Iterator[str]:
    items = body.get("input") or []
    if not items:
        yield "no input"
    open_calls: list[str] = []
    ids: list[str] = []
    for at, item in enumerate(items):
        kind = item.get("type", "message")
        if "id" in item and not str(item["id"]).startswith(_PREFIXES.get(kind, "")):
            yield f"the id {item['id']!r} of a {kind}"
        match kind:
            case "message":
                yield from _message(item)
            case "function_call":
                open_calls.append(item["call_id"])
                ids.append(item["call_id"])
                yield from name(item["name"])
                yield from arguments(item["arguments"])
            case "function_call_output":
                if item["call_id"] not in open_calls:
                    yield f"no tool call found for output {item['call_id']!r}"
                else:
                    open_calls.remove(item["call_id"])
                if not isinstance(item.get("output"), str | list):
                    yield "a function_call_output without output"
            case "reasoning":
                yield from _reasoning(item, items[at + 1 :], body)
            case _:
                yield f"an item of type {kind!r}"
    if open_calls:
        yield f"no tool output found for {open_calls}"
    yield from unique("call ids", ids)
    yield from short("call ids", ids, 64)
    for tool in body.get("tools", []):
        yield from name(tool.get("name"))


def _message(item: Body) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in _PARTS:
        yield f"role {role!r}"
    elif not content:
        yield "a message without content"
    elif isinstance(content, list):
        for kind in {part["type"] for part in content} - _PARTS[role]:
            yield f"{kind} in a message of the {role}"


def _reasoning(item: Body, rest: list[Body], body: Body) -> Iterator[str]:
    if not isinstance(item.get("summary"), list):
        yield "reasoning without summary"
    if body.get("store") is False and not item.get("encrypted_content"):
        yield "reasoning that is not stored, without encrypted_content"
    following = next((each for each in rest if each.get("type") != "reasoning"), {})
    if following.get("type") != "function_call" and following.get("role") != "assistant":
        yield "reasoning without its required following item"
