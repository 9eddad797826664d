"""The official SDK judges the fake server and our requests; both must read the same replies."""

from __future__ import annotations

import base64
import re
from collections.abc import AsyncGenerator
from typing import Any, Literal

import pytest
from google import genai
from google.genai import errors, types
from pydantic import JsonValue

from agentls.core.events import BlockStop, Status, Usage
from agentls.core.messages import (
    ImageBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import ModelRequest, ToolDefinition
from agentls.llm.schemes.gemini import Gemini
from support.fake_server import FakeServer, refused
from support.gemini_streams import RECORDED, UNAVAILABLE, chunk, failure, sse, text
from support.openai_rig import KEY, Rig
from support.proofs import proving
from support.wires.gemini import WIRE

SIGNATURE = base64.b64encode(b"of thought").decode()
WILD = base64.b64encode(b"\xfb\xff of thought").decode()
"""With + and /, for which the SDK sends - and _, as Google takes both."""
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "A glob."},
        "limit": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
    },
    "required": ["pattern"],
    "additionalProperties": False,
    "$defs": {"x": {"const": 1}},
}
PNG = base64.b64encode(b"\x89PNG\r\n").decode()


@pytest.fixture
async def server() -> AsyncGenerator[FakeServer, None]:
    async with FakeServer() as server:
        yield server


@pytest.fixture
async def sdk(server: FakeServer) -> AsyncGenerator[genai.Client, None]:
    client = genai.Client(
        api_key=KEY, http_options={"base_url": server.url, "api_version": "v1beta"}
    )
    yield client
    await client.aio.aclose()
    client.close()


async def streamed(client: genai.Client, **more: Any) -> list[types.GenerateContentResponse]:
    asked = {"model": "m", "contents": "hi"} | more
    stream = await client.aio.models.generate_content_stream(**asked)
    return [piece async for piece in stream]


def items_of(pieces: list[types.GenerateContentResponse]) -> list[Item]:
    """What a plain reading of the SDK's objects makes of a reply."""
    items: list[Item] = []
    said, thought = "", ""
    calls: list[Item] = []
    behind: list[Item] = []
    for piece in pieces:
        for candidate in piece.candidates or ():
            for part in (candidate.content and candidate.content.parts) or ():
                signed = part.thought_signature
                signature = base64.b64encode(signed).decode() if signed else None
                if made := part.function_call:
                    call = ToolCall(
                        call_id=made.id or "?",
                        name=made.name or "",
                        arguments=made.args or {},
                        signature=signature,
                    )
                    calls.append(call)
                elif part.thought:
                    thought += part.text or ""
                else:
                    said += part.text or ""
                    if signature:
                        behind.append(Reasoning(signature=signature, provider="fake"))
    if thought:
        items.append(Reasoning(text=thought, provider="fake"))
    if said:
        items.append(Message.of("assistant", said))
    return [*items, *behind, *calls]


def usage_of(pieces: list[types.GenerateContentResponse]) -> Usage:
    usage = pieces[-1].usage_metadata
    assert usage is not None
    return Usage(
        input_tokens=usage.prompt_token_count or 0,
        output_tokens=(usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
        cache_read_tokens=usage.cached_content_token_count or 0,
        reasoning_tokens=usage.thoughts_token_count or 0,
    )


SIGNED = sse(
    chunk(text("Let me see.", thought=True)),
    chunk(text("All ")),
    chunk(text("well."), finish="STOP"),
    {
        "candidates": [{"content": {"parts": [text("", signature=SIGNATURE)]}, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 20,
            "cachedContentTokenCount": 12,
            "candidatesTokenCount": 4,
            "thoughtsTokenCount": 5,
        },
    },
)
TWO_CALLS = sse(
    chunk(
        {
            "functionCall": {"id": "c1", "name": "glob", "args": {"pattern": "ü*"}},
            "thoughtSignature": WILD,
        },
        {"functionCall": {"id": "c2", "name": "glob", "args": {}}},
        finish="STOP",
        usage={"promptTokenCount": 7, "candidatesTokenCount": 3},
    )
)


@proving("gemini", "thinking", "cache", peer="fake (google-genai SDK)")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (WIRE.said("hello", " world"), "end_turn"),
        (RECORDED["2.5 thinking and text"], "end_turn"),
        (SIGNED, "end_turn"),
        (TWO_CALLS, "tool_use"),
        (WIRE.cut("so far"), "max_tokens"),
        (WIRE.refused("Well"), "refusal"),
    ],
)
async def test_both_read_the_same_reply(
    server: FakeServer, sdk: genai.Client, body: bytes, reason: str
) -> None:
    server.replies.extend([WIRE.reply(body), WIRE.reply(body)])
    pieces = await streamed(sdk)
    events, error = await Rig(server.url, Gemini("m", provider="fake")).ask()
    assert error is None
    assert [e.item for e in events if isinstance(e, BlockStop)] == items_of(pieces)
    assert events[-2:] == [usage_of(pieces), Status(state="finished", stop_reason=reason)]
    theirs, ours = server.exchanges
    assert (theirs.method, theirs.path) == (ours.method, ours.path)


