from __future__ import annotations

from dataclasses import dataclass

import pytest

from agentls.agent.graph import GraphRunner
from agentls.agent.state import END, State
from agentls.core.errors import UnknownNode


@dataclass
class Step:
    name: str
    to: str | None

    async def process(self, state: State) -> State:
        trail = state.context.setdefault("trail", [])
        assert isinstance(trail, list)
        trail.append(self.name)
        state.next_node = self.to
        return state


async def test_runs_from_the_entry_until_the_end_name() -> None:
    runner = GraphRunner({"llm": Step("llm", "custom")})
    runner.register("custom", Step("custom", END))
    state = await runner.run(State())
    assert state == State(context={"trail": ["llm", "custom"]}, next_node=END)


async def test_a_node_that_does_not_route_ends_the_run() -> None:
    state = await GraphRunner({"llm": Step("llm", None)}).run(State(next_node="llm"))
    assert state.context == {"trail": ["llm"]}


async def test_a_node_may_return_another_state() -> None:
    class Fresh:
        async def process(self, state: State) -> State:
            return State(context={"fresh": True}, next_node="llm2")

    runner = GraphRunner({"llm": Fresh(), "llm2": Step("llm2", END)})
    assert (await runner.run(State())).context == {"fresh": True, "trail": ["llm2"]}


async def test_an_unknown_node_is_an_error_of_its_own() -> None:
    runner = GraphRunner({"llm": Step("llm", "nowhere")})
    with pytest.raises(UnknownNode) as caught:
        await runner.run(State())
    assert str(caught.value) == "The graph has no node named 'nowhere'. Registered: llm."
    assert runner.state.context == {"trail": ["llm"]}
