"""Calls that a model printed although it has a better way: which are believed and which not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentls.core.errors import StreamBroken
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Status,
)
from agentls.core.messages import ToolCall
from agentls.core.requests import ToolCalling
from agentls.llm.text_calls.recovered import RecoveringModel, with_text_calls
from agentls.llm.text_calls.reply import ThinkingModel
from agentls.llm.text_calls.tools import TextToolModel
from support.reply_events import text, thinking
from support.text_replies import (
    ARGUMENTS,
    CALL,
    CUT,
    END,
    USAGE,
    USE,
    Inner,
    asking,
    call,
    joined,
    replies,
    reply,
    sliced,
    texts_of,
)

MARKUP = f"<tool_call>{CALL}</tool_call>"
FENCE = f"```json\n{CALL}\n```"
NATIVE: list[Event] = [
    BlockStart(index=1, block="tool_call", call_id="own", name="grep"),
    BlockDelta(index=1, text="{}"),
    BlockStop(index=1, item=ToolCall(call_id="own", name="grep")),
]


async def made(*pieces: str, end: Status = END) -> list[Event]:
    return joined(await replies(RecoveringModel, reply(*pieces, end=end)))


@pytest.mark.parametrize(
    "printed",
    [MARKUP, FENCE, f"{FENCE}\n", CALL, f"[{CALL}]", f"[TOOL_CALLS][{CALL}]", f"<tool_call>{CALL}"],
)
async def test_a_printed_call_is_a_call(printed: str) -> None:
    for pieces in ([printed], list(printed)):
        assert await made(*pieces) == [*call(0), USAGE, USE]
        assert await made("I look.\n\n", *pieces) == [*text(0, "I look."), *call(1), USAGE, USE]


async def test_several_printed_calls() -> None:
    for printed in (f"{MARKUP}\n{MARKUP}", f"{FENCE}\n\n{FENCE}", f"[{CALL}, {CALL}]"):
        assert await made(printed) == [*call(0), *call(1, number=2), USAGE, USE]


@pytest.mark.parametrize(
    "whole",
    [
        f"{FENCE}\nThis is how a call looks.",
        f"{CALL}\nThis is how a call looks.",
        f"{FENCE}\n{FENCE}\nThese are two.\n",
        '```json\n{"name": "agentls", "version": "1.0.0"}\n```',
        '{"name": "agentls", "version": "1.0.0"}',
        '{"name": "fly", "arguments": {}}',
        '{"name": "read_file", "arguments": {}}',
        '{"name": "read_file", "arguments": {"path": "a.py", "mode": "r"}}',
        '{"name": "read_file", "arguments": {"path": "a.py"',
        '<tool_call>{"name": "fly", "arguments": {}}</tool_call>',
        f"`{MARKUP}`",
        f"```xml\n{MARKUP}\n```",
        "The end.\n\n",
    ],
)
async def test_what_may_be_meant_as_words_stays_words(whole: str) -> None:
    for pieces in ([whole], list(whole)):
        assert await made(*pieces) == [*text(0, whole), USAGE, END]


async def test_words_behind_a_tagged_call_come_before_it() -> None:
    events = await made(f"One.\n{MARKUP}\nTwo.")
    assert events == [*text(0, "One.\nTwo."), *call(1), USAGE, USE]


async def test_a_fence_before_more_words_stays_words_behind_a_tagged_call_too() -> None:
    events = await made(f"{MARKUP}\n{FENCE}\nwords")
    assert events == [*text(0, f"\n{FENCE}\nwords"), *call(1), USAGE, USE]


async def test_a_bad_call_in_a_tag_is_one_to_repair() -> None:
    body = '{"name": "read_file", "arguments": {"path": }'
    events = await made(f"<tool_call>{body}</tool_call>")
    item = ToolCall(call_id="call_1", name="read_file", invalid=body)
    assert events == [*call(0, "read_file", body, item=item), USAGE, USE]


@pytest.mark.parametrize("printed", [MARKUP, FENCE, CALL, f"<tool_call>{CALL[:-5]}"])
async def test_nothing_runs_from_a_cut_reply(printed: str) -> None:
    events = await made(printed, end=CUT)
    assert isinstance(events[-3], BlockAbort)
    assert events[-2:] == [USAGE, CUT]
    assert not any(isinstance(event, BlockStop) for event in events)


@pytest.mark.parametrize("printed", [MARKUP, FENCE, CALL, f"{MARKUP}\nand words", "<tool_call>{"])
async def test_with_a_native_call_all_text_is_words(printed: str) -> None:
    use = Status(state="finished", stop_reason="tool_use")
    for pieces in ([printed], list(printed)):
        events = await replies(RecoveringModel, [*text(0, *pieces), *NATIVE, USAGE, use])
        assert joined(events) == [*text(0, printed), *NATIVE, USAGE, use]
    late = [*NATIVE, *text(2, printed), USAGE, use]
    expected = [
        *(event.model_copy(update={"index": 0}) for event in NATIVE if hasattr(event, "index")),
        *text(1, printed),
        USAGE,
        use,
    ]
    assert joined(await replies(RecoveringModel, late)) == expected


async def test_thinking_never_calls() -> None:
    whole = f"<think>{MARKUP}</think>No."
    assert await made(whole) == [*thinking(0, MARKUP), *text(1, "No."), USAGE, END]
    assert await made(f"<think>{MARKUP}") == [*thinking(0, MARKUP), USAGE, END]
    assert await made(f"{MARKUP}\n</think>\nNo.") == [
        *text(0, MARKUP),
        *text(1, "No."),
        USAGE,
        END,
    ]


async def test_native_thinking_never_calls() -> None:
    events = await replies(RecoveringModel, [*thinking(0, MARKUP), *text(1, "No."), USAGE, END])
    assert events == [*thinking(0, MARKUP), *text(1, "No."), USAGE, END]


async def test_results_that_the_model_makes_up_end_the_stream() -> None:
    inner = Inner(reply(MARKUP, "\n<tool_result>", "made up"))
    model = RecoveringModel(inner, new_id=lambda: "call_1")
    assert joined([event async for event in model.stream(asking())]) == [*call(0), USE]
    assert inner.closed_streams == 1


async def test_words_wait_only_while_they_may_be_a_call() -> None:
    model = RecoveringModel(Inner(reply("One\n{", '"na', 'me": "x', "y", "```")))
    deltas = [e.text async for e in model.stream(asking()) if isinstance(e, BlockDelta)]
    assert deltas == ["One", '\n{"name": "x', "y", "```"]


async def test_without_tools_nothing_is_a_call() -> None:
    events = await replies(RecoveringModel, reply(MARKUP), asking(tools=()))
    assert joined(events) == [*text(0, MARKUP), USAGE, END]


async def test_a_broken_stream_calls_nothing() -> None:
    events: list[Event] = []
    with pytest.raises(StreamBroken):
        async for event in RecoveringModel(Inner([*text(0, MARKUP), StreamBroken("gone")])).stream(
            asking()
        ):
            events.append(event)
    assert events == []


@settings(max_examples=150)
@given(
    texts_of(MARKUP, CALL, FENCE, "<think>", "</think>", "a", "\n", "`", "{", ARGUMENTS, "```\n"),
    st.lists(st.integers(0, 2000)),
    st.sampled_from([END, CUT]),
)
async def test_any_slicing_gives_the_same_blocks(whole: str, cuts: list[int], end: Status) -> None:
    events = await replies(RecoveringModel, reply(*sliced(whole, cuts), end=end))
    assert joined(events) == await made(whole, end=end)
    began = [event.index for event in events if isinstance(event, BlockStart)]
    ended = [event.index for event in events if isinstance(event, BlockStop | BlockAbort)]
    assert began == list(range(len(began)))
    assert sorted(ended) == began


@pytest.mark.parametrize(
    ("calling", "wrapper"),
    [
        ("text", TextToolModel),
        ("native", RecoveringModel),
        ("constrained", ThinkingModel),
        ("none", ThinkingModel),
    ],
)
def test_how_a_model_calls_decides_how_its_text_is_read(
    calling: ToolCalling, wrapper: type[object]
) -> None:
    assert type(with_text_calls(Inner([], calling))) is wrapper
