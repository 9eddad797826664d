"""Histories and settings as the body of an Ollama chat request."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from agentls.core.errors import BadRequest
from agentls.core.events import Status
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
from agentls.llm.schemes.ollama import Ollama
from support.ollama_streams import delta, done, ndjson

CHAT = Ollama("m", provider="fake", num_ctx=None)


def user(text: str) -> Message:
    return Message.of("user", text)


def messages(*items: Item, system: str = "") -> JsonValue:
    return CHAT.build(ModelRequest(system=system, items=items))["messages"]


def test_smallest_request() -> None:
    assert CHAT.build(ModelRequest(items=(user("hi"),))) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "truncate": False,
        "shift": False,
    }


def test_every_setting() -> None:
    schema: dict[str, JsonValue] = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = ModelRequest(
        system="Be brief.",
        items=(user("hi"),),
        tools=(ToolDefinition(name="glob", description="Find.", parameters=schema, kind="search"),),
        max_tokens=9,
        temperature=0.0,
        top_p=0.5,
        seed=0,
        stop=("END",),
        effort="high",
        response_schema=schema,
    )
    assert Ollama("m", num_ctx=8192, keep_alive="30m").build(request) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
        ],
        "stream": True,
        "truncate": False,
        "shift": False,
        "tools": [
            {
                "type": "function",
                "function": {"name": "glob", "description": "Find.", "parameters": schema},
            }
        ],
        "think": True,
        "format": schema,
        "keep_alive": "30m",
        "options": {
            "num_ctx": 8192,
            "num_predict": 9,
            "temperature": 0.0,
            "top_p": 0.5,
            "seed": 0,
            "stop": ["END"],
        },
    }


@pytest.mark.parametrize(
    ("effort", "switch", "level"),
    [
        (None, None, None),
        ("none", False, "low"),
        ("low", True, "low"),
        ("medium", True, "medium"),
        ("high", True, "high"),
    ],
)
def test_thinking_is_a_switch_or_a_level(
    effort: Effort | None, switch: bool | None, level: str | None
) -> None:
    request = ModelRequest(items=(user("hi"),), effort=effort)
    assert CHAT.build(request).get("think") == switch
    assert Ollama("m", num_ctx=None, think_levels=True).build(request).get("think") == level


@pytest.mark.parametrize(
    ("extra", "options", "truncate"),
    [
        ({"options": {"top_k": 40}}, {"num_ctx": 4096, "top_k": 40}, False),
        ({"options": {"num_ctx": 2048}}, {"num_ctx": 2048}, False),
        ({"options": {"num_ctx": None}}, {}, False),
        ({"options": None}, None, False),
        ({"truncate": None}, {"num_ctx": 4096}, None),
        ({"truncate": True}, {"num_ctx": 4096}, True),
    ],
)
def test_extra_body_wins_and_keeps_the_other_options(
    extra: dict[str, JsonValue], options: JsonValue, truncate: JsonValue
) -> None:
    chat = Ollama("m", num_ctx=4096, extra_body=extra)
    body = chat.build(ModelRequest(items=(user("hi"),)))
    assert (body.get("options"), body.get("truncate")) == (options, truncate)


def test_a_history_with_calls() -> None:
    items = (
        Message.of("system", "Rule."),
        user("look"),
        Reasoning(text="hm", provider="fake"),
        Reasoning(text="not mine", provider="other"),
        Message.of("assistant", "I will."),
        ToolCall(call_id="1", name="read_file", arguments={"path": "ü"}),
        ToolCall(call_id="2", name="made up!", invalid="{oops"),
        Message.of("system", "In the middle."),
        ToolResult(call_id="1", name="read_file", content="text", summary="1 line"),
        ToolResult(call_id="2", name="made up!", content="Error: no", is_error=True),
        Message.of("assistant", ""),
        Reasoning(text="nothing came of it", provider="fake"),
        user("go on"),
    )
    assert messages(*items, system="Be brief.") == [
        {"role": "system", "content": "Be brief.\n\nRule."},
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": "I will.",
            "thinking": "hm",
            "tool_calls": [
                {"id": "1", "function": {"name": "read_file", "arguments": {"path": "ü"}}},
                {"id": "2", "function": {"name": "made_up_", "arguments": {}}},
            ],
        },
        {"role": "tool", "content": "text", "tool_name": "read_file", "tool_call_id": "1"},
        {"role": "tool", "content": "Error: no", "tool_name": "made_up_", "tool_call_id": "2"},
        {"role": "system", "content": "In the middle."},
        {"role": "user", "content": "go on"},
    ]


def test_a_reply_of_calls_alone_and_thinking_nobody_can_read() -> None:
    items = (
        user("look"),
        Reasoning(encrypted="sealed", provider="fake"),
        ToolCall(call_id="1", name="glob"),
        ToolResult(call_id="1", name="glob", content=""),
    )
    assert messages(*items) == [
        {"role": "user", "content": "look"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "1", "function": {"name": "glob", "arguments": {}}}],
        },
        {"role": "tool", "content": "", "tool_name": "glob", "tool_call_id": "1"},
    ]


def test_images_go_beside_the_text() -> None:
    blocks = (
        TextBlock(text="What "),
        ImageBlock(mime_type="image/png", data="QUJD"),
        TextBlock(text="is this?"),
        ImageBlock(mime_type="image/jpeg", data="REVG"),
    )
    assert messages(Message(role="user", content=blocks)) == [
        {"role": "user", "content": "What is this?", "images": ["QUJD", "REVG"]}
    ]


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (ImageBlock(mime_type="image/png", url="https://x/a.png"), "no images by their address"),
        (ImageBlock(mime_type="image/png"), "no content that is empty"),
        (AudioBlock(mime_type="audio/wav", data="QUJD"), "text and images, no audio"),
        (DocumentBlock(mime_type="application/pdf", data="QUJD"), "text and images, no document"),
    ],
)
def test_what_cannot_be_carried_is_refused(block: ContentBlock, said: str) -> None:
    with pytest.raises(BadRequest, match=f"fake takes {said}"):
        messages(Message(role="user", content=(TextBlock(text="hi"), block)))


@pytest.mark.parametrize("role", ["system", "assistant"])
def test_only_users_send_images(role: str) -> None:
    image = ImageBlock(mime_type="image/png", data="QUJD")
    message = Message.model_validate({"role": role, "content": (image,)})
    with pytest.raises(BadRequest, match=f"only text from the {role}"):
        messages(user("hi"), message)


# --- what is cut without a word --------------------------------------------------------------

WARNING = (
    "Ollama cut the conversation: it does not fit its context of 1000 tokens. If there is memory "
    "for more, set llm.ollama.context_tokens higher; or start a new session."
)


def warnings(
    num_ctx: int | None,
    size: int,
    extra: dict[str, JsonValue] | None = None,
    /,
    **last: JsonValue,
) -> list[str]:
    """What a person is told of the reply to a prompt of so many bytes."""
    chat = Ollama("m", num_ctx=num_ctx, extra_body=extra)
    said = user("y" * (size - size // 2))
    reader = chat.reader(chat.build(ModelRequest(system="x" * (size // 2), items=(said,))))
    events = [*reader.feed(ndjson(delta("a"), done(**last))), *reader.close()]
    told = [e for e in events if isinstance(e, Status) and e.state == "warning"]
    if told:
        assert events[-3] == told[0]  # behind all blocks, before usage and finish
    return [status.message for status in told]


@pytest.mark.parametrize(
    ("size", "last", "is_cut"),
    [
        (100, {}, False),
        # The counts fill the context.
        (100, {"prompt_eval_count": 998, "eval_count": 0}, False),
        (100, {"prompt_eval_count": 999, "eval_count": 0}, True),
        (100, {"prompt_eval_count": 1000, "eval_count": 1}, True),
        (100, {"prompt_eval_count": 900, "eval_count": 100}, True),
        (100, {"prompt_eval_count": 900, "eval_count": 98}, False),
        (100, {"prompt_eval_count": 700, "eval_count": 800}, True),
        # The text cannot fit, whatever the counts say.
        (8000, {}, False),
        (8001, {}, True),
        (8001, {"prompt_eval_count": None, "eval_count": None}, True),
        # A low count may mean that the rest was cached, unless the cache is counted,
        (7000, {"prompt_eval_count": 20}, False),
        (7000, {"prompt_eval_count": 20, "prompt_eval_cached_count": 0}, True),
        (7000, {"prompt_eval_count": 900, "prompt_eval_cached_count": 880}, False),
        # or it is what is left when a long message was cut to half the context.
        (7000, {"prompt_eval_count": 503}, True),
        (3900, {"prompt_eval_count": 503}, False),
        (7000, {"prompt_eval_count": 560}, False),
        # A model elsewhere has another context.
        (9000, {"prompt_eval_count": 1500, "remote_host": "https://example.com"}, False),
    ],
)
def test_a_cut_is_told(size: int, last: dict[str, JsonValue], is_cut: bool) -> None:
    assert warnings(1000, size, **last) == ([WARNING] if is_cut else [])


def test_without_a_context_only_full_counts_can_tell() -> None:
    assert warnings(None, 90_000, prompt_eval_count=20) == []
    (told,) = warnings(None, 90_000, prompt_eval_count=20, prompt_eval_cached_count=4)
    assert "does not fit its context. If" in told


def test_the_context_that_was_sent_counts() -> None:
    assert warnings(1000, 9000, {"options": {"num_ctx": 2000}}) == []
    (told,) = warnings(9000, 9000, {"options": {"num_ctx": 1000}})
    assert told == WARNING
