"""Gemini's API reference: Content and Part, function calling, thought signatures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from support.rules.common import BASE64, Body, alternating, name

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_DATA = {"text", "inlineData", "fileData", "functionCall", "functionResponse"}


def judge(body: Body) -> Iterator[str]:
    contents = body.get("contents") or []
    yield from alternating([content.get("role", "user") for content in contents], {"user", "model"})
    waiting: list[Body] = []
    for content in contents:
        parts = content.get("parts", [])
        yield from _parts(parts)
        made = [part["functionCall"] for part in parts if "functionCall" in part]
        given = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if content.get("role") == "model":
            if given:
                yield "functionResponse from the model"
        else:
            if made:
                yield "functionCall from the user"
            if any("thoughtSignature" in part for part in parts):
                yield "thoughtSignature from the user"
            if any("functionResponse" not in part for part in parts[: len(given)]):
                yield "functionResponse behind something else"
            yield from _answers(waiting, given)
        waiting = made
    system = body.get("systemInstruction")
    if system is not None:
        yield from _parts(system.get("parts", []))
    for tool in body.get("tools", []):
        for declared in tool["functionDeclarations"]:
            yield from name(declared["name"], _NAME)


def _parts(parts: list[Body]) -> Iterator[str]:
    if not parts:
        yield "no parts"
    for part in parts:
        if len(_DATA & part.keys()) != 1:
            yield f"a part with the data {sorted(_DATA & part.keys())}"
        if part.get("text") == "" and "thoughtSignature" not in part:
            yield "an empty text"
        call, answer = part.get("functionCall"), part.get("functionResponse")
        for named in (each for each in (call, answer) if each is not None):
            yield from name(named.get("name"), _NAME)
        if call is not None and not isinstance(call.get("args", {}), dict):
            yield "args are no object"
        if answer is not None and not isinstance(answer.get("response"), dict):
            yield "response is no object"
        if not BASE64.fullmatch(part.get("thoughtSignature", "")):
            yield "thoughtSignature is not base64"


def _answers(made: list[Body], given: list[Body]) -> Iterator[str]:
    if len(made) != len(given):
        yield f"{len(given)} functionResponses for {len(made)} functionCalls"
    elif [call["name"] for call in made] != [answer["name"] for answer in given]:
        yield "names of functionResponses differ from the calls'"
    elif any(
        "id" in c and "id" in a and c["id"] != a["id"] for c, a in zip(made, given, strict=True)
    ):
        yield "ids of functionResponses differ from the calls'"
