"""What a model does not take is left out and said."""

from __future__ import annotations

import pytest

from agentls.core.errors import BadRequest
from agentls.core.events import Usage
from agentls.core.messages import Message, Reasoning, ToolCall, ToolResult
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest, Option, Price
from agentls.llm.options import fitted
from agentls.llm.prices import priced
from agentls.llm.signatures import is_rejected, without_thinking

ALL: frozenset[Option] = frozenset(
    {"max_tokens", "temperature", "top_p", "seed", "stop", "effort", "response_schema", "tools"}
)
FULL = ModelRequest(max_tokens=100, temperature=1.5, top_p=0.5, seed=1, stop=("x",), effort="high")


def info(**capabilities: object) -> ModelInfo:
    return ModelInfo(provider="p", name="m", capabilities=Capabilities.model_validate(capabilities))


def test_what_fits_stays_as_it_is() -> None:
    assert fitted(FULL, info(), ALL) == (FULL, ())


def test_what_the_format_or_the_model_does_not_have_is_named() -> None:
    carried = ALL - {"seed", "top_p"}
    request, notes = fitted(FULL, info(refuses=frozenset({"temperature"})), carried)
    assert request == ModelRequest(max_tokens=100, stop=("x",), effort="high")
    assert notes == ("m does not take temperature, top_p, seed: left out.",)


def test_limits_lower_and_say_so() -> None:
    request, notes = fitted(FULL, info(max_output_tokens=50, max_temperature=1.0), ALL)
    assert (request.max_tokens, request.temperature) == (50, 1.0)
    assert notes == (
        "m writes at most 50 tokens: max_tokens was lowered to it.",
        "m takes a temperature of at most 1: lowered to it.",
    )


def test_no_effort_is_nothing_to_a_model_that_cannot_think() -> None:
    request = ModelRequest(effort="none")
    assert fitted(request, info(), ALL - {"effort"}) == (ModelRequest(), ())
    assert fitted(request, info(refuses=frozenset({"effort"})), ALL) == (ModelRequest(), ())


def test_a_schema_is_never_left_out() -> None:
    request = ModelRequest(response_schema={"type": "object"})
    with pytest.raises(BadRequest, match="cannot hold its reply to a JSON schema"):
        fitted(request, info(), ALL - {"response_schema"})


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        (None, Usage(input_tokens=10), None),
        (Price(input=2, output=10), Usage(input_tokens=1_000_000, output_tokens=100_000), 3.0),
        (
            Price(input=2, output=10, cache_read=0.2, cache_write=2.5),
            Usage(input_tokens=1_000_000, cache_read_tokens=500_000, cache_creation_tokens=100_000),
            0.8 + 0.1 + 0.25,
        ),
        (Price(input=1, output=1), Usage(input_tokens=5, cache_read_tokens=9), 9e-6),
    ],
)
def test_costs(price: Price | None, usage: Usage, cost: float | None) -> None:
    found = priced(usage, price).cost_usd
    assert found == (None if cost is None else pytest.approx(cost))


def test_totals_of_costs() -> None:
    known, unknown = Usage(input_tokens=1, cost_usd=0.5), Usage(input_tokens=1)
    assert (Usage() + known + known).cost_usd == 1.0
    assert (known + unknown).cost_usd is None
    assert (Usage() + Usage()).cost_usd is None


SIGNED = ModelRequest(
    items=(
        Message.of("user", "hi"),
        Reasoning(text="hm", signature="s", provider="p"),
        ToolCall(call_id="1", name="f", signature="t"),
        ToolResult(call_id="1", name="f", content="x"),
    )
)


@pytest.mark.parametrize(
    ("request_", "provider", "message", "rejected"),
    [
        (SIGNED, "p", "Invalid `signature` in `thinking` block", True),
        (SIGNED, "p", "The encrypted content could not be verified", True),
        (SIGNED, "other", "invalid thought signature", True),  # the call's
        (SIGNED, "p", "prompt is too long", False),
        (ModelRequest(items=SIGNED.items[:1]), "p", "Invalid signature", False),
        (ModelRequest(items=SIGNED.items[:2]), "other", "Invalid signature", False),
    ],
)
def test_rejected_thinking(
    request_: ModelRequest, provider: str, message: str, rejected: bool
) -> None:
    assert is_rejected(BadRequest(message), request_, provider) is rejected


def test_without_thinking() -> None:
    assert without_thinking(SIGNED) == ModelRequest(
        items=(SIGNED.items[0], ToolCall(call_id="1", name="f"), SIGNED.items[3]), effort="none"
    )
