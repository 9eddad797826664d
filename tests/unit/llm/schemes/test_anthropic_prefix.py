"""What a request to `/v1/messages` keeps of earlier thinking, and what it marks to be cached."""

from __future__ import annotations

import itertools
from typing import Any, cast

import pytest
from pydantic import JsonValue

from agentls.core.messages import (
    Item,
    Reasoning,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import ModelRequest
from support.anthropic_bodies import (
    ADAPTIVE,
    ANSWER,
    CACHED,
    CALL,
    HM,
    MARK,
    PLAIN,
    RESULT,
    TOOLS,
    USE,
    from_model,
    from_user,
    messages,
    said,
    text,
    user,
)

# --- thinking within a reply -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "thinks"),
    [
        ((user("a"), HM, CALL, RESULT), True),
        ((user("a"), Reasoning(encrypted="x", provider="fake"), CALL, RESULT), True),
        ((user("a"), CALL, RESULT), False),
        ((user("a"), said("b"), HM, CALL, RESULT), False),
        ((user("a"), Reasoning(text="x", signature="y", provider="other"), CALL, RESULT), False),
        # The whole loop of calls is one reply, in which a model thinks once.
        ((user("a"), HM, CALL, RESULT, ToolCall(call_id="b", name="f"),
          ToolResult(call_id="b", name="f", content="x")), True),
        ((user("a"), CALL, RESULT, HM, ToolCall(call_id="b", name="f"),
          ToolResult(call_id="b", name="f", content="x")), False),
        # What came before the last prompt does not matter; a prompt among results is none.
        ((user("a"), CALL, RESULT, said("b"), user("c")), True),
        ((user("a"), CALL, RESULT, user("c")), False),
        ((user("a"), said("b")), False),
        # Words behind results may begin a reply or not: both have to have begun with thinking.
        ((user("a"), HM, CALL, RESULT, user("c"), ToolCall(call_id="b", name="f"),
          ToolResult(call_id="b", name="f", content="x")), False),
        ((user("a"), HM, CALL, RESULT, user("c"), HM, ToolCall(call_id="b", name="f"),
          ToolResult(call_id="b", name="f", content="x")), True),
    ],
)  # fmt: skip
def test_thinking_is_off_where_the_reply_began_without(
    items: tuple[Item, ...], thinks: bool
) -> None:
    body = PLAIN.build(ModelRequest(items=items, effort="low", temperature=0.5))
    blocks = [b for m in cast("list[Any]", body["messages"]) for b in m["content"]]
    assert ("thinking" in body, "temperature" in body) == (thinks, not thinks)
    if not thinks:  # then the API refuses any of it
        assert not any("thinking" in block["type"] for block in blocks)
    assert ADAPTIVE.build(ModelRequest(items=items, effort="low"))["thinking"] == {
        "type": "adaptive",
        "display": "summarized",
    }


def test_thinking_is_not_sent_to_a_model_told_not_to_think() -> None:
    for scheme in (PLAIN, ADAPTIVE):
        assert messages(user("a"), HM, CALL, RESULT, scheme=scheme, effort="none") == [
            from_user(text("a")),
            from_model(USE),
            from_user(ANSWER),
        ]


# --- cache -----------------------------------------------------------------------------------


def marks(body: Any) -> list[list[int]]:
    """Where the marks are: field, or message and block."""
    found = [[-2, at] for at, tool in enumerate(body.get("tools", ())) if "cache_control" in tool]
    found += [[-1, at] for at, part in enumerate(body.get("system", ())) if "cache_control" in part]
    for at, message in enumerate(body["messages"]):
        found += [[at, n] for n, b in enumerate(message["content"]) if "cache_control" in b]
    return found


def test_the_prefix_of_the_next_request_is_marked() -> None:
    items: tuple[Item, ...] = (user("a"),)
    request = ModelRequest(system="s", items=items, tools=TOOLS)
    body = CACHED.build(request)
    assert (body["system"], body["messages"]) == (
        [{**text("s"), **MARK}],
        [from_user({**text("a"), **MARK})],
    )
    assert marks(body) == [[-2, 1], [-1, 0], [0, 0]]
    items += (HM, CALL, ToolCall(call_id="b", name="g"), RESULT)
    items += (ToolResult(call_id="b", name="g", content=""),)
    assert marks(CACHED.build(request.model_copy(update={"items": items}))) == [
        [-2, 1],
        [-1, 0],
        [0, 0],
        [2, 1],
    ]
    items += (said("x"), user("c"), user(" "))
    body = CACHED.build(request.model_copy(update={"items": items}))
    assert marks(body) == [[-2, 1], [-1, 0], [2, 1], [4, 0]]
    assert marks(PLAIN.build(request)) == []
    assert marks(CACHED.build(ModelRequest(items=(said("a"),)))) == [[0, 0]]


def test_a_growing_conversation_begins_as_it_did_before() -> None:
    items: tuple[Item, ...] = (user("a"), HM, CALL, RESULT, said("b"), user("c"))
    bodies = [PLAIN.build(ModelRequest(items=items[:length])) for length in (1, 4, 6)]
    for shorter, longer in itertools.pairwise(bodies):
        prefix = cast("list[JsonValue]", shorter["messages"])
        assert cast("list[JsonValue]", longer["messages"])[: len(prefix)] == prefix
