"""Histories and settings as the body of a `/responses` request."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from agentls.core.errors import BadRequest
from agentls.core.messages import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    FileDiff,
    ImageBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import Effort, ModelRequest, ToolDefinition
from agentls.llm.schemes.openai_responses import OpenAIResponses

SCHEME = OpenAIResponses("m", provider="fake")


def user(said: str) -> Message:
    return Message.of("user", said)


def sent(role: str, said: str) -> JsonValue:
    if role == "assistant":
        part: JsonValue = {"type": "output_text", "text": said, "annotations": []}
        return {"type": "message", "role": role, "status": "completed", "content": [part]}
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": said}]}


def thought(item_id: str = "rs_1", said: str = "", encrypted: str | None = "gAAA") -> Reasoning:
    return Reasoning(item_id=item_id, text=said, encrypted=encrypted, provider="fake")


def replayed(item_id: str = "rs_1", *summary: str) -> JsonValue:
    return {
        "type": "reasoning",
        "id": item_id,
        "summary": [{"type": "summary_text", "text": part} for part in summary],
        "encrypted_content": "gAAA",
    }


def built(*items: Item, scheme: OpenAIResponses = SCHEME) -> JsonValue:
    return scheme.build(ModelRequest(items=items))["input"]


HI = sent("user", "hi")
DONE = sent("assistant", "done")


def test_smallest_request() -> None:
    assert SCHEME.build(ModelRequest(items=(user("hi"),))) == {
        "model": "m",
        "input": [HI],
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def test_all_settings_and_tools_in_the_order_given() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"b": {}, "a": {}}}
    request = ModelRequest(
        system="Be brief.",
        items=(Message.of("system", "Be kind."), user("hi")),
        tools=(
            ToolDefinition(name="zeta", description="Z.", parameters=schema),
            ToolDefinition(name="alpha", description="A.", parameters={"type": "object"}),
        ),
        max_tokens=10,
        temperature=0.0,
        top_p=0.5,
        effort="high",
        response_schema={"type": "string"},
    )
    assert json.dumps(SCHEME.build(request)) == json.dumps(
        {
            "model": "m",
            "instructions": "Be brief.\n\nBe kind.",
            "input": [HI],
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "max_output_tokens": 10,
            "temperature": 0.0,
            "top_p": 0.5,
            "tools": [
                {
                    "type": "function",
                    "name": "zeta",
                    "description": "Z.",
                    "parameters": schema,
                    "strict": False,
                },
                {
                    "type": "function",
                    "name": "alpha",
                    "description": "A.",
                    "parameters": {"type": "object"},
                    "strict": False,
                },
            ],
            "reasoning": {"effort": "high", "summary": "auto"},
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "reply",
                    "schema": {"type": "string"},
                    "strict": True,
                }
            },
        }
    )


def test_the_format_has_neither_seed_nor_stop() -> None:
    assert SCHEME.options == {
        "max_tokens",
        "temperature",
        "top_p",
        "effort",
        "response_schema",
        "tools",
    }


@pytest.mark.parametrize(
    ("effort", "reasoning"),
    [
        (None, None),
        ("none", {"effort": "none"}),
        ("low", {"effort": "low", "summary": "auto"}),
        ("medium", {"effort": "medium", "summary": "auto"}),
        ("high", {"effort": "high", "summary": "auto"}),
    ],
)
def test_effort(effort: Effort | None, reasoning: JsonValue) -> None:
    assert SCHEME.build(ModelRequest(effort=effort)).get("reasoning") == reasoning


def test_options_of_models_and_servers() -> None:
    scheme = OpenAIResponses(
        "m",
        extra_body={"store": None, "service_tier": "flex", "temperature": 1},
        thinks=False,
        least_effort="minimal",
    )
    request = ModelRequest(items=(user("hi"),), temperature=0.5, effort="none")
    assert scheme.build(request) == {
        "model": "m",
        "input": [HI],
        "stream": True,
        "temperature": 1,
        "service_tier": "flex",
        "reasoning": {"effort": "minimal"},
    }


def test_a_turn_with_thinking_and_tools() -> None:
    items: list[Item] = [
        user("fix a.py"),
        thought("rs_1", "**Plan**\n\nLook."),
        Message.of("assistant", "I will look."),
        ToolCall(call_id="x", name="read_file", arguments={"path": "ü.py", "end_line": 3}),
        ToolCall(call_id="y", name="glob", invalid='{"pattern": "'),
        ToolResult(call_id="x", name="read_file", content="text", summary="short"),
        ToolResult(
            call_id="y",
            name="glob",
            content="Error: bad arguments",
            is_error=True,
            diff=(FileDiff(path="a", old_text=None, new_text="secret"),),
        ),
        thought("rs_2"),
        ToolCall(call_id="z", name="glob"),
        ToolResult(call_id="z", name="glob", content=""),
        Message.of("assistant", "done"),
        user("hi"),
    ]
    assert built(*items) == [
        sent("user", "fix a.py"),
        replayed("rs_1", "**Plan**\n\nLook."),
        sent("assistant", "I will look."),
        {
            "type": "function_call",
            "call_id": "x",
            "name": "read_file",
            "arguments": '{"path": "ü.py", "end_line": 3}',
        },
        {"type": "function_call", "call_id": "y", "name": "glob", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "x", "output": "text"},
        {"type": "function_call_output", "call_id": "y", "output": "Error: bad arguments"},
        replayed("rs_2"),
        {"type": "function_call", "call_id": "z", "name": "glob", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "z", "output": ""},
        DONE,
        HI,
    ]


# --- thinking --------------------------------------------------------------------------------


def test_thinking_of_others_or_without_its_seal_is_left_out() -> None:
    foreign = thought().model_copy(update={"provider": "other", "signature": "s"})
    plain = thought(encrypted=None, said="hm")
    assert built(user("hi"), foreign, plain, Message.of("assistant", "done")) == [HI, DONE]


@pytest.mark.parametrize(
    "behind",
    [
        [],
        [user("more")],
        [Message.of("assistant", "")],
        [Message.of("assistant", ""), user("more")],
        [thought("rs_2")],
        [Message.of("system", "rule")],
    ],
)
def test_thinking_that_led_to_nothing_is_left_out(behind: list[Item]) -> None:
    body = built(user("hi"), thought(), *behind)
    assert "reasoning" not in json.dumps(body)


def test_thinking_in_a_row_is_kept_with_what_it_led_to() -> None:
    items: list[Item] = [
        user("hi"),
        thought("rs_1"),
        thought("rs_2"),
        Message.of("assistant", "done"),
    ]
    assert built(*items, thought("rs_3")) == [HI, replayed("rs_1"), replayed("rs_2"), DONE]


@pytest.mark.parametrize("item_id", ["", "item_1", "rs_" + "a" * 62, "rs_ü", "rs_1\n"])
def test_an_id_that_would_be_refused_is_left_out(item_id: str) -> None:
    replayed: JsonValue = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    body = built(user("hi"), thought(item_id), Message.of("assistant", "done"))
    assert body == [HI, replayed, DONE]


# --- what servers refuse ---------------------------------------------------------------------


def test_messages_without_content_are_left_out() -> None:
    empty = Message(role="user", content=(TextBlock(text=""), TextBlock(text="hi")))
    assert built(user(""), Message.of("assistant", ""), Message.of("system", ""), empty) == [HI]


def test_a_system_message_in_the_middle_stays_one() -> None:
    items = [user("hi"), Message.of("assistant", "done"), Message.of("system", "rule"), user("hi")]
    assert built(*items) == [HI, DONE, sent("system", "rule"), HI]


def test_results_come_right_behind_their_calls() -> None:
    call, result = ToolCall(call_id="x", name="f"), ToolResult(call_id="x", name="f", content="1")
    assert built(user("hi"), call, user("hi"), result) == [
        HI,
        {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "x", "output": "1"},
        HI,
    ]


def test_a_name_that_a_model_made_up() -> None:
    call = ToolCall(call_id="x", name="no such.tool\n" + "a" * 80)
    result = ToolResult(call_id="x", name=call.name, content="Error")
    body = built(user("hi"), call, result)
    assert isinstance(body, list)
    assert isinstance(body[1], dict)
    assert body[1]["name"] == "no_such_tool_" + "a" * 51


@settings(deadline=None)
@given(st.text(st.characters(), min_size=65, max_size=300))
def test_an_id_of_a_call_that_is_too_long_stays_the_same_for_its_result(call_id: str) -> None:
    call = ToolCall.model_construct(call_id=call_id, name="f", arguments={}, invalid=None)
    result = ToolResult.model_construct(call_id=call_id, name="f", content="1")
    body = built(user("hi"), call, result)
    assert isinstance(body, list)
    ids = [item["call_id"] for item in body[1:] if isinstance(item, dict)]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert len(str(ids[0])) <= 64


# --- content ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (TextBlock(text="a"), {"type": "input_text", "text": "a"}),
        (
            ImageBlock(mime_type="image/png", data="aGk="),
            {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
        ),
        (
            ImageBlock(mime_type="image/png", url="https://a.test/b.png"),
            {"type": "input_image", "image_url": "https://a.test/b.png", "detail": "auto"},
        ),
        (
            DocumentBlock(mime_type="application/pdf", data="aGk=", name="a.pdf"),
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": "data:application/pdf;base64,aGk=",
            },
        ),
        (
            DocumentBlock(mime_type="application/pdf", data="aGk="),
            {
                "type": "input_file",
                "filename": "document.pdf",
                "file_data": "data:application/pdf;base64,aGk=",
            },
        ),
        (
            DocumentBlock(mime_type="application/pdf", url="https://a.test/b.pdf", name="b.pdf"),
            {"type": "input_file", "file_url": "https://a.test/b.pdf"},
        ),
    ],
)
def test_content(block: ContentBlock, part: JsonValue) -> None:
    said = Message(role="user", content=(TextBlock(text="see"), block))
    see: JsonValue = {"type": "input_text", "text": "see"}
    assert built(said) == [{"type": "message", "role": "user", "content": [see, part]}]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            Message(role="user", content=(AudioBlock(mime_type="audio/wav", data="aGk="),)),
            "fake takes no audio in this format.",
        ),
        (
            Message(role="user", content=(ImageBlock(mime_type="image/png"),)),
            "fake takes no content that is empty.",
        ),
        (
            Message(role="user", content=(DocumentBlock(mime_type="application/pdf"),)),
            "fake takes no content that is empty.",
        ),
        (
            Message(role="assistant", content=(ImageBlock(mime_type="image/png", data="aGk="),)),
            "fake takes only text from the assistant.",
        ),
    ],
)
def test_content_that_the_format_cannot_carry_is_refused(message: Message, words: str) -> None:
    with pytest.raises(BadRequest) as caught:
        built(user("hi"), message)
    assert str(caught.value) == words
