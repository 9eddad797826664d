"""The official SDK judges the fake server, and both must read the same out of it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import openai
import pytest
from openai.types import responses as sdk_types
from pydantic import JsonValue, TypeAdapter

from agentls.core.errors import BadRequest, ModelError, RateLimited, Unauthorized
from agentls.core.events import BlockAbort, BlockStop, Event, Status, Usage
from agentls.core.messages import (
    DocumentBlock,
    ImageBlock,
    Item,
    Message,
    Reasoning,
    TextBlock,
    ToolCall,
    ToolResult,
)
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest, ToolDefinition
from agentls.llm.http.retry import RetryPolicy
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.schemes.openai_responses import OpenAIResponses
from support.fake_server import Reply, refused
from support.openai_server import OpenAIServer
from support.proofs import proving
from support.responses_streams import RECORDED
from support.wires.openai_responses import WIRE

SCHEME = OpenAIResponses("m", provider="fake")
REQUEST = ModelRequest(
    system="Be brief.",
    items=(
        Message(
            role="user",
            content=(
                TextBlock(text="hi"),
                ImageBlock(mime_type="image/png", data="aGk="),
                DocumentBlock(mime_type="application/pdf", url="https://a.test/b.pdf"),
            ),
        ),
        Reasoning(item_id="rs_1", text="hm", encrypted="gAAA", provider="fake"),
        Message.of("assistant", "I will look. ü😀\u2028"),
        ToolCall(call_id="call_1", name="glob", arguments={"pattern": "ü*"}),
        ToolResult(call_id="call_1", name="glob", content="a.py"),
    ),
    tools=(ToolDefinition(name="glob", description="Find.", parameters={"type": "object"}),),
    max_tokens=100,
    temperature=0.0,
    top_p=1.0,
    effort="low",
    response_schema={"type": "object", "additionalProperties": False},
)
EVENTS: TypeAdapter[sdk_types.ResponseStreamEvent] = TypeAdapter(sdk_types.ResponseStreamEvent)
STREAMS = [
    "openai text",
    "openai turn",
    "thinking between calls",
    "refusal",
    "cut in a call",
    "failed",
    "error event",
    "tools of the server",
]


@pytest.fixture
async def server() -> AsyncGenerator[OpenAIServer, None]:
    async with OpenAIServer() as server:
        yield server


@pytest.fixture
async def sdk(server: OpenAIServer) -> AsyncGenerator[openai.AsyncOpenAI, None]:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="k" * 9, max_retries=0) as client:
        yield client


async def ours(server: OpenAIServer) -> tuple[list[Event], ModelError | None]:
    """What we read as the answer; asking again does not wait."""

    async def at_once(_: float) -> None:
        return

    transport = Transport(server.url, provider="fake", retry=RetryPolicy(sleep=at_once))
    sight = Capabilities(images=True, documents=True)
    model = HttpModel(ModelInfo(provider="fake", name="m", capabilities=sight), SCHEME, transport)
    events: list[Event] = []
    try:
        async for event in model.stream(REQUEST):
            events.append(event)
    except ModelError as error:
        return events, error
    finally:
        await model.aclose()
    return events, None


async def theirs(sdk: openai.AsyncOpenAI) -> list[sdk_types.ResponseStreamEvent]:
    """What the SDK reads as the answer to the body that our scheme builds."""
    stream = await sdk.responses.create(**SCHEME.build(REQUEST))  # type: ignore[call-overload]  # from JSON
    return [event async for event in stream]


def items(events: list[Event]) -> list[Item]:
    return [e.item for e in events if isinstance(e, BlockStop)]


def converted(response: sdk_types.Response) -> list[Item]:
    """The output as the SDK has it, in our words."""
    made: list[Item] = []
    for item in response.output:
        match item:
            case sdk_types.ResponseOutputMessage():
                texts = [
                    part.text if isinstance(part, sdk_types.ResponseOutputText) else part.refusal
                    for part in item.content
                ]
                made.append(Message.of("assistant", "".join(texts)))
            case sdk_types.ResponseReasoningItem():
                made.append(
                    Reasoning(
                        item_id=item.id,
                        text="\n\n".join(part.text for part in item.summary),
                        encrypted=item.encrypted_content,
                        provider="fake",
                    )
                )
            case sdk_types.ResponseFunctionToolCall():
                arguments = json.loads(item.arguments)
                made.append(ToolCall(call_id=item.call_id, name=item.name, arguments=arguments))
    return made


@pytest.mark.parametrize("name", STREAMS)
def test_every_event_of_the_fake_is_one_of_the_sdk(name: str) -> None:
    lines = [line for line in RECORDED[name].split(b"\n") if line.startswith(b"data: ")]
    assert len(lines) > 3
    for line in lines:
        EVENTS.validate_json(line.removeprefix(b"data: "))


@proving("openai-responses", "thinking", peer="fake (openai SDK)")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("openai text", "end_turn"),
        ("openai turn", "tool_use"),
        ("thinking between calls", "tool_use"),
        ("refusal", "refusal"),
    ],
)
async def test_a_whole_reply_is_read_alike(
    server: OpenAIServer, sdk: openai.AsyncOpenAI, name: str, reason: str
) -> None:
    server.replies.extend([WIRE.reply(RECORDED[name])] * 2)
    last = (await theirs(sdk))[-1]
    events, error = await ours(server)
    assert error is None
    assert isinstance(last, sdk_types.ResponseCompletedEvent)
    assert items(events) == converted(last.response)
    usage = last.response.usage
    assert usage is not None
    assert events[-2:] == [
        Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cache_read_tokens=usage.input_tokens_details.cached_tokens,
            reasoning_tokens=usage.output_tokens_details.reasoning_tokens,
        ),
        Status(state="finished", stop_reason=reason),
    ]


@proving("openai-responses", "images", peer="fake (openai SDK)")
async def test_our_request_is_the_one_the_sdk_sends(
    server: OpenAIServer, sdk: openai.AsyncOpenAI
) -> None:
    server.replies.extend([WIRE.reply(WIRE.said("hi"))] * 2)
    await theirs(sdk)
    assert (await ours(server))[1] is None
    by_sdk, by_us = server.exchanges
    assert by_sdk.json == by_us.json == SCHEME.build(REQUEST)
    assert (by_sdk.method, by_sdk.path) == (by_us.method, by_us.path) == ("POST", "/v1/responses")


async def test_a_reply_that_was_cut_in_a_call(
    server: OpenAIServer, sdk: openai.AsyncOpenAI
) -> None:
    server.replies.extend([WIRE.reply(RECORDED["cut in a call"])] * 2)
    last = (await theirs(sdk))[-1]
    assert isinstance(last, sdk_types.ResponseIncompleteEvent)
    details = last.response.incomplete_details
    assert details is not None
    assert details.reason == "max_output_tokens"
    events, error = await ours(server)
    assert error is None
    assert items(events) == converted(last.response) == [Message.of("assistant", "I will")]
    assert [e.index for e in events if isinstance(e, BlockAbort)] == [1]
    assert events[-1] == Status(state="finished", stop_reason="max_tokens")


async def test_a_reply_that_failed(server: OpenAIServer, sdk: openai.AsyncOpenAI) -> None:
    server.replies.extend([WIRE.reply(RECORDED["failed"])] * 2)
    last = (await theirs(sdk))[-1]
    assert isinstance(last, sdk_types.ResponseFailedEvent)
    assert last.response.error is not None
    events, error = await ours(server)
    assert error is not None
    assert error.message == f"fake reported an error: {last.response.error.message}."
    assert items(events) == []


async def test_an_error_event(server: OpenAIServer, sdk: openai.AsyncOpenAI) -> None:
    server.replies.extend([WIRE.reply(RECORDED["error event"])] * 2)
    last = (await theirs(sdk))[-1]
    assert isinstance(last, sdk_types.ResponseErrorEvent)
    events, error = await ours(server)
    assert error is not None
    assert error.message == f"fake reported an error: {last.message}."
    assert (items(events), error.retryable) == ([], True)


async def test_a_stream_without_its_end(server: OpenAIServer) -> None:
    server.replies.append(WIRE.reply(RECORDED["ends without its end"]))
    events, error = await ours(server)
    assert error is not None
    assert error.code == "stream_broken"
    assert [item.kind for item in items(events)] == ["reasoning", "message"]


@pytest.mark.parametrize(
    ("status", "kind", "their_kind"),
    [
        (400, BadRequest, openai.BadRequestError),
        (401, Unauthorized, openai.AuthenticationError),
        (429, RateLimited, openai.RateLimitError),
        (500, ModelError, openai.InternalServerError),
    ],
)
async def test_http_errors(
    server: OpenAIServer,
    sdk: openai.AsyncOpenAI,
    status: int,
    kind: type[ModelError],
    their_kind: type[openai.APIStatusError],
) -> None:
    body: JsonValue = {"error": {"message": "boom", "type": "x", "param": None, "code": None}}
    server.replies.extend([refused(status, body)] * 5)
    with pytest.raises(their_kind, match="boom"):
        await theirs(sdk)
    events, error = await ours(server)
    assert isinstance(error, kind)
    assert error.status == status
    assert "boom" in error.message
    assert items(events) == []


async def test_thinking_that_the_server_rejects_is_left_out_once(server: OpenAIServer) -> None:
    message = "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    rejected: Reply = refused(400, {"error": {"message": message, "code": None}})
    server.replies.extend([rejected, WIRE.reply(WIRE.said("hi"))])
    events, error = await ours(server)
    assert error is None
    assert items(events) == [Message.of("assistant", "hi")]
    first, second = (exchange.json["input"] for exchange in server.exchanges)
    assert second == [item for item in first if item["type"] != "reasoning"]
