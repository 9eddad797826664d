"""How the arguments of a call are read."""

from __future__ import annotations

import json
from typing import Annotated

import pytest
from pydantic import JsonValue

from agentls.core.errors import InvalidArguments
from agentls.tools.arguments import Also, Arguments, define, parse


class Sample(Arguments):
    path: Annotated[str, Also("file_path", "filename")]
    title: str = ""
    first_line: int | None = None
    deep: bool = False


def read(**arguments: JsonValue) -> Sample:
    return parse("sample", Sample, arguments)


def refusal(**arguments: JsonValue) -> str:
    with pytest.raises(InvalidArguments) as caught:
        read(**arguments)
    return str(caught.value)


def test_the_schema_is_compact() -> None:
    definition = define("sample", "Says.", Sample, "read")

    assert definition.model_dump() == {
        "name": "sample",
        "description": "Says.",
        "kind": "read",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "title": {"type": "string"},
                "first_line": {"type": "integer"},
                "deep": {"type": "boolean"},
            },
            "required": ["path"],
        },
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a", "first_line": 5, "deep": True},
        {"file_path": "a", "first_line": "5", "deep": "true"},
        {"filename": "a", "firstLine": 5.0, "deep": 1},
        {"filePath": "a", "first_line": 5, "deep": True, "title": None},
        {"path": "a", "file_path": "b", "first_line": 5, "firstLine": 6, "deep": True},
        {"path": "a", "first_line": 5, "deep": True, "requires_approval": False, "mode": "edit"},
    ],
)
def test_the_ways_models_write_the_same_arguments(arguments: dict[str, JsonValue]) -> None:
    assert read(**arguments) == Sample(path="a", first_line=5, deep=True)


def test_a_number_for_a_text_is_taken() -> None:
    assert read(path=5) == Sample(path="5")


def test_a_missing_argument_is_named_with_what_is_expected() -> None:
    assert refusal(start=3) == (
        "sample: 'path' is missing. "
        "Give path, title (optional), first_line (optional), deep (optional)."
    )


def test_null_is_as_good_as_missing() -> None:
    assert refusal(path=None).startswith("sample: 'path' is missing.")


def test_a_value_of_the_wrong_type_is_named() -> None:
    message = refusal(path=["a"], first_line="soon")

    assert "'path': input should be a valid string, not [\"a\"]" in message
    assert "'first_line': " in message
    assert 'not "soon"' in message


def test_a_message_stays_short_for_a_huge_value() -> None:
    assert len(refusal(path=["x" * 100_000])) < 400


def test_a_broken_escape_is_refused_before_it_reaches_a_file() -> None:
    assert refusal(path=json.loads('"a\\ud800"')) == "sample: 'path' holds a broken \\ud… escape."
