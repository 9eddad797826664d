"""Histories and settings as the body of a request to Gemini."""

from __future__ import annotations

import json
from typing import Any, Literal, cast

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agentls.core.errors import BadRequest
from agentls.core.messages import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import Effort, ModelRequest, ToolDefinition
from agentls.llm.http.endpoint import Endpoint
from agentls.llm.schemes.gemini import Gemini

Thinking = Literal["budget", "level", "off"]
OFF = Gemini("m", provider="fake", thinking="off")
BUDGET = Gemini("m", provider="fake")
LEVEL = Gemini("m", provider="fake", thinking="level")
DUMMY = "skip_thought_signature_validator"


def contents(*items: Item, gemini: Gemini = OFF) -> Any:
    return gemini.build(ModelRequest(items=items))["contents"]


def user(text: str) -> Message:
    return Message.of("user", text)


def said(text: str) -> Message:
    return Message.of("assistant", text)


def result(call_id: str, text: str = "ok", *, is_error: bool = False) -> ToolResult:
    return ToolResult(call_id=call_id, name="f", content=text, is_error=is_error)


def thought(text: str = "", signature: str | None = None, provider: str = "fake") -> Reasoning:
    return Reasoning(text=text, signature=signature, provider=provider)


def test_smallest_request() -> None:
    assert OFF.build(ModelRequest(items=(user("hi"),))) == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}]
    }


def test_all_settings_and_tools_in_the_order_given() -> None:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"b": {"$ref": "#/$defs/x"}, "a": {}},
        "additionalProperties": False,
        "$defs": {"x": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    }
    request = ModelRequest(
        system="Be brief.",
        items=(Message.of("system", "A rule."), user("hi")),
        tools=(
            ToolDefinition(name="zeta", description="Z.", parameters=schema),
            ToolDefinition(name="alpha", description="A.", parameters={"type": "object"}),
        ),
        max_tokens=10,
        temperature=0.0,
        top_p=0.5,
        seed=0,
        stop=("x", "y"),
        effort="medium",
        response_schema={"type": "string"},
    )
    assert json.dumps(BUDGET.build(request)) == json.dumps(
        {
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "systemInstruction": {"parts": [{"text": "Be brief.\n\nA rule."}]},
            "tools": [
                {
                    "functionDeclarations": [
                        {"name": "zeta", "description": "Z.", "parametersJsonSchema": schema},
                        {
                            "name": "alpha",
                            "description": "A.",
                            "parametersJsonSchema": {"type": "object"},
                        },
                    ]
                }
            ],
            "generationConfig": {
                "maxOutputTokens": 10,
                "temperature": 0.0,
                "topP": 0.5,
                "seed": 0,
                "stopSequences": ["x", "y"],
                "thinkingConfig": {"includeThoughts": True, "thinkingBudget": 8192},
                "responseMimeType": "application/json",
                "responseJsonSchema": {"type": "string"},
            },
        }
    )


