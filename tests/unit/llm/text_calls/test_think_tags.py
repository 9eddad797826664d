"""Thinking in tags: what of a text is thinking, and what becomes of it in a model's reply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.errors import StreamBroken
from agentls.core.events import BlockAbort, BlockDelta, BlockStart, Ping, Status
from agentls.llm.text_calls.reply import ThinkingModel
from agentls.llm.text_calls.think_tags import Spoken, ThinkTags, Thought
from support.reply_events import text, thinking
from support.text_replies import (
    CUT,
    END,
    USAGE,
    Inner,
    asking,
    joined,
    replies,
    reply,
    sliced,
    texts_of,
)


def parts(*pieces: str) -> tuple[str, str]:
    """The thinking and the rest of a text."""
    tags = ThinkTags()
    found = [part for piece in pieces for part in tags.feed(piece)] + list(tags.close())
    return (
        "".join(part.text for part in found if isinstance(part, Thought)),
        "".join(part.text for part in found if isinstance(part, Spoken)),
    )


CASES = [
    ("<think>hm</think>hi", "hm", "hi"),
    ("\n <think>\nhm\n</think>\n\nhi ", "hm\n", "hi "),
    ("<thinking>hm</thinking>hi", "hm", "hi"),
    ("<reasoning>hm</reasoning>hi", "hm", "hi"),
    ("[THINK]hm[/THINK]hi", "hm", "hi"),
    ("<think>a</think>\n<think>b</think>c", "ab", "c"),
    ("<think>\n\n</think>\n\nhi", "", "hi"),
    ("<think>a </thi b", "a </thi b", ""),
    ("<think>hm", "hm", ""),
    ("<think>hm</think", "hm</think", ""),
    ("<think>a <think> b</think>c", "a <think> b", "c"),
    ("<think>a</thinking>b", "a</thinking>b", ""),
    ("  hi <think>no</think>", "", "  hi <think>no</think>"),
    ("<thin", "", "<thin"),
    ("\n ", "", "\n "),
    ("<b>bold</b>", "", "<b>bold</b>"),
    ("```\n<think>no</think>\n```", "", "```\n<think>no</think>\n```"),
    (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>hi",
        "hm",
        "hi",
    ),
]


@pytest.mark.parametrize(("whole", "thought", "spoken"), CASES)
def test_thinking_stands_at_the_beginning(whole: str, thought: str, spoken: str) -> None:
    assert parts(whole) == (thought, spoken)
    assert parts(*whole) == (thought, spoken)


@given(
    texts_of("<think>", "</think>", "<thi", "nk>", "a", " ", "\n", "<", "/"),
    st.lists(st.integers(0, 1000)),
)
def test_any_slicing_gives_the_same(whole: str, cuts: list[int]) -> None:
    assert parts(*sliced(whole, cuts)) == parts(whole)


async def test_thinking_becomes_a_block_of_its_own() -> None:
    events = await replies(
        ThinkingModel, [Ping(), *reply("<th", "ink>h", "m</th", "ink>\n", "Hi.")]
    )
    assert events == [Ping(), *thinking(0, "h", "m"), *text(1, "Hi."), USAGE, END]


async def test_thinking_whose_tag_never_closes_is_all_there_is() -> None:
    events = await replies(ThinkingModel, reply("<think>Shall I say ", "hello"))
    assert events == [*thinking(0, "Shall I say ", "hello"), USAGE, END]


async def test_cut_thinking_stays_thinking() -> None:
    events = await replies(ThinkingModel, reply("<think>so", end=CUT))
    assert events == [*thinking(0, "so"), USAGE, CUT]


async def test_behind_a_closing_tag_without_an_opening_one_a_new_block_begins() -> None:
    events = await replies(ThinkingModel, reply("hm, hm\n</th", "ink>\n\nHi."))
    assert events == [*text(0, "hm, hm"), *text(1, "Hi."), USAGE, END]


@pytest.mark.parametrize(
    "whole",
    [
        "The tag `</think>` ends it.",
        "Like this:\n```html\n<think>a</think>\n```\nDone.",
        "Hi.\n<think>late</think>\nBye.",
        "Hi. <think>late",
        "a < b, a<b> and \\(x\\)\n\n",
    ],
)
async def test_tags_in_code_and_late_ones_are_text(whole: str) -> None:
    assert joined(await replies(ThinkingModel, reply(*whole))) == [*text(0, whole), USAGE, END]


async def test_a_second_closing_tag_is_text() -> None:
    events = joined(await replies(ThinkingModel, reply("<think>a</think>b</think>c")))
    assert [event for event in events if isinstance(event, BlockDelta)] == [
        BlockDelta(index=0, text="a"),
        BlockDelta(index=1, text="b"),
        BlockDelta(index=2, text="</think>c"),
    ]


async def test_only_the_first_closing_tag_alone_is_one() -> None:
    events = joined(await replies(ThinkingModel, reply("a</think>b</think>c")))
    assert events == [*text(0, "a"), *text(1, "b"), *text(2, "</think>c"), USAGE, END]


async def test_native_thinking_and_calls_keep_their_place() -> None:
    events = await replies(
        ThinkingModel, [*thinking(0, "native"), *text(1, "<think>tagged</think>Hi."), USAGE, END]
    )
    assert events == [
        *thinking(0, "native"),
        *thinking(1, "tagged"),
        *text(2, "Hi."),
        USAGE,
        END,
    ]


async def test_words_are_not_held_back() -> None:
    model = ThinkingModel(inner := Inner(reply("One", " two", " three")))
    stream = model.stream(asking())
    assert await anext(stream) == BlockStart(index=0, block="text")
    assert await anext(stream) == BlockDelta(index=0, text="One")
    assert inner.sent == 2
    await stream.aclose()
    assert inner.closed_streams == 1


async def test_a_stream_that_breaks_aborts_each_open_block_once() -> None:
    error = StreamBroken("gone", provider="fake")
    events: list[object] = []
    start = [*text(0, "<think>a")[:-1], BlockAbort(index=0, reason="the reply broke off"), error]
    with pytest.raises(StreamBroken):
        async for event in ThinkingModel(Inner(start)).stream(asking()):
            events.append(event)
    assert events == [*thinking(0, "a")[:-1], BlockAbort(index=0, reason="the reply broke off")]


async def test_a_block_that_was_complete_is_aborted_when_the_reply_breaks() -> None:
    events: list[object] = []
    with pytest.raises(StreamBroken):
        async for event in ThinkingModel(Inner([*text(0, "a"), StreamBroken("gone")])).stream(
            asking()
        ):
            events.append(event)
    assert events == [*text(0, "a")[:-1], BlockAbort(index=0, reason="the reply broke off")]


async def test_a_stream_without_an_end_has_none() -> None:
    events = await replies(ThinkingModel, text(0, "a"))
    assert events == [*text(0, "a")[:-1], BlockAbort(index=0, reason="the reply broke off")]


async def test_other_events_pass_and_usage_comes_last() -> None:
    warning = Status(state="warning", message="slow")
    events = await replies(ThinkingModel, [warning, USAGE, *text(0, "a"), END])
    assert events == [warning, *text(0, "a"), USAGE, END]


async def test_closing_closes_the_inner_model() -> None:
    model = ThinkingModel(inner := Inner([]))
    await model.aclose()
    assert inner.closed
    assert model.info == inner.info
