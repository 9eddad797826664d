"""Whatever a network does to the borders of bytes, replies say the same: all wire formats."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.errors import ModelError
from agentls.core.events import Event
from agentls.llm.wire.scheme import Reader
from support.stream_rules import numbered, problems
from support.wires.all_wires import WIRES, recorded
from support.wires.wire import Wire


def made(wire: Wire) -> dict[str, bytes]:
    """Replies from the format's builders."""
    whole = wire.said("a", "ü😀\u2028", "")
    return {
        "said": whole,
        "called": wire.called(("c1", "f", {"a": "ü"}), ("c2", "g", {})),
        "thought": wire.thought("hm😀", "so"),
        "cut": wire.cut("so far"),
        "cut call": wire.cut_call("f", '{"a": "b'),
        "refused": wire.refused("no"),
        "error": wire.frames(whole)[0] + wire.error("busy"),
        "pings": wire.ping * 3,
        "half": whole[: len(whole) // 2],
    }


STREAMS: dict[str, tuple[Callable[[], Reader], bytes]] = {
    f"{wire.name}: {name}": (functools.partial(wire.scheme().reader, {}), stream)
    for wire in WIRES
    for name, stream in (made(wire) | recorded(wire)).items()
}


def read(name: str, *slices: bytes) -> tuple[list[Event], ModelError | None]:
    """Events of a stream in slices, and the error it ended with."""
    reader = STREAMS[name][0]()
    events: list[Event] = []
    try:
        for piece in slices:
            for event in reader.feed(piece):
                events.append(event)
        for event in reader.close():
            events.append(event)
    except ModelError as error:
        return events, error
    return events, None


def compared(outcome: tuple[list[Event], ModelError | None]) -> tuple[list[Event], object]:
    """An outcome without what may differ: ids that were made up."""
    events, error = outcome
    told = error and (type(error), error.message, error.status, error.retryable)
    return numbered(events), told


@pytest.mark.parametrize("name", STREAMS)
def test_every_stream_keeps_the_rules_byte_by_byte(name: str) -> None:
    stream = STREAMS[name][1]
    whole = read(name, stream)
    assert problems(*whole) == []
    slices = (stream[at : at + 1] for at in range(len(stream)))
    assert compared(read(name, *slices)) == compared(whole)


@given(st.sampled_from(sorted(STREAMS)), st.lists(st.floats(0, 1), max_size=12))
def test_any_slicing_gives_the_same_events(name: str, cuts: list[float]) -> None:
    stream = STREAMS[name][1]
    edges = sorted({0, len(stream), *(int(cut * len(stream)) for cut in cuts)})
    sliced = read(name, *(stream[a:b] for a, b in itertools.pairwise(edges)))
    assert compared(sliced) == compared(read(name, stream))


@given(st.sampled_from(sorted(STREAMS)), st.floats(0, 1, exclude_max=True))
def test_a_stream_cut_anywhere_keeps_the_rules(name: str, cut: float) -> None:
    stream = STREAMS[name][1]
    events, error = read(name, stream[: int(cut * len(stream))])
    assert problems(events, error) == []


@given(st.sampled_from(sorted(STREAMS)), st.floats(0, 1, exclude_max=True), st.binary(max_size=9))
def test_a_stream_with_other_bytes_in_it_keeps_the_rules(
    name: str, cut: float, other: bytes
) -> None:
    stream = STREAMS[name][1]
    at = int(cut * len(stream))
    events, error = read(name, stream[:at], other, stream[at + len(other) :])
    assert problems(events, error) == []