async def test_both_know_a_blocked_prompt(server: FakeServer, sdk: genai.Client) -> None:
    body = RECORDED["blocked prompt"]
    server.replies.extend([WIRE.reply(body), WIRE.reply(body)])
    (piece,) = await streamed(sdk)
    assert piece.prompt_feedback is not None
    assert piece.prompt_feedback.block_reason == types.BlockedReason.PROHIBITED_CONTENT
    events, error = await Rig(server.url, Gemini("m", provider="fake")).ask()
    assert error is None
    assert events == [
        Status(state="warning", message="fake blocked the prompt: PROHIBITED_CONTENT."),
        usage_of([piece]),
        Status(state="finished", stop_reason="refusal"),
    ]


ERRORS: list[tuple[int, JsonValue, str]] = [
    (
        400,
        failure(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"},
        ),
        "unauthorized",
    ),
    (404, failure(404, "NOT_FOUND", "models/m is not found"), "bad_request"),
    (429, failure(429, "RESOURCE_EXHAUSTED", "Slow down"), "rate_limited"),
    (503, UNAVAILABLE, "model"),
    (503, [UNAVAILABLE], "model"),
]


@pytest.mark.parametrize(("status", "body", "code"), ERRORS)
async def test_both_know_an_error_by_its_status(
    server: FakeServer, sdk: genai.Client, status: int, body: JsonValue, code: str
) -> None:
    server.replies.extend(refused(status, body) for _ in range(5))
    with pytest.raises(errors.APIError) as caught:
        await streamed(sdk)
    events, error = await Rig(server.url, Gemini("m", provider="fake")).ask()
    assert error is not None
    assert (error.code, error.status) == (code, caught.value.code)
    assert (caught.value.message or "?").rstrip(".") in error.message
    assert not any(isinstance(event, BlockStop) for event in events)


@pytest.mark.parametrize("name", ["error inside", "bare error inside"])
async def test_both_know_an_error_inside(server: FakeServer, sdk: genai.Client, name: str) -> None:
    server.replies.extend([WIRE.reply(RECORDED[name]), WIRE.reply(RECORDED[name])])
    with pytest.raises(errors.ServerError, match="overloaded"):
        await streamed(sdk)
    _, error = await Rig(server.url, Gemini("m", provider="fake")).ask()
    assert error is not None
    assert (error.code, error.status) == ("stream_broken", 503)
    assert "overloaded" in error.message


def camel(value: Any) -> Any:
    """The SDK sends some names in snake case, which Google's JSON takes as the same."""
    if isinstance(value, dict):
        return {re.sub(r"_(\w)", lambda m: m[1].upper(), k): camel(v) for k, v in value.items()}
    return [camel(each) for each in value] if isinstance(value, list) else value


