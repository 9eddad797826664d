"""Histories and settings as the body of a request to `/v1/messages`."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentls.core.errors import BadRequest
from agentls.core.messages import (
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import Effort, ModelRequest, ToolDefinition
from agentls.llm.schemes.anthropic import Anthropic
from agentls.llm.wire.content import plain_call_id
from support.anthropic_bodies import (
    ADAPTIVE,
    ANSWER,
    CACHED,
    CALL,
    HM,
    PLAIN,
    RESULT,
    THINKING,
    TOOLS,
    from_model,
    from_user,
    messages,
    said,
    text,
    user,
)
from support.history_rules import problems

# --- settings --------------------------------------------------------------------------------


def test_smallest_request() -> None:
    assert PLAIN.build(ModelRequest(items=(user("hi"),))) == {
        "model": "m",
        "max_tokens": 8192,
        "messages": [from_user(text("hi"))],
        "stream": True,
    }


def test_all_settings_and_tools_in_the_order_given() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"b": {}, "a": {}}}
    request = ModelRequest(
        system="Be brief.",
        items=(Message.of("system", "Be kind."), user("hi")),
        tools=(
            ToolDefinition(name="zeta", description="Z.", parameters=schema),
            ToolDefinition(name="alpha", description="A.", parameters={}),
        ),
        max_tokens=10,
        temperature=0.0,
        stop=("END",),
        response_schema={"type": "object"},
    )
    assert PLAIN.build(request) == {
        "model": "m",
        "max_tokens": 10,
        "system": [text("Be brief.\n\nBe kind.")],
        "messages": [from_user(text("hi"))],
        "tools": [
            {"name": "zeta", "description": "Z.", "input_schema": schema},
            {"name": "alpha", "description": "A.", "input_schema": {"type": "object"}},
        ],
        "stream": True,
        "temperature": 0.0,
        "stop_sequences": ["END"],
        "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
    }


def test_own_fields_are_put_over_the_requests() -> None:
    scheme = Anthropic(
        "m", max_tokens=99, cache=False, extra_body={"stream": None, "top_k": 5, "temperature": 1}
    )
    assert scheme.build(ModelRequest(items=(user("hi"),), temperature=0.5)) == {
        "model": "m",
        "max_tokens": 99,
        "messages": [from_user(text("hi"))],
        "top_k": 5,
        "temperature": 1,
    }


def test_options() -> None:
    assert sorted(PLAIN.options) == [
        "effort",
        "max_tokens",
        "response_schema",
        "stop",
        "temperature",
        "tools",
        "top_p",
    ]


SHOWN: JsonValue = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("effort", "max_tokens", "sent"),
    [
        (None, None, {"max_tokens": 8192}),
        ("none", 5, {"max_tokens": 5}),
        ("low", None, {"max_tokens": 8192, "budget": 1024}),
        ("medium", 4096, {"max_tokens": 8192, "budget": 4096}),
        ("medium", 4097, {"max_tokens": 4097, "budget": 4096}),
        ("high", 100, {"max_tokens": 16484, "budget": 16384}),
    ],
)
def test_a_budget_for_thinking(
    effort: Effort | None, max_tokens: int | None, sent: dict[str, JsonValue]
) -> None:
    request = ModelRequest(items=(user("hi"),), effort=effort, max_tokens=max_tokens)
    budget = sent.pop("budget", None)
    thinking = {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget else {}
    assert PLAIN.build(request) == {
        "model": "m",
        "messages": [from_user(text("hi"))],
        "stream": True,
        **sent,
        **thinking,
    }


@pytest.mark.parametrize(
    ("effort", "sent"),
    [
        (None, {}),
        ("none", {"thinking": {"type": "disabled"}}),
        ("low", {"thinking": SHOWN, "output_config": {"effort": "low"}}),
        ("high", {"thinking": SHOWN, "output_config": {"effort": "high"}}),
    ],
)
def test_an_effort_of_models_that_adapt(effort: Effort | None, sent: dict[str, JsonValue]) -> None:
    assert ADAPTIVE.build(ModelRequest(items=(user("hi"),), effort=effort)) == {
        "model": "m",
        "max_tokens": 8192,
        "messages": [from_user(text("hi"))],
        "stream": True,
        **sent,
    }


def test_effort_and_schema_share_a_field() -> None:
    request = ModelRequest(items=(user("hi"),), effort="medium", response_schema={"a": 1})
    assert ADAPTIVE.build(request)["output_config"] == {
        "effort": "medium",
        "format": {"type": "json_schema", "schema": {"a": 1}},
    }


@pytest.mark.parametrize("scheme", [PLAIN, ADAPTIVE])
@pytest.mark.parametrize(
    ("effort", "temperature", "top_p", "sent"),
    [
        (None, 0.2, None, {"temperature": 0.2}),
        (None, None, 0.5, {"top_p": 0.5}),
        (None, 0.2, 0.5, {"temperature": 0.2}),
        ("none", 0.2, None, {"temperature": 0.2}),
        ("high", 0.2, None, {}),
        ("high", 0.2, 0.94, {}),
        ("high", 0.2, 0.95, {"top_p": 0.95}),
    ],
)
def test_sampling_that_would_be_refused_is_left_out(
    scheme: Anthropic,
    effort: Effort | None,
    temperature: float | None,
    top_p: float | None,
    sent: dict[str, float],
) -> None:
    request = ModelRequest(items=(user("hi"),), effort=effort, temperature=temperature, top_p=top_p)
    body = scheme.build(request)
    assert {key: body[key] for key in ("temperature", "top_p") if key in body} == sent


# --- histories -------------------------------------------------------------------------------


def test_a_turn_with_tools() -> None:
    items: list[Item] = [
        user("fix a.py"),
        HM,
        Reasoning(encrypted="EmwK", provider="fake"),
        said("I will look. \n"),
        ToolCall(call_id="x", name="read_file", arguments={"path": "ü.py", "end_line": 3}),
        ToolCall(call_id="y", name="glob", invalid='{"pattern": "'),
        Message.of("system", "The budget is low."),
        ToolResult(call_id="x", name="read_file", content="text", summary="short"),
        ToolResult(call_id="y", name="glob", content="Error: no JSON", is_error=True),
        user("and b.py"),
        said("Done. "),
    ]
    assert messages(*items) == [
        from_user(text("fix a.py")),
        from_model(
            THINKING,
            {"type": "redacted_thinking", "data": "EmwK"},
            text("I will look. \n"),
            {
                "type": "tool_use",
                "id": "x",
                "name": "read_file",
                "input": {"path": "ü.py", "end_line": 3},
            },
            {"type": "tool_use", "id": "y", "name": "glob", "input": {}},
        ),
        from_user(
            {"type": "tool_result", "tool_use_id": "x", "content": "text"},
            {
                "type": "tool_result",
                "tool_use_id": "y",
                "content": "Error: no JSON",
                "is_error": True,
            },
            text("The budget is low."),
            text("and b.py"),
        ),
        from_model(text("Done.")),
    ]


def test_thinking_goes_back_only_to_who_signed_it() -> None:
    signed = Reasoning(text="", signature="s", provider="fake")
    items = (
        user("a"),
        Reasoning(text="theirs", signature="c2ln", provider="other"),
        Reasoning(encrypted="theirs", provider="other"),
        Reasoning(text="unsigned", provider="fake"),
        said("b"),
        signed,
        said("c"),
        user("d"),
    )
    assert messages(*items) == [
        from_user(text("a")),
        from_model(text("b"), {"type": "thinking", "thinking": "", "signature": "s"}, text("c")),
        from_user(text("d")),
    ]


def test_what_is_empty_is_left_out_and_sides_still_alternate() -> None:
    items = (
        Message(role="user", content=(TextBlock(text=" \n"), TextBlock(text="a"))),
        HM,
        said(" "),
        user("\t"),
        user("b"),
        said("c"),
        HM,
        Message.of("user", ""),
        said("d\n\n"),
    )
    assert messages(*items) == [
        from_user(text("a"), text("b")),
        from_model(text("c"), text("d")),
    ]
    assert "system" not in PLAIN.build(ModelRequest(system=" \n", items=(user("a"),)))


def test_a_history_that_lost_its_beginning_still_begins_with_the_user() -> None:
    assert messages(said("a"), user("b")) == [
        from_user(text("Go on.")),
        from_model(text("a")),
        from_user(text("b")),
    ]


@pytest.mark.parametrize("items", [(), (user(" "),), (HM,)])
def test_nothing_said_at_all_is_refused(items: tuple[Item, ...]) -> None:
    with pytest.raises(BadRequest, match=r"^fake takes no conversation in which nothing is said"):
        messages(*items)


@pytest.mark.parametrize("content", ["", " \n"])
@pytest.mark.parametrize("is_error", [True, False])
def test_a_result_always_says_something(content: str, is_error: bool) -> None:
    result = RESULT.model_copy(update={"content": content, "is_error": is_error})
    assert messages(user("a"), CALL, result)[-1] == from_user(
        {**ANSWER, "content": "(no output)", **({"is_error": True} if is_error else {})}
    )


def test_ids_and_names_of_others_are_sent_as_ones_the_api_takes() -> None:
    made_up = "functions.glob:0"
    _, use, result = messages(
        user("a"),
        ToolCall(call_id=made_up, name="functions.glob"),
        ToolResult(call_id=made_up, name="functions.glob", content="x"),
    )
    sent = use["content"][0]
    assert sent == {"type": "tool_use", "id": sent["id"], "name": "functions_glob", "input": {}}
    assert sent["id"] == result["content"][0]["tool_use_id"] == plain_call_id(made_up)
    assert made_up != sent["id"]


@given(st.lists(st.text(), unique=True, max_size=5))
def test_ids_stay_apart_and_fit(ids: list[str]) -> None:
    sent = [plain_call_id(each) for each in ids]
    assert len(set(sent)) == len(ids)
    assert all(
        each.isascii() and each.replace("-", "_").replace("_", "a").isalnum() for each in sent
    )
    assert [plain_call_id(each) for each in sent] == sent


WORDS = st.sampled_from(["", " ", "a", "b \n", "\ud83d"])
SIGNED = st.sampled_from(["fake", "other"])
SAID: st.SearchStrategy[tuple[Item, ...]] = st.one_of(
    st.builds(lambda t: (user(t),), WORDS),
    st.builds(lambda t: (said(t),), WORDS),
    st.builds(lambda t: (Message.of("system", t),), WORDS),
    st.builds(lambda p: (HM.model_copy(update={"provider": p}),), SIGNED),
    st.builds(lambda p: (Reasoning(encrypted="x", provider=p),), SIGNED),
    st.builds(lambda t: (Reasoning(text=t, provider="fake"),), WORDS),
    st.integers(1, 3),
).map(lambda part: part if isinstance(part, tuple) else (CALL,) * part)
"""Parts of histories; calls are put in as so many copies of one, to be told apart later."""


@given(st.lists(SAID, max_size=8), st.sampled_from([None, "none"]), WORDS, st.randoms())
def test_whatever_was_said_makes_a_request_the_api_takes(
    parts: list[tuple[Item, ...]], effort: Effort | None, system: str, random: Random
) -> None:
    items: list[Item] = [user("begin")]
    for part in parts:
        items += [_numbered(item, len(items) + at) for at, item in enumerate(part)]
        calls = [item for item in items[-len(part) :] if isinstance(item, ToolCall)]
        random.shuffle(calls)
        items += [RESULT.model_copy(update={"call_id": call.call_id}) for call in calls]
    items.append(user("end"))
    for scheme in (PLAIN, ADAPTIVE, CACHED):
        request = ModelRequest(system=system, items=tuple(items), effort=effort, tools=TOOLS)
        body = json.loads(json.dumps(scheme.build(request)).replace("\\ud83d", "?"))
        assert problems("anthropic", body) == []


def _numbered(item: Item, at: int) -> Item:
    return item.model_copy(update={"call_id": f"c.{at}"}) if isinstance(item, ToolCall) else item


def test_a_model_that_always_thinks_is_never_told_not_to() -> None:
    always = Anthropic("m", thinking="always", cache=False)
    body = {
        "model": "m",
        "max_tokens": 8192,
        "messages": [from_user(text("hi"))],
        "stream": True,
    }
    for effort in (None, "none"):
        assert always.build(ModelRequest(items=(user("hi"),), effort=effort)) == body
    assert always.build(ModelRequest(items=(user("hi"),), effort="low")) == {
        **body,
        "thinking": SHOWN,
        "output_config": {"effort": "low"},
    }
