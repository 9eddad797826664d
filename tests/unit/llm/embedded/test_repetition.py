from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockKind,
    BlockStart,
    BlockStop,
    Event,
    Status,
    Usage,
)
from agentls.core.messages import Message
from agentls.core.requests import ModelRequest
from agentls.llm.embedded.repetition import Repetition, without_loops
from support.agent_fakes import SteppedModel

SENTENCE = "The file roots.py decides whether a path is inside the workspace. "


def noticed(text: str, size: int) -> int | None:
    """Where a loop was noticed, in characters from the start."""
    watch = Repetition()
    for at in range(0, len(text), size):
        if watch.feed(text[at : at + size]):
            return at + size
    return None


@given(st.integers(1, 40), st.text(max_size=300), st.text(min_size=12, max_size=300))
def test_a_loop_is_noticed_soon(size: int, before: str, unit: str) -> None:
    found = noticed(before + unit * 40, size)
    assert found is not None or len(unit * 40) < 400
    if found is not None:
        times = max(6, 400 // len(unit) + 2)
        assert found <= len(before) + len(unit) * (times + 1) + 64 + size


def test_a_few_repetitions_are_no_loop() -> None:
    assert (
        noticed("Look: " + SENTENCE * 5 + "That is all there is to say about it here.", 7) is None
    )


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{n}. item number {n} of the list\n" for n in range(200)),
        "    pass\n" * 30,
        "| a | b | c |\n" * 5 + "and then something else entirely follows the table, at length.",
        "-" * 390,
    ],
)
def test_lists_and_code_are_no_loop(text: str) -> None:
    assert noticed(text, 5) is None


def streamed(block: BlockKind, text: str) -> list[Event]:
    deltas = [BlockDelta(index=3, text=text[at : at + 9]) for at in range(0, len(text), 9)]
    return [BlockStart(index=3, block=block), *deltas]


async def test_a_reply_that_ends_by_itself_passes_as_it_is() -> None:
    whole: list[Event] = [
        *streamed("text", SENTENCE * 4),
        BlockStop(index=3, item=Message.of("assistant", SENTENCE * 4)),
        Usage(output_tokens=9),
        Status(state="finished", stop_reason="end_turn"),
    ]
    model = SteppedModel(whole)
    assert [e async for e in without_loops(model.stream(ModelRequest()))] == whole


@pytest.mark.parametrize("block", ["text", "thinking"])
async def test_a_loop_is_cut_and_the_stream_closed(block: BlockKind) -> None:
    endless = streamed(block, SENTENCE * 500)
    model = SteppedModel(endless)
    got = [e async for e in without_loops(model.stream(ModelRequest()))]
    cut = len(got) - 4
    assert cut < 120
    assert got[:cut] == endless[:cut]
    text = "".join(e.text for e in got if isinstance(e, BlockDelta))
    assert got[cut:] == [
        BlockStop(index=3, item=Message.of("assistant", text))
        if block == "text"
        else BlockAbort(index=3, reason="repeated itself"),
        Usage(),
        Status(state="warning", message="The model only repeated itself, so its reply was ended."),
        Status(state="finished", stop_reason="max_tokens"),
    ]
    assert model.closed == 1
