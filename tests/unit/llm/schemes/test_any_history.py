"""Any history a session can hold is one that every provider takes, in every wire format."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.messages import Item, Message, Reasoning, TextBlock, ToolCall, ToolResult
from agentls.core.requests import Effort, ModelRequest, ToolDefinition
from agentls.llm.signatures import without_thinking
from support import history, history_rules
from support.wires.all_wires import WIRES
from support.wires.wire import Wire

TOOLS = (ToolDefinition(name="look", description="Look.", parameters={"type": "object"}),)
SAID = st.sampled_from(["hi", "", " ", "\n", "ü😀", "half \ud83d", " ends with blanks \n", "\x00"])
NAMES = st.sampled_from(["look", "no such tool!", "1st", "-x", "ü", "x" * 200, "a.b:c", " "])
IDS = st.sampled_from(
    ["call_{}", "functions.look:{}", "{}", "toolu_{}", "ü{}", "x{}" + "y" * 80, "{} with blanks"]
)
PROVIDERS = st.sampled_from(["fake", "other", ""])
SEALS = st.one_of(st.none(), st.sampled_from(["c2ln", ""]))
ARGUMENTS = st.sampled_from([{}, {"a": 1}, {"ü": ["half \ud83d", None, {"b": 1.5}]}])


@st.composite
def reasonings(draw: st.DrawFn) -> Reasoning:
    """Thinking of this or another provider, with and without seals."""
    return Reasoning(
        text=draw(SAID),
        signature=draw(SEALS),
        encrypted=draw(SEALS),
        item_id=draw(st.sampled_from(["", "rs_1"])),
        provider=draw(PROVIDERS),
    )


@st.composite
def replies(draw: st.DrawFn, numbers: Iterator[int]) -> list[Item]:
    """What the model says at once, and the results of its calls."""
    items: list[Item] = [*draw(st.lists(reasonings(), max_size=2))]
    if (said := draw(SAID)).strip():
        items.append(Message.of("assistant", said))
    calls = [
        ToolCall(
            call_id=draw(IDS).format(next(numbers)),
            name=draw(NAMES),
            arguments=draw(ARGUMENTS),
            signature=draw(SEALS),
        )
        for _ in range(draw(st.integers(0, 3)))
    ]
    is_mixed = draw(st.booleans())
    if calls and is_mixed:  # thinking between calls
        items += [calls[0], draw(reasonings()), *calls[1:]]
    else:
        items += calls
    for call in calls:
        said = draw(SAID)
        failed = draw(st.booleans())
        items.append(
            ToolResult(call_id=call.call_id, name=call.name, content=said, is_error=failed)
        )
    return items


@st.composite
def histories(draw: st.DrawFn) -> tuple[Item, ...]:
    """A history that ends with something for the model to answer."""
    numbers = itertools.count()
    items: list[Item] = []
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["user", "system", "reply", "reply"]))
        if kind == "reply":
            items += draw(replies(numbers))
        else:
            content = tuple(TextBlock(text=t) for t in draw(st.lists(SAID, min_size=1, max_size=2)))
            items.append(Message(role="user" if kind == "user" else "system", content=content))
    return (*items, Message.of("user", "go on"))


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
@given(histories(), st.sampled_from([None, "none", "low", "high"]), st.sampled_from(["", "rules"]))
def test_every_provider_takes_it(
    wire: Wire, items: tuple[Item, ...], effort: Effort | None, system: str
) -> None:
    named = [i for i in items if not isinstance(i, ToolCall) or i.name.strip()]
    if len(named) == len(items):
        assert history.problems(items) == []
    request = ModelRequest(
        items=items, effort=effort, system=system, tools=TOOLS, temperature=0.5, max_tokens=4096
    )
    if "effort" not in wire.scheme().options:
        request = request.model_copy(update={"effort": None})
    for asked in (request, without_thinking(request)):
        text = json.dumps(wire.scheme().build(asked), ensure_ascii=False)
        # The transport replaces halves of characters.
        body = json.loads(text.encode("utf-8", "replace"))
        assert history_rules.problems(wire.name, body) == []
