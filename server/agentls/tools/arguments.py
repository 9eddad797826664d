"""Typed parameters of tools: one pydantic model a tool gives the JSON schema and the checks.

Lenient where models err in form (other names for a key, "5" for 5, null for an absent value),
strict where they err in substance. Unknown keys are dropped unread: a model cannot grant itself
anything by writing, say, `requires_approval: false`. Knows nothing of what a tool does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from agentls.core.errors import InvalidArguments
from agentls.core.requests import ToolDefinition, ToolKind

_SURROGATE = re.compile("[\ud800-\udfff]")
_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_SCHEMA = TypeAdapter(dict[str, JsonValue])


class Also:
    """Marks a field with other names that models use for it; they are not in the schema."""

    def __init__(self, *names: str) -> None:
        """The first of the names that is given counts."""
        self.names = names


FilePath = Annotated[str, Also("file_path", "filename", "file", "filepath")]


class Arguments(BaseModel):
    """Base of every tool's parameters."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)


A = TypeVar("A", bound=Arguments)


def define(
    name: str, description: str, model: type[Arguments], kind: ToolKind = "other"
) -> ToolDefinition:
    """A tool's definition. The schema has no titles, defaults or nulls, as each costs tokens."""
    schema = _SCHEMA.validate_python(model.model_json_schema())
    properties = _object(schema["properties"])
    compact: dict[str, JsonValue] = {
        "type": "object",
        "properties": {key: _compact(_object(value)) for key, value in properties.items()},
        "required": schema.get("required", []),
    }
    return ToolDefinition(name=name, description=description, parameters=compact, kind=kind)


def parse(tool: str, model: type[A], arguments: Mapping[str, JsonValue]) -> A:
    """Check a call's arguments.

    Raises:
        InvalidArguments: says what is wrong and what is expected.
    """
    given = _canonical(model, arguments)
    for key, value in given.items():
        if isinstance(value, str) and _SURROGATE.search(value):
            raise InvalidArguments(f"{tool}: '{key}' holds a broken \\ud… escape.")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        problems = [
            _problem(str(detail["loc"][0]), detail["type"], detail["msg"], detail.get("input"))
            for detail in error.errors(include_url=False)
        ]
    raise InvalidArguments(f"{tool}: {'; '.join(problems)}.", hint=f"Give {_expected(model)}.")


def _canonical(model: type[Arguments], arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    fields = model.model_fields
    given: dict[str, JsonValue] = {}
    for key, value in arguments.items():
        snake = _CAMEL.sub(lambda match: f"_{match[1].lower()}", key)
        if value is not None and (snake == key or snake not in arguments):
            given[snake] = value
    for field, info in fields.items():
        for name in (
            name for mark in info.metadata if isinstance(mark, Also) for name in mark.names
        ):
            if field not in given and name in given:
                given[field] = given[name]
    return {key: value for key, value in given.items() if key in fields}


def _problem(field: str, kind: str, message: str, value: object) -> str:
    if kind == "missing":
        return f"'{field}' is missing"
    reason = message[:1].lower() + message[1:]
    return f"'{field}': {reason}, not {json.dumps(value, default=str)[:80]}"


def _expected(model: type[Arguments]) -> str:
    return ", ".join(
        name if field.is_required() else f"{name} (optional)"
        for name, field in model.model_fields.items()
    )


def _object(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, dict)  # noqa: S101 - pydantic writes objects here
    return value


def _compact(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    kept = {key: value for key, value in schema.items() if key not in {"title", "default"}}
    choices = kept.pop("anyOf", None)
    if isinstance(choices, list):
        (only,) = (choice for choice in choices if choice != {"type": "null"})
        kept = _object(only) | kept
    return kept
