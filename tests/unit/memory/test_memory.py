from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.errors import SettingsError
from agentls.core.messages import Item, Message, Reasoning, ToolCall, ToolResult
from agentls.memory.budget import TokenBudget, estimate_tokens
from agentls.memory.groups import flat, grouped
from agentls.memory.sliding import SlidingWindow
from support.history import problems


def user(text: str) -> Message:
    return Message.of("user", text)


def reply(text: str) -> Message:
    return Message.of("assistant", text)


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id=call_id, name="t")


def result(call_id: str, content: str = "r", summary: str = "") -> ToolResult:
    return ToolResult(call_id=call_id, name="t", content=content, summary=summary)


def current_turn(items: list[Item]) -> list[Item]:
    prompts = [at for at, i in enumerate(items) if isinstance(i, Message) and i.role == "user"]
    return items[prompts[-1] :]


@st.composite
def histories(draw: st.DrawFn) -> list[Item]:
    """Valid histories that end with a prompt or in the middle of its turn."""
    items: list[Item] = [Message.of("system", "rules")] if draw(st.booleans()) else []
    for turn in range(draw(st.integers(1, 6))):
        items.append(user(f"q{turn}"))
        for step in range(draw(st.integers(0, 3))):
            ids = [f"{turn}.{step}.{n}" for n in range(draw(st.integers(1, 3)))]
            if draw(st.booleans()):
                items.append(Reasoning(text="hm"))
            items += [call(i) for i in ids]
            items += [result(i, "x" * draw(st.integers(0, 400)), "short") for i in ids]
        items.append(reply(f"a{turn}"))
    return items[:-1] if draw(st.booleans()) else [*items, user("last")]


async def test_old_messages_go_and_system_messages_and_the_turn_stay() -> None:
    items: list[Item] = [
        Message.of("system", "rules"),
        user("a"),
        reply("b"),
        user("c"),
        call("1"),
        result("1"),
        reply("d"),
        user("e"),
        call("2"),
        result("2"),
    ]
    window = await SlidingWindow(4).window(items)
    assert window == [items[0], *items[3:]]
    # One fewer does not fit the whole exchange, and half of one is never sent.
    assert await SlidingWindow(3).window(items) == [items[0], *items[7:]]


def test_a_window_of_nothing_is_refused() -> None:
    with pytest.raises(SettingsError, match="at least 1"):
        SlidingWindow(0)


@given(histories(), st.integers(1, 12))
async def test_any_window_is_a_valid_history_that_keeps_the_turn(
    items: list[Item], size: int
) -> None:
    window = await SlidingWindow(size).window(items)
    assert problems(window) == []
    turn_at = max(
        i for i, item in enumerate(items) if isinstance(item, Message) and item.role == "user"
    )
    assert window[-len(items[turn_at:]) :] == items[turn_at:]
    spoken = [i for i in window if not (isinstance(i, Message) and i.role == "system")]
    assert isinstance(spoken[0], Message)
    assert spoken[0].role == "user"


@given(histories())
def test_grouping_loses_nothing(items: list[Item]) -> None:
    assert flat(grouped(items)) == items


async def test_what_the_loop_adds_does_not_begin_a_turn() -> None:
    go_on = user("go on").model_copy(update={"ephemeral": True})
    items: list[Item] = [user("a"), reply("b"), user("q"), reply("half"), go_on]
    assert await SlidingWindow(1).window(items) == items[2:]


async def test_old_results_shrink_before_anything_is_dropped() -> None:
    big = "x" * 3000
    items: list[Item] = [
        user("q"),
        call("1"),
        result("1", big, "read a.py"),
        call("2"),
        result("2", big, "read b.py"),
    ]
    window = await TokenBudget(SlidingWindow(), 1200).window(items)
    note = "[read a.py; the full output was left out to save space, call again if needed]"
    assert window == [*items[:2], result("1", note, "read a.py"), *items[3:]]


@given(histories(), st.integers(0, 500))
async def test_a_budgeted_window_is_valid_and_fits_unless_the_turn_alone_does_not(
    items: list[Item], budget: int
) -> None:
    window = await TokenBudget(SlidingWindow(), budget).window(items)
    assert problems(window) == []
    turn_at = max(
        i for i, item in enumerate(items) if isinstance(item, Message) and item.role == "user"
    )
    total = sum(map(estimate_tokens, window))
    past = [
        i
        for i in window[: len(window) - len(items[turn_at:])]
        if not isinstance(i, Message) or i.role != "system"
    ]
    assert total <= budget or past == []
