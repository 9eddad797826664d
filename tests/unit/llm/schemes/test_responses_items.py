"""Which item of a `/responses` reply an event is about, and the order of the items."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from agentls.core.errors import ModelError
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import Item, Message, Reasoning, ToolCall
from agentls.llm.schemes.openai_responses_reader import ResponsesReader
from support.openai_streams import counter
from support.reply_events import FINISHED, text, thinking
from support.responses_streams import (
    RECORDED,
    Object,
    added,
    call,
    done,
    ended,
    event,
    function_call,
    message,
    only,
    read,
    reasoning,
    response,
    say,
    sse,
    think,
    without,
)
from support.stream_rules import problems

PINGS: list[Event] = [Ping(), Ping()]
USAGE = Usage(input_tokens=7, output_tokens=3)
CALLED = Status(state="finished", stop_reason="tool_use")


def items(stream: bytes) -> list[Item]:
    """The items of a whole reply, in the order they ended."""
    events, error = read(stream)
    assert error is None
    return [e.item for e in events if isinstance(e, BlockStop)]


def test_items_end_in_the_order_of_the_output() -> None:
    assert items(RECORDED["thinking between calls"]) == [
        Reasoning(item_id="rs_a", text="one", encrypted="A", provider="fake"),
        ToolCall(call_id="call_fc_a", name="f"),
        Reasoning(item_id="rs_b", encrypted="B", provider="fake"),
        ToolCall(call_id="call_fc_b", name="g"),
        Message.of("assistant", "so"),
    ]


INTERLEAVED: list[Item] = [
    Message.of("assistant", "ab"),
    ToolCall(call_id="call_fc_a", name="f", arguments={"a": 1}),
    Message.of("assistant", "cd"),
    ToolCall(call_id="call_fc_b", name="g"),
]


def test_items_whose_events_come_in_turn() -> None:
    assert items(RECORDED["interleaved"]) == INTERLEAVED


@settings(deadline=None)
@given(st.permutations([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3]))
def test_items_in_any_order_of_events_are_the_same(turns: list[int]) -> None:
    ways = [
        iter(only(say("msg_a", 0, "a", "b"), "item.added", "delta", "text.done", "item.done")),
        iter(call("fc_a", 1, "f", '{"a":', " 1}")),
        iter(only(say("msg_b", 2, "c", "d"), "item.added", "delta", "text.done", "item.done")),
        iter(call("fc_b", 3, "g", "{}")),
    ]
    events = [next(ways[turn]) for turn in turns]
    assert items(sse(*ended(events))) == INTERLEAVED
    reader = ResponsesReader("fake", counter())
    for each in events:
        told = [e.text for e in reader.feed(sse(each)) if isinstance(e, BlockDelta)]
        assert told == [each[key] for key in ("delta",) if key in each]


def test_a_text_behind_another_that_is_open_is_told_at_once_and_ends_behind_it() -> None:
    one, two = say("msg_a", 0, "a", "b"), say("msg_b", 1, "c", "d")
    stream = sse(*ended([*one[:3], *two, *one[3:]]))
    a, b = text(0, "a", "b"), text(1, "c", "d")
    assert read(stream)[0][2:-2] == [*a[:2], *b[:-1], *a[2:], b[-1]]


def test_thinking_whose_end_comes_behind_the_text_keeps_its_seal_and_its_place() -> None:
    thought, said = think("rs_a", 0, "hm", encrypted="A"), say("msg_a", 1, "so")
    sealed = Reasoning(item_id="rs_a", text="hm", encrypted="A", provider="fake")
    assert read(sse(*ended([*thought[:-1], *said, thought[-1]])))[0][2:-2] == [
        *thinking(0, "h", "m")[:-1],
        *text(1, "so")[:-1],
        BlockStop(index=0, item=sealed),
        text(1, "so")[-1],
    ]


def test_a_server_that_begins_and_ends_no_items() -> None:
    stream = sse(
        event("reasoning_text.delta", delta="hm"),
        event("output_text.delta", delta="a"),
        event("output_text.delta", delta="b"),
        event("completed", response={}),
    )
    assert [type(e).__name__ for e in read(stream)[0]][:3] == [
        "BlockStart",
        "BlockDelta",
        "BlockStop",
    ]
    assert items(stream) == [
        Reasoning(text="hm", provider="fake"),
        Message.of("assistant", "ab"),
    ]


TWO = [
    ToolCall(call_id="c1", name="f", arguments={"a": 1}),
    ToolCall(call_id="c2", name="f", arguments={"a": 2}),
]


@pytest.mark.parametrize("keys", [(), ("item_id",), ("output_index",), ("item_id", "output_index")])
@pytest.mark.parametrize("endings", [("",), ("item.added", "delta"), ("item.done",)])
def test_two_calls_with_one_place(keys: tuple[str, ...], endings: tuple[str, ...]) -> None:
    one = call("fc_1", 0, "f", '{"a":', " 1}", call_id="c1")
    two = call("fc_2", 0, "f", '{"a":', " 2}", call_id="c2")
    events = without(only([*one, *two], *endings), *keys)
    assert items(sse(*ended(events)[:-1], event("completed", response={}))) == TWO


def test_two_calls_with_one_place_at_once() -> None:
    one = call("fc_1", 0, "f", '{"a":', " 1}", call_id="c1")
    two = call("fc_2", 0, "f", '{"a":', " 2}", call_id="c2")
    mixed = [each for pair in zip(one, two, strict=True) for each in pair]
    assert items(sse(*ended(mixed))) == TWO


def test_another_id_with_every_event() -> None:
    numbers = itertools.count()
    events: list[JsonValue] = []
    for each in [*say("msg", 0, "a", "b"), *call("fc", 1, "f", "{}", call_id="c")]:
        item = each.get("item")
        if isinstance(item, dict):
            events.append({**each, "item": {**item, "id": f"x{next(numbers)}"}})
        else:
            events.append({**each, "item_id": f"x{next(numbers)}"})
    output = [message("y1", "ab"), function_call("y2", "c", "f", "{}")]
    last = event("completed", response=response("completed", *output))
    assert items(sse(*events, last)) == [
        Message.of("assistant", "ab"),
        ToolCall(call_id="c", name="f"),
    ]


@pytest.mark.parametrize(
    ("call_id", "ids"),
    [("same", ["same", "new-1"]), ("", ["new-1", "new-2"]), (None, ["new-1", "new-2"])],
)
def test_call_ids_that_are_missing_or_repeated_are_made_unique(
    call_id: str | None, ids: list[str]
) -> None:
    events: list[Object] = []
    for index in (0, 1):
        item = {**function_call(f"fc_{index}", "", "f", f'{{"a": {index}}}'), "call_id": call_id}
        events += [added(item, index), done(item, index)]
    assert items(sse(*ended(events))) == [
        ToolCall(call_id=name, name="f", arguments={"a": n}) for n, name in enumerate(ids)
    ]


def test_a_call_whose_name_comes_last_waits_for_it() -> None:
    place: Object = {"item_id": "fc_a", "output_index": 0}
    stream = sse(
        added({**function_call("fc_a", "c", "", ""), "name": ""}, 0),
        event("function_call_arguments.delta", **place, delta='{"a": 1}'),
        done(function_call("fc_a", "c", "f", '{"a": 1}'), 0),
        event("completed", response={}),
    )
    assert read(stream)[0] == [
        BlockStart(index=0, block="tool_call", call_id="c", name="f"),
        BlockDelta(index=0, text='{"a": 1}'),
        BlockStop(index=0, item=ToolCall(call_id="c", name="f", arguments={"a": 1})),
        Usage(),
        CALLED,
    ]


def test_a_call_without_a_name_does_not_run() -> None:
    stream = sse(
        event("function_call_arguments.delta", delta="{}"), event("completed", response={})
    )
    assert read(stream)[0][2:] == [
        BlockAbort(index=0, reason="the call names no tool"),
        Usage(),
        FINISHED,
    ]


def test_an_item_told_whole_twice_is_told_once() -> None:
    said, called = message("msg_a", "hi"), function_call("fc_a", "c", "f", "{}")
    events = [done(said, 0), done(said, 0), done(called, 1), done(called, 1)]
    assert items(
        sse(*events, event("completed", response=response("completed", said, called)))
    ) == [
        Message.of("assistant", "hi"),
        ToolCall(call_id="c", name="f"),
    ]


def test_two_open_calls_with_one_place_and_no_ids_of_calls() -> None:
    one, two = (function_call(f"fc_{n}", "", "f", f'{{"a": {n}}}') for n in (1, 2))
    events = [added(one, 0), added(two, 0), done(two, 0), done(one, 0)]
    assert items(sse(*events, event("completed", response={}))) == [
        ToolCall(call_id="new-1", name="f", arguments={"a": 1}),
        ToolCall(call_id="new-2", name="f", arguments={"a": 2}),
    ]


def test_two_open_calls_that_only_their_names_tell_apart() -> None:
    one, two = function_call("", "", "f", '{"a": 1}'), function_call("", "", "g", "{}")
    events = [added(one, None), added(two, None), done(two, None), done(one, None)]
    assert items(sse(*events, event("completed", response={}))) == [
        ToolCall(call_id="new-1", name="f", arguments={"a": 1}),
        ToolCall(call_id="new-2", name="g"),
    ]


def test_an_item_that_begins_twice_is_one() -> None:
    called = function_call("fc_a", "c", "f", "{}")
    events = [added(called, 0), added(called, 0), done(called, 0)]
    assert items(sse(*ended(events))) == [ToolCall(call_id="c", name="f")]


@pytest.mark.parametrize("place", [{"item_id": "rs_a"}, {"output_index": 0}])
def test_the_whole_of_a_part_behind_the_end_of_its_item(place: Object) -> None:
    late = event("reasoning_summary_text.done", **place, summary_index=0, text="one")
    longer = {**late, "text": "one more"}
    thought = done(reasoning("rs_a", "one", encrypted="A"), 0)
    sealed = Reasoning(item_id="rs_a", text="one", encrypted="A", provider="fake")
    assert items(sse(*ended([thought, late]))) == [sealed]
    # What was sealed stays as it was: the seal is for that text alone.
    more = Reasoning(item_id="rs_a", text=" more", provider="fake")
    behind = say("msg_a", 1, "so")
    said = Message.of("assistant", "so")
    assert items(sse(*ended([thought, longer, *behind]))) == [sealed, more, said]
    again = [thought, thought, longer, event("completed", response={})]
    assert items(sse(*again)) == [sealed, more]


def test_the_whole_response_makes_up_for_a_lost_item_and_a_lost_end() -> None:
    one = function_call("fc_1", "c1", "f", '{"a": 1}')
    two = function_call("fc_2", "c2", "f", '{"a": 2}')
    stream = sse(added(two, 1), event("completed", response=response("completed", one, two)))
    assert items(stream) == TWO


def test_the_whole_response_changes_no_item_that_has_ended() -> None:
    one = function_call("fc_1", "c1", "f", '{"a": 1}')
    other = {**one, "arguments": '{"a": 9}'}
    stream = sse(done(one, 0), event("completed", response=response("completed", other)))
    assert items(stream) == TWO[:1]


def test_the_name_in_the_whole_of_a_call_counts() -> None:
    begun = added(function_call("fc_1", "c1", "g", ""), 0)
    one = function_call("fc_1", "c1", "f", '{"a": 1}')
    stream = sse(begun, event("completed", response=response("completed", one)))
    assert items(stream) == TWO[:1]


def test_an_item_that_comes_late_ends_in_its_place() -> None:
    stream = sse(*ended([*say("msg_b", 1, "b"), *say("msg_a", 0, "a")]))
    b, a = text(0, "b"), text(1, "a")
    assert read(stream)[0] == [*PINGS, *b[:-1], *a, b[-1], USAGE, FINISHED]


def test_a_text_behind_a_place_that_stays_empty_is_told_at_once_and_ends_last() -> None:
    stream = sse(*ended([*say("msg_a", 4, "a"), *say("msg_b", 5, "b")]))
    a, b = text(0, "a"), text(1, "b")
    assert read(stream)[0] == [*PINGS, *a[:-1], *b[:-1], a[-1], b[-1], USAGE, FINISHED]


def test_a_text_behind_the_tools_of_the_server_ends_at_once() -> None:
    reader = ResponsesReader("fake", counter())
    stream = RECORDED["tools of the server"]
    events = list(reader.feed(stream[: stream.index(b"event: response.completed")]))
    assert [e for e in events if not isinstance(e, Ping)] == text(0, "found")


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 6))
def test_events_lost_doubled_and_shuffled_keep_the_rules(chance: Random, changes: int) -> None:
    events = [
        *think("rs_a", 0, "one", encrypted="A"),
        *call("fc_a", 1, "f", "{}"),
        *think("rs_b", 2, "two", "three"),
        *call("fc_b", 3, "g", '{"a": ', "1}"),
        *say("msg_a", 4, "so", " it is"),
    ]
    last = ended(events)[-1]
    for _ in range(changes):
        at = chance.randrange(len(events))
        match chance.randrange(4):
            case 0:
                del events[at]
            case 1:
                events.insert(chance.randrange(len(events)), events[at])
            case 2:
                events.insert(chance.randrange(len(events)), events.pop(at))
            case _:
                events[at : at + 1] = without([events[at]], chance.choice(list(events[at])))
    reader = ResponsesReader("fake", counter())
    told: list[Event] = []
    try:
        told.extend(reader.feed(sse(*({"type": "response.x", **e} for e in [*events, last]))))
        told.extend(reader.close())
    except ModelError as error:
        assert problems(told, error) == []
    else:
        assert problems(told, None) == []
