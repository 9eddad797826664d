"""Histories and settings as the body of a chat-completion request."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from pydantic import JsonValue

from agentls.core.errors import BadRequest
from agentls.core.media import check_media
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
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest, ToolDefinition
from agentls.llm.schemes.openai_chat import OpenAIChat

CHAT = OpenAIChat("m", provider="fake")


def messages(*items: Item, system: str = "", chat: OpenAIChat = CHAT) -> JsonValue:
    return chat.build(ModelRequest(system=system, items=items))["messages"]


def user(text: str) -> Message:
    return Message.of("user", text)


def test_smallest_request() -> None:
    assert CHAT.build(ModelRequest(items=(user("hi"),))) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_all_settings_and_tools_in_the_order_given() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"b": {}, "a": {}}}
    request = ModelRequest(
        system="Be brief.",
        items=(user("hi"),),
        tools=(
            ToolDefinition(name="zeta", description="Z.", parameters=schema),
            ToolDefinition(name="alpha", description="A.", parameters={"type": "object"}),
        ),
        max_tokens=10,
        temperature=0.0,
        seed=0,
        response_schema={"type": "string"},
    )
    body = CHAT.build(request)
    assert json.dumps(body) == json.dumps(
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi"},
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "zeta", "description": "Z.", "parameters": schema},
                },
                {
                    "type": "function",
                    "function": {
                        "name": "alpha",
                        "description": "A.",
                        "parameters": {"type": "object"},
                    },
                },
            ],
            "max_tokens": 10,
            "temperature": 0.0,
            "seed": 0,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "reply", "schema": {"type": "string"}, "strict": True},
            },
        }
    )


def test_options_of_servers() -> None:
    chat = OpenAIChat(
        "m",
        extra_body={"stream_options": None, "top_k": 5, "temperature": 1},
        max_tokens_key="max_completion_tokens",
    )
    assert chat.build(ModelRequest(items=(user("hi"),), max_tokens=9, temperature=0.5)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "max_completion_tokens": 9,
        "temperature": 1,
        "top_k": 5,
    }


def test_a_turn_with_tools() -> None:
    items: list[Item] = [
        user("fix a.py"),
        Reasoning(text="hm", provider="fake"),
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
        ToolCall(call_id="z", name="glob", arguments={}),
        ToolResult(call_id="z", name="glob", content=""),
        Message.of("assistant", "Done."),
        user("thanks"),
        user("more"),
    ]
    assert messages(*items, system="S") == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "fix a.py"},
        {
            "role": "assistant",
            "content": "I will look.",
            "tool_calls": [
                {
                    "id": "x",
                    "type": "function",
                    "function": {
                        "name": "read_file",
                        "arguments": '{"path": "ü.py", "end_line": 3}',
                    },
                },
                {"id": "y", "type": "function", "function": {"name": "glob", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "x", "content": "text"},
        {"role": "tool", "tool_call_id": "y", "content": "Error: bad arguments"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "z", "type": "function", "function": {"name": "glob", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "z", "content": ""},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "thanks"},
        {"role": "user", "content": "more"},
    ]


def test_what_the_assistant_says_in_parts_is_one_message_before_the_results() -> None:
    assert messages(
        user("go"),
        ToolCall(call_id="x", name="f"),
        Message.of("assistant", "a"),
        Message.of("assistant", ""),
        Message.of("assistant", "b"),
        ToolResult(call_id="x", name="f", content="r"),
    ) == [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": "a\n\nb",
            "tool_calls": [
                {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "x", "content": "r"},
    ]


def test_an_assistant_that_said_nothing_is_left_out() -> None:
    assert messages(user("a"), Message.of("assistant", ""), Reasoning(text="x"), user("b")) == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_system_messages_at_the_top_become_one_and_later_ones_keep_their_place() -> None:
    system = Message.of("system", "Second.")
    assert messages(system, user("hi"), Message.of("system", "Now."), system="First.") == [
        {"role": "system", "content": "First.\n\nSecond."},
        {"role": "user", "content": "hi"},
        {"role": "system", "content": "Now."},
    ]


def test_reasoning_is_replayed_only_where_configured_and_only_its_maker_s() -> None:
    items: list[Item] = [
        user("go"),
        Reasoning(text="mine", provider="fake"),
        Reasoning(text="theirs", provider="other"),
        Message.of("assistant", "a"),
        user("on"),
    ]
    replaying = OpenAIChat("m", provider="fake", replay_reasoning=True)
    assert messages(*items) == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "on"},
    ]
    assert messages(*items, chat=replaying) == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "a", "reasoning_content": "mine"},
        {"role": "user", "content": "on"},
    ]


# --- media -----------------------------------------------------------------------------------


def asked(*blocks: ContentBlock) -> Message:
    return Message(role="user", content=blocks)


def test_media_become_parts() -> None:
    question = asked(
        TextBlock(text="What is this?"),
        ImageBlock(mime_type="image/png", data="AAAA"),
        ImageBlock(mime_type="image/png", url="https://example.com/a.png"),
        AudioBlock(mime_type="audio/mpeg", data="BBBB"),
        AudioBlock(mime_type="audio/x-wav", data="CCCC"),
        AudioBlock(mime_type="audio/flac", data="DDDD"),
        DocumentBlock(mime_type="application/pdf", data="EEEE", name="a.pdf"),
    )
    assert messages(question) == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
                {"type": "input_audio", "input_audio": {"data": "CCCC", "format": "wav"}},
                {"type": "input_audio", "input_audio": {"data": "DDDD", "format": "flac"}},
                {
                    "type": "file",
                    "file": {
                        "filename": "a.pdf",
                        "file_data": "data:application/pdf;base64,EEEE",
                    },
                },
            ],
        }
    ]


@pytest.mark.parametrize(
    "message",
    [
        asked(AudioBlock(mime_type="audio/wav", url="https://example.com/a.wav")),
        asked(DocumentBlock(mime_type="application/pdf", url="https://example.com/a.pdf")),
        asked(ImageBlock(mime_type="image/png")),
        Message(role="assistant", content=(ImageBlock(mime_type="image/png", data="A"),)),
        Message(role="system", content=(ImageBlock(mime_type="image/png", data="A"),)),
    ],
)
def test_what_the_format_cannot_carry_is_refused(message: Message) -> None:
    with pytest.raises(BadRequest, match=r"^fake takes "):
        messages(user("x"), message)


@pytest.mark.parametrize(
    ("block", "noun", "able"),
    [
        (ImageBlock(mime_type="image/png", data="A"), "images", Capabilities(images=True)),
        (AudioBlock(mime_type="audio/wav", data="A"), "audio", Capabilities(audio=True)),
        (DocumentBlock(mime_type="a/pdf", data="A"), "documents", Capabilities(documents=True)),
    ],
)
def test_what_the_model_cannot_take_is_refused(
    block: ContentBlock, noun: str, able: Capabilities
) -> None:
    content = (TextBlock(text="?"), block)
    with pytest.raises(BadRequest, match=rf"^The model m cannot take {noun}\."):
        check_media(ModelInfo(provider="fake", name="m"), content)
    check_media(ModelInfo(provider="fake", name="m", capabilities=able), content)


@pytest.mark.parametrize(
    ("made_up", "sent"),
    [
        ("functions.read_file", "functions_read_file"),
        ("read file\n", "read_file_"),
        ("é\u200b", "__"),
        ("x" * 200, "x" * 64),
        ("", "_"),
    ],
)
def test_a_name_that_servers_would_refuse_is_sent_as_one_they_take(made_up: str, sent: str) -> None:
    _, said, _ = cast(
        "list[Any]",
        messages(
            user("go"),
            ToolCall(call_id="x", name=made_up),
            ToolResult(call_id="x", name=made_up, content="Error: no such tool", is_error=True),
        ),
    )
    assert [each["function"]["name"] for each in said["tool_calls"]] == [sent]
