"""The official SDK judges streams and requests: both sides must read and send the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import anthropic
import pytest
from anthropic import types
from pydantic import TypeAdapter

from agentls.core.errors import BadRequest, ModelError, RateLimited, Unauthorized
from agentls.core.events import BlockStop, Event, Status, Usage
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
from agentls.llm.schemes.anthropic import Anthropic
from support.anthropic_streams import RECORDED, STOP, ended, error, opened, sse, start, use, words
from support.fake_server import FakeServer, Reply, refused
from support.openai_rig import HI
from support.proofs import proving

REQUEST = ModelRequest(
    system="Be brief.",
    items=(
        Message(
            role="user",
            content=(
                TextBlock(text="look"),
                ImageBlock(mime_type="image/png", data="AAAA"),
                DocumentBlock(mime_type="application/pdf", url="https://example.com/a.pdf"),
                DocumentBlock(mime_type="text/plain", data="YQ==", name="a.txt"),
            ),
        ),
        Reasoning(text="hm", signature="c2ln", provider="fake"),
        Reasoning(encrypted="EmwK", provider="fake"),
        Message.of("assistant", "I will."),
        ToolCall(call_id="a.b", name="glob", arguments={"pattern": "ü"}),
        ToolResult(call_id="a.b", name="glob", content="", is_error=True),
        Message.of("user", "go on"),
    ),
    tools=(ToolDefinition(name="glob", description="Find.", parameters={"type": "object"}),),
    max_tokens=500,
    stop=("END",),
    response_schema={"type": "object"},
)
SCHEMES = {
    "budget": Anthropic("m", provider="fake"),
    "adaptive": Anthropic("m", provider="fake", thinking="adaptive"),
}


@pytest.fixture
async def server() -> AsyncGenerator[FakeServer, None]:
    async with FakeServer() as server:
        yield server


@pytest.fixture
async def sdk(server: FakeServer) -> AsyncGenerator[anthropic.AsyncAnthropic, None]:
    client = anthropic.AsyncAnthropic(base_url=server.url, api_key="k" * 9, max_retries=0)
    async with client:
        yield client


CAPABILITIES = Capabilities(images=True, documents=True)


async def ours(
    server: FakeServer, request: ModelRequest = HI, scheme: str = "budget"
) -> tuple[list[Event], ModelError | None]:
    """All events of one request, and the error it ended with."""

    async def no_wait(_seconds: float) -> None:
        return

    transport = Transport(server.url, provider="fake", retry=RetryPolicy(sleep=no_wait))
    info = ModelInfo(provider="fake", name="m", capabilities=CAPABILITIES)
    model = HttpModel(info, SCHEMES[scheme], transport)
    events: list[Event] = []
    try:
        async for event in model.stream(request):
            events.append(event)
    except ModelError as failure:
        return events, failure
    finally:
        await model.aclose()
    return events, None


def items_of(message: Any) -> list[Item]:
    """What the SDK read, as our reader gives it: calls are over last."""
    items: list[Item] = []
    calls: list[Item] = []
    for block in message.content:
        match block.type:
            case "text" if block.text:
                items.append(Message.of("assistant", block.text))
            case "thinking":
                signed = block.signature
                thinking = block.thinking
                items.append(Reasoning(text=thinking, signature=signed, provider="fake"))
            case "redacted_thinking":
                items.append(Reasoning(encrypted=block.data, provider="fake"))
            case "tool_use":
                calls.append(ToolCall(call_id=block.id, name=block.name, arguments=block.input))
    return items + calls


def usage_of(usage: types.Usage) -> Usage:
    read, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    details = usage.output_tokens_details
    return Usage(
        input_tokens=usage.input_tokens + read + written,
        output_tokens=usage.output_tokens,
        cache_read_tokens=read,
        cache_creation_tokens=written,
        reasoning_tokens=details.thinking_tokens if details else 0,
    )


REPLIES = {
    name: RECORDED[name]
    for name in (
        "text",
        "llama.cpp text",
        "llama.cpp call",
        "thinking, text and two calls",
        "thinking that is not shown",
        "tools of the server",
    )
} | {
    "refusal": sse(start(), *words(0, "No."), ended("refusal"), STOP),
    "usage corrected at the end": sse(
        start(cache_read_input_tokens=1),
        *words(0, "a"),
        ended("stop_sequence", 9, input_tokens=8, cache_read_input_tokens=2),
        STOP,
    ),
    "a call without arguments": sse(start(), *use(0, "x", "f"), ended("tool_use"), STOP),
}


@proving("anthropic", "thinking", "cache", peer="fake (anthropic SDK)")
@pytest.mark.parametrize("name", REPLIES)
async def test_both_read_the_same(
    name: str, server: FakeServer, sdk: anthropic.AsyncAnthropic
) -> None:
    server.replies.extend([Reply([REPLIES[name]]), Reply([REPLIES[name]])])
    async with sdk.messages.stream(
        model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
    ) as stream:
        message = await stream.get_final_message()
    events, failure = await ours(server)
    assert failure is None
    assert [e.item for e in events if isinstance(e, BlockStop)] == items_of(message)
    reason = {"stop_sequence": "end_turn"}.get(str(message.stop_reason), message.stop_reason)
    assert events[-2:] == [
        usage_of(message.usage),
        Status.model_validate({"state": "finished", "stop_reason": reason}),
    ]


@proving("anthropic", "images", peer="fake (anthropic SDK)")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.5},
        {"effort": "none", "temperature": 0.5},
        {"effort": "high", "top_p": 0.97, "temperature": 0.5},
    ],
)
async def test_the_sdk_sends_the_body_we_send(
    scheme: str, settings: dict[str, Any], server: FakeServer, sdk: anthropic.AsyncAnthropic
) -> None:
    request = REQUEST.model_copy(update=settings)
    body: Any = SCHEMES[scheme].build(request)
    TypeAdapter(types.MessageCreateParams).validate_python(body)
    server.replies.extend([Reply([sse(start(), ended("end_turn"), STOP)])] * 3)
    # Its newest version has no sampling any more: such settings go past its types.
    sampling = {key: body[key] for key in ("temperature", "top_p") if key in body}
    typed = {key: value for key, value in body.items() if key not in ("stream", *sampling)}
    async for _ in await sdk.messages.create(**typed, stream=True, extra_body=sampling):
        pass
    async with sdk.messages.stream(**typed, extra_body=sampling) as stream:
        await stream.until_done()
    _, failure = await ours(server, request, scheme)
    assert failure is None
    assert [exchange.json for exchange in server.exchanges] == [body] * 3
    assert {exchange.path for exchange in server.exchanges} == {"/v1/messages"}


async def test_errors_inside_a_stream(server: FakeServer, sdk: anthropic.AsyncAnthropic) -> None:
    stream = sse(start(), opened(0, "text", text=""), error("overloaded_error", "Busy."))
    server.replies.extend([Reply([stream]), Reply([stream])])
    with pytest.raises(anthropic.APIStatusError, match=r"Busy\."):
        async for _ in await sdk.messages.create(
            model="m", max_tokens=9, stream=True, messages=[{"role": "user", "content": "hi"}]
        ):
            pass
    body = sse(start(), *words(0, "a"), error("overloaded_error", "Busy."))
    server.replies[0] = Reply([body])
    _, failure = await ours(server)
    assert failure is not None
    assert (failure.code, failure.status) == ("stream_broken", 503)
    assert failure.message == "fake reported an error: Busy."


ERRORS = [
    (400, "invalid_request_error", anthropic.BadRequestError, BadRequest),
    (401, "authentication_error", anthropic.AuthenticationError, Unauthorized),
    (403, "permission_error", anthropic.PermissionDeniedError, Unauthorized),
    (404, "not_found_error", anthropic.NotFoundError, BadRequest),
    (413, "request_too_large", anthropic.APIStatusError, BadRequest),
    (429, "rate_limit_error", anthropic.RateLimitError, RateLimited),
    (500, "api_error", anthropic.InternalServerError, ModelError),
    (529, "overloaded_error", anthropic.InternalServerError, ModelError),
]


@pytest.mark.parametrize(("status", "kind", "theirs", "mine"), ERRORS)
async def test_errors_by_status(
    status: int,
    kind: str,
    theirs: type[anthropic.APIStatusError],
    mine: type[ModelError],
    server: FakeServer,
    sdk: anthropic.AsyncAnthropic,
) -> None:
    reply = refused(status, {**error(kind, "Why."), "request_id": "req_1"})
    server.replies.append(reply)
    with pytest.raises(theirs, match=r"Why\.") as caught:
        await sdk.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        )
    assert caught.value.status_code == status
    server.replies.extend([reply] * 4)
    events, failure = await ours(server)
    assert (type(failure), failure and failure.status) == (mine, status)
    assert failure is not None
    assert "Why." in failure.message
    retries = 3 if failure.retryable else 0
    assert ([event.type for event in events], len(server.replies)) == (
        ["status"] * retries,
        3 - retries,
    )