@proving("gemini", "images", peer="fake (google-genai SDK)")
@pytest.mark.parametrize(
    ("thinking", "config"),
    [
        ("budget", types.ThinkingConfig(include_thoughts=True, thinking_budget=24_576)),
        (
            "level",
            types.ThinkingConfig(include_thoughts=True, thinking_level=types.ThinkingLevel.HIGH),
        ),
    ],
)
async def test_the_sdk_sends_the_same_request(
    server: FakeServer,
    sdk: genai.Client,
    thinking: Literal["budget", "level"],
    config: types.ThinkingConfig,
) -> None:
    request = ModelRequest(
        system="Be brief.",
        items=(
            Message(
                role="user",
                content=(
                    TextBlock(text="look"),
                    ImageBlock(mime_type="image/png", data=PNG),
                    ImageBlock(mime_type="image/png", url="https://example.com/a.png"),
                ),
            ),
            Message.of("assistant", "I will."),
            ToolCall(call_id="c1", name="glob", arguments={"pattern": "ü*"}, signature=SIGNATURE),
            ToolCall(call_id="c2", name="glob", arguments={}),
            ToolResult(call_id="c1", name="glob", content="a.py"),
            ToolResult(call_id="c2", name="glob", content="no pattern", is_error=True),
        ),
        tools=(ToolDefinition(name="glob", description="Find.", parameters=SCHEMA),),
        max_tokens=100,
        temperature=0.5,
        top_p=0.25,
        seed=7,
        stop=("END",),
        effort="high",
        response_schema=SCHEMA,
    )
    part, call, answer = types.Part, types.FunctionCall, types.FunctionResponse
    signed = part(
        function_call=call(id="c1", name="glob", args={"pattern": "ü*"}),
        thought_signature=base64.b64decode(SIGNATURE),
    )
    contents = [
        types.Content(
            role="user",
            parts=[
                part(text="look"),
                part.from_bytes(data=base64.b64decode(PNG), mime_type="image/png"),
                part.from_uri(file_uri="https://example.com/a.png", mime_type="image/png"),
            ],
        ),
        types.Content(
            role="model",
            parts=[
                part(text="I will."),
                signed,
                part(function_call=call(id="c2", name="glob", args={})),
            ],
        ),
        types.Content(
            role="user",
            parts=[
                part(function_response=answer(id="c1", name="glob", response={"output": "a.py"})),
                part(
                    function_response=answer(id="c2", name="glob", response={"error": "no pattern"})
                ),
            ],
        ),
    ]
    glob = types.FunctionDeclaration(
        name="glob", description="Find.", parameters_json_schema=SCHEMA
    )
    settings = types.GenerateContentConfig(
        system_instruction="Be brief.",
        tools=[types.Tool(function_declarations=[glob])],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        max_output_tokens=100,
        temperature=0.5,
        top_p=0.25,
        seed=7,
        stop_sequences=["END"],
        response_mime_type="application/json",
        response_json_schema=SCHEMA,
        thinking_config=config,
    )
    server.replies.append(WIRE.reply(WIRE.said("ok")))
    await streamed(sdk, contents=contents, config=settings)
    theirs = camel(server.exchanges[-1].json)
    assert theirs["systemInstruction"].pop("role") == "user"  # which says nothing
    assert Gemini("m", thinking=thinking).build(request) == theirs


def test_the_sdk_takes_our_body_as_its_own() -> None:
    """Its strict types know every field of a conversation with thoughts of all kinds."""
    request = ModelRequest(
        items=(
            ToolCall(call_id="x", name="f"),
            ToolResult(call_id="x", name="f", content=""),
            Reasoning(text="hm", signature=SIGNATURE, provider="gemini"),
            Message.of("assistant", "so"),
            Reasoning(signature=SIGNATURE, provider="gemini"),
            Reasoning(signature=SIGNATURE, provider="gemini"),
            Message.of("user", "on"),
        )
    )
    body = Gemini("m", thinking="level").build(request)
    contents = body["contents"]
    assert isinstance(contents, list)
    for content in contents:
        types.Content.model_validate(content)
    assert types.Content.model_validate(contents[-2]).parts == [
        types.Part(text="hm", thought=True, thought_signature=base64.b64decode(SIGNATURE)),
        types.Part(text="so", thought_signature=base64.b64decode(SIGNATURE)),
        types.Part(text="", thought_signature=base64.b64decode(SIGNATURE)),
    ]