@pytest.mark.parametrize(
    ("thinking", "model", "effort", "config"),
    [
        ("budget", "gemini-2.5-flash", None, {"includeThoughts": True, "thinkingBudget": -1}),
        ("budget", "gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("budget", "gemini-2.5-pro", "none", {"thinkingBudget": 128}),
        ("budget", "m", "low", {"includeThoughts": True, "thinkingBudget": 1024}),
        ("budget", "m", "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
        ("budget", "m", "high", {"includeThoughts": True, "thinkingBudget": 24_576}),
        ("level", "gemini-3-flash", None, {"includeThoughts": True}),
        ("level", "gemini-3-flash", "none", {"thinkingLevel": "LOW"}),
        ("level", "m", "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
        ("level", "m", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
        ("level", "m", "high", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
    ],
)
def test_efforts(
    thinking: Thinking, model: str, effort: Effort | None, config: dict[str, JsonValue]
) -> None:
    body = Gemini(model, thinking=thinking).build(ModelRequest(items=(user("hi"),), effort=effort))
    assert body["generationConfig"] == {"thinkingConfig": config}


def test_a_model_that_cannot_think_says_so() -> None:
    assert BUDGET.options == OFF.options | {"effort"}
    assert "effort" not in OFF.options


def test_extra_body_wins_and_null_takes_out() -> None:
    gemini = Gemini("m", extra_body={"generationConfig": None, "safetySettings": []})
    assert gemini.build(ModelRequest(items=(user("hi"),), max_tokens=9)) == {
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "safetySettings": [],
    }


# --- where it goes ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "resource"),
    [
        ("gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("tunedModels/mine-1", "tunedModels/mine-1"),
        ("odd name?x=1#y", "models/odd%20name%3Fx%3D1%23y"),
        ("../../v1/files/a:b", "models/..%2F..%2Fv1%2Ffiles%2Fa%3Ab"),
        ("ü\ud800%2e", "models/%C3%BC%3F%252e"),
    ],
)
def test_the_model_is_a_part_of_the_path(model: str, resource: str) -> None:
    path = Gemini(model).path
    assert path == f"/v1beta/{resource}:streamGenerateContent?alt=sse"
    for base in ("http://h:1", "http://h:1/", "http://h:1/v1beta", "http://h:1/v1beta/"):
        url = Endpoint(base, provider="p").url(path)
        assert url.raw_path.decode() == path, base
        assert url == httpx.URL(f"http://h:1{path}")


# --- histories -------------------------------------------------------------------------------


def test_a_turn_with_tools() -> None:
    items: list[Item] = [
        user("fix a.py"),
        thought("hm"),
        said("I will look."),
        ToolCall(call_id="x", name="f", arguments={"path": "ü.py", "n": 3}, signature="s/+=="),
        ToolCall(call_id="y", name="f", invalid='{"pattern": "'),
        result("x", "1"),
        result("y", "", is_error=True),
        Message.of("system", "Be quick."),
        user("and b.py"),
        said("Done."),
        user("thanks"),
    ]
    assert contents(*items) == [
        {"role": "user", "parts": [{"text": "fix a.py"}]},
        {
            "role": "model",
            "parts": [
                {"text": "I will look."},
                {
                    "functionCall": {"id": "x", "name": "f", "args": {"path": "ü.py", "n": 3}},
                    "thoughtSignature": "s/+==",
                },
                {"functionCall": {"id": "y", "name": "f", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"id": "x", "name": "f", "response": {"output": "1"}}},
                {"functionResponse": {"id": "y", "name": "f", "response": {"error": ""}}},
                {"text": "Be quick."},
                {"text": "and b.py"},
            ],
        },
        {"role": "model", "parts": [{"text": "Done."}]},
        {"role": "user", "parts": [{"text": "thanks"}]},
    ]


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("read_file", "read_file"),
        ("mcp.x:y z", "mcp_x_y_z"),
        ("1st", "_1st"),
        ("-x", "_-x"),
        ("", "_"),
        ("ü", "_"),
        ("9" * 70, "_" + "9" * 63),
    ],
)
def test_names_that_gemini_takes(name: str, sent: str) -> None:
    items = (ToolCall(call_id="x", name=name), ToolResult(call_id="x", name=name, content=""))
    _, model, answer = contents(*items)
    assert model["parts"] == [{"functionCall": {"id": "x", "name": sent, "args": {}}}]
    assert answer["parts"] == [
        {"functionResponse": {"id": "x", "name": sent, "response": {"output": ""}}}
    ]


@pytest.mark.parametrize(
    "items",
    [
        (),
        (user(""),),
        (Message.of("system", "rules only"),),
        (said(""), thought("unsigned"), thought("other", "s", "other"), said("")),
    ],
)
def test_a_request_is_never_empty(items: tuple[Item, ...]) -> None:
    assert contents(*items) == [{"role": "user", "parts": [{"text": "Go on."}]}]


def test_a_history_that_begins_with_the_model() -> None:
    assert contents(said("Hi."), user("hi")) == [
        {"role": "user", "parts": [{"text": "Go on."}]},
        {"role": "model", "parts": [{"text": "Hi."}]},
        {"role": "user", "parts": [{"text": "hi"}]},
    ]


def test_what_is_empty_leaves_no_gap() -> None:
    items = (user("a"), said(""), thought("hm"), user(""), user("b"))
    assert contents(*items) == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]


# --- signatures ------------------------------------------------------------------------------


def test_signatures_go_back_where_they_came_from() -> None:
    items = (
        user("hi"),
        thought("signed", "A"),
        said("text"),
        thought("", "B"),
        thought("", "C"),
        thought("unsigned"),
        thought("another's", "X", "other"),
        thought("", "Y", "other"),
        thought("sealed with nothing", ""),
        thought("", ""),
        ToolCall(call_id="1", name="f", signature="D"),
        thought("", "E"),
        ToolCall(call_id="2", name="f"),
        result("1"),
        result("2"),
    )
    assert contents(*items)[1]["parts"] == [
        {"text": "signed", "thought": True, "thoughtSignature": "A"},
        {"text": "text", "thoughtSignature": "B"},
        {"text": "", "thoughtSignature": "C"},
        {"functionCall": {"id": "1", "name": "f", "args": {}}, "thoughtSignature": "D"},
        {"text": "", "thoughtSignature": "E"},
        {"functionCall": {"id": "2", "name": "f", "args": {}}},
    ]


def signatures(gemini: Gemini, *items: Item) -> list[list[str | None]]:
    """The signatures of the calls of each step."""
    steps = contents(user("hi"), *items, gemini=gemini)[1::2]
    return [[p.get("thoughtSignature") for p in step["parts"]] for step in steps]


def test_the_first_call_of_every_step_is_vouched_for_in_gemini_3() -> None:
    def call(call_id: str, signature: str | None = None) -> ToolCall:
        return ToolCall(call_id=call_id, name="f", signature=signature)

    foreign = (call("1"), call("2"), result("1"), result("2"), call("3"), result("3"))
    own = (call("4", "S"), call("5"), result("4"), result("5"))
    assert signatures(LEVEL, *foreign, *own) == [[DUMMY, None], [DUMMY], ["S", None]]
    for gemini in (BUDGET, OFF):
        assert signatures(gemini, *foreign, *own) == [[None, None], [None], ["S", None]]
    # Text before the call is no call.
    assert signatures(LEVEL, said("so"), call("1"), result("1")) == [[None, DUMMY]]


# --- media -----------------------------------------------------------------------------------


def test_media() -> None:
    blocks: tuple[ContentBlock, ...] = (
        TextBlock(text=""),
        TextBlock(text="see"),
        ImageBlock(mime_type="image/png", data="aGk="),
        ImageBlock(mime_type="image/png", url="https://x/y.png"),
        AudioBlock(mime_type="audio/wav", data="aGk="),
        AudioBlock(mime_type="audio/wav", url="https://x/y.wav"),
        DocumentBlock(mime_type="application/pdf", data="aGk=", url="https://x", name="a.pdf"),
        DocumentBlock(mime_type="application/pdf", url="https://x/y.pdf"),
    )
    for role, sent in (("user", "user"), ("assistant", "model")):
        message = Message(role=cast(Literal["user", "assistant"], role), content=blocks)
        assert contents(user("hi"), said("ho"), message)[-1] == {
            "role": sent,
            "parts": [
                *([{"text": "ho"}] if sent == "model" else []),
                {"text": "see"},
                {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}},
                {"inlineData": {"mimeType": "audio/wav", "data": "aGk="}},
                {"fileData": {"mimeType": "audio/wav", "fileUri": "https://x/y.wav"}},
                {"inlineData": {"mimeType": "application/pdf", "data": "aGk="}},
                {"fileData": {"mimeType": "application/pdf", "fileUri": "https://x/y.pdf"}},
            ],
        }


def test_a_block_that_holds_nothing_is_refused() -> None:
    message = Message(role="user", content=(ImageBlock(mime_type="image/png"),))
    with pytest.raises(BadRequest, match="fake takes no content that is empty"):
        contents(message)


# --- any history -----------------------------------------------------------------------------

TEXTS = st.sampled_from(["", "a", "ü"])
SIGNATURES = st.sampled_from([None, "S"])
SINGLES: st.SearchStrategy[list[Item]] = st.one_of(
    st.builds(lambda text: [user(text)], TEXTS),
    st.builds(lambda text: [said(text)], TEXTS),
    st.builds(lambda text: [Message.of("system", text)], TEXTS),
    st.builds(
        lambda text, signature, provider: [thought(text, signature, provider)],
        TEXTS,
        SIGNATURES,
        st.sampled_from(["fake", "other"]),
    ),
    st.builds(
        lambda ids, signature: [
            *(ToolCall(call_id=i, name="f", signature=signature) for i in ids),
            *(result(i) for i in ids),
        ],
        st.lists(st.sampled_from("xyz"), min_size=1, max_size=3, unique=True),
        SIGNATURES,
    ),
)


@given(st.lists(SINGLES, max_size=8), st.sampled_from([BUDGET, LEVEL, OFF]))
def test_any_history_alternates_and_answers_each_call_at_once(
    groups: list[list[Item]], gemini: Gemini
) -> None:
    sent = contents(*(item for group in groups for item in group), gemini=gemini)
    roles = [content["role"] for content in sent]
    assert roles == ["user" if at % 2 == 0 else "model" for at in range(len(sent))]
    assert all(content["parts"] and all(content["parts"]) for content in sent)
    for at, content in enumerate(sent):
        calls = [p["functionCall"]["id"] for p in content["parts"] if "functionCall" in p]
        behind = sent[at + 1]["parts"] if at + 1 < len(sent) else []
        answers = [p["functionResponse"]["id"] for p in behind if "functionResponse" in p]
        if content["role"] == "model":
            assert answers == calls
            leading = behind[: len(calls)]
            assert [p["functionResponse"]["id"] for p in leading] == calls
    empty = [p for c in sent for p in c["parts"] if p.get("text") == ""]
    assert all("thoughtSignature" in part for part in empty)
