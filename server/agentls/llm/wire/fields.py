"""Reads fields out of JSON that a server sent: untrusted objects in, checked values out.

Knows no field names. What has a type that it cannot have is `Malformed` and never guessed at;
counts are the exception, since no reply is worth losing over them.
"""

from __future__ import annotations

import json

from agentls.llm.wire.halves import without_halves

Object = dict[str, object]

_MANY = 1e15
"""More tokens than anyone counts; beyond it not every whole number is a float."""


class Malformed(ValueError):
    """A field has a type it cannot have; the text names it."""


def text(holder: Object, key: str) -> str:
    """A string; empty when it is missing or null. May hold half a character: see `Mender`."""
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed(key)
    return value


def whole_text(holder: Object, key: str) -> str:
    """As `text`, for what comes in one piece: no other half of a character can follow."""
    return without_halves(text(holder, key))


def objects(holder: Object, key: str) -> list[Object]:
    """A list of objects; empty when it is missing or null."""
    value = holder.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise Malformed(key)
    return value


def object_or_none(holder: Object, key: str) -> Object | None:
    """An object; None when it is missing or null."""
    value = holder.get(key)
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Malformed(key)
    return value


def details(holder: Object, key: str) -> Object:
    """An object, or an empty one for whatever else is there."""
    value = holder.get(key)
    return value if isinstance(value, dict) else {}


def count(value: object) -> int:
    """A number of tokens; 0 for what is none. Some servers write whole numbers as 10.0."""
    if isinstance(value, float) and value.is_integer() and value < _MANY:
        value = int(value)
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0


def as_json(value: object, key: str) -> str:
    """The JSON text of a value that came as an object where others send text."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise Malformed(key) from None
