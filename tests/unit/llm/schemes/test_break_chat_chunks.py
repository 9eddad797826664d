"""Chunks of servers that count and call in ways of their own."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from agentls.core.events import BlockStop, Usage
from agentls.core.messages import ToolCall
from support.openai_streams import call, calls, chunk, read, sse

END = chunk(finish="stop")


def usage_of(*usages: JsonValue) -> list[Usage]:
    chunks = [{"choices": [], "usage": each} for each in usages]
    events, error = read(sse(chunk({"content": "a"}), END, *chunks))
    assert error is None
    return [event for event in events if isinstance(event, Usage)]


@pytest.mark.parametrize(
    ("count", "read_as"),
    [(10.0, 10), (1e300, 0), (float("inf"), 0), (float("nan"), 0), (-3.0, 0), (2.5, 0), (True, 0)],
)
def test_counts_written_as_other_numbers(count: float, read_as: int) -> None:
    assert usage_of({"prompt_tokens": count, "completion_tokens": 2}) == [
        Usage(input_tokens=read_as, output_tokens=2)
    ]


def test_counts_that_come_last_and_say_nothing_replace_none() -> None:
    zeros: JsonValue = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    told: JsonValue = {"prompt_tokens": 7, "completion_tokens": 3}
    assert usage_of(told, zeros) == [Usage(input_tokens=7, output_tokens=3)]


@pytest.mark.parametrize(
    "pieces", [['{"x":', "1}"], ['{"x":1}'], ["{", '"x":1}'], [" {", '"x":1}']]
)
def test_an_empty_object_that_only_promises_arguments(pieces: list[str]) -> None:
    begun = calls(call("{}", call_id="c", name="f"))
    events, error = read(sse(begun, *(calls(call(piece)) for piece in pieces), END))
    stops = [event.item for event in events if isinstance(event, BlockStop)]
    assert (stops, error) == ([ToolCall(call_id="c", name="f", arguments={"x": 1})], None)


@pytest.mark.parametrize(
    "last",
    [
        {**chunk(finish="stop"), "x_groq": {"id": "r", "error": "over capacity"}},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "error",
                      "error": {"code": 502, "message": "over capacity"}}]},
    ],
    ids=["groq", "openrouter"],
)  # fmt: skip
def test_an_error_that_stands_beside_the_choice_or_in_it(last: JsonValue) -> None:
    begun = calls(call('{"x":1}', call_id="c", name="f"))
    events, error = read(sse(chunk({"content": "a"}), begun, last))
    assert error is not None
    assert error[1] == "fake reported an error: over capacity."
    assert not any(isinstance(e, BlockStop) and isinstance(e.item, ToolCall) for e in events)
