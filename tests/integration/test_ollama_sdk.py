"""The official SDK judges the fake server, and both must read the same out of it."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

import ollama
import pytest
from pydantic import JsonValue

from agentls.core.errors import BadRequest, ModelError, StreamBroken
from agentls.core.events import BlockStop, Event, Status, StopReason, Usage
from agentls.core.messages import (
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
from agentls.llm.ollama import describe, ollama_models
from agentls.llm.provider import ProviderConfig
from agentls.llm.schemes.ollama import Ollama
from support.fake_server import FakeServer, Reply, refused
from support.ollama_streams import RECORDED, delta, done, ndjson
from support.openai_streams import counter
from support.proofs import proving
from support.wires.ollama import WIRE

HI = ModelRequest(items=(Message.of("user", "hi"),))
SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"path": {"type": "string", "description": "Where."}},
    "required": ["path"],
}
PIXEL = base64.b64encode(b"not really a picture").decode()


@pytest.fixture
async def server() -> AsyncGenerator[FakeServer, None]:
    async with FakeServer() as server:
        yield server


@pytest.fixture
async def sdk(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[ollama.AsyncClient, None]:
    monkeypatch.delenv("OLLAMA_API_KEY", raising=False)
    async with ollama.AsyncClient(host=server.url) as client:
        yield client


async def ours(server: FakeServer, request: ModelRequest = HI) -> list[Event]:
    transport = Transport(server.url, provider="fake", retry=RetryPolicy(attempts=1))
    scheme = Ollama("m", provider="fake", num_ctx=4096, new_id=counter())
    info = ModelInfo(provider="fake", name="m", capabilities=Capabilities(images=True))
    model = HttpModel(info, scheme, transport)
    try:
        return [event async for event in model.stream(request)]
    finally:
        await model.aclose()


async def as_read(parts: AsyncIterator[ollama.ChatResponse]) -> tuple[list[Item], Usage, str]:
    """Items, usage and reason of a reply, out of the SDK's own objects."""
    thinking, text, last = "", "", None
    calls: list[Item] = []
    new_id = counter()
    async for part in parts:
        thinking += part.message.thinking or ""
        text += part.message.content or ""
        calls += [
            ToolCall(
                call_id=new_id(),
                name=call.function.name,
                arguments=dict(call.function.arguments),
            )
            for call in part.message.tool_calls or ()
        ]
        last = part
    assert last is not None
    assert last.done
    items: list[Item] = [Reasoning(text=thinking, provider="fake")] if thinking else []
    items += [Message.of("assistant", text)] if text else []
    usage = Usage(input_tokens=last.prompt_eval_count or 0, output_tokens=last.eval_count or 0)
    return items + calls, usage, last.done_reason or ""


REPLIES: dict[str, tuple[bytes, StopReason | str]] = {
    "text": (WIRE.said("hello", " wörld", " 😀"), "end_turn"),
    "thinking": (WIRE.thought("let me see", "done"), "end_turn"),
    "parallel calls": (RECORDED["parallel calls"], "tool_use"),
    "cut": (WIRE.cut("so far"), "max_tokens"),
    "no counts": (
        ndjson(delta("a"), done(prompt_eval_count=None, eval_count=None)),
        "end_turn",
    ),
}


@proving("ollama", "tools", "parallel tools", "thinking", "usage", peer="fake (ollama SDK)")
@pytest.mark.parametrize("name", REPLIES)
async def test_both_read_the_same(name: str, server: FakeServer, sdk: ollama.AsyncClient) -> None:
    body, stop_reason = REPLIES[name]
    server.replies.extend([WIRE.reply(body), WIRE.reply(body)])
    stream = await sdk.chat("m", messages=[{"role": "user", "content": "hi"}], stream=True)
    items, usage, done_reason = await as_read(stream)
    events = await ours(server)
    assert [event.item for event in events if isinstance(event, BlockStop)] == items
    assert [event for event in events if isinstance(event, Usage)] == [usage]
    finished = events[-1]
    assert isinstance(finished, Status)
    assert finished.stop_reason == stop_reason
    assert done_reason == ("length" if stop_reason == "max_tokens" else "stop")


def known(value: Any) -> Any:
    """A body without the fields that the server has and the SDK does not."""
    if isinstance(value, dict):
        newer = {"truncate", "shift", "id", "tool_call_id"}
        return {key: known(each) for key, each in value.items() if key not in newer}
    return [known(each) for each in value] if isinstance(value, list) else value


@proving("ollama", "images", peer="fake (ollama SDK)")
async def test_both_send_the_same(server: FakeServer, sdk: ollama.AsyncClient) -> None:
    server.replies.extend([WIRE.reply(WIRE.said("ok"))] * 2)
    request = ModelRequest(
        system="Be brief.",
        items=(
            Message(
                role="user",
                content=(
                    TextBlock(text="Look."),
                    ImageBlock(mime_type="image/png", data=PIXEL),
                ),
            ),
            Reasoning(text="hm", provider="fake"),
            Message.of("assistant", "I will."),
            ToolCall(call_id="1", name="read_file", arguments={"path": "a"}),
            ToolCall(call_id="2", name="read_file", arguments={"path": "b"}),
            ToolResult(call_id="1", name="read_file", content="A"),
            ToolResult(call_id="2", name="read_file", content="B"),
        ),
        tools=(ToolDefinition(name="read_file", description="Read.", parameters=SCHEMA),),
        max_tokens=9,
        temperature=0.5,
        top_p=0.25,
        seed=1,
        stop=("END",),
        effort="high",
        response_schema=SCHEMA,
    )
    await ours(server, request)

    def calling(path: str) -> ollama.Message.ToolCall:
        function = ollama.Message.ToolCall.Function(name="read_file", arguments={"path": path})
        return ollama.Message.ToolCall(function=function)

    parameters = ollama.Tool.Function.Parameters.model_validate(SCHEMA)
    stream = await sdk.chat(
        "m",
        messages=[
            ollama.Message(role="system", content="Be brief."),
            ollama.Message(role="user", content="Look.", images=[ollama.Image(value=PIXEL)]),
            ollama.Message(
                role="assistant",
                content="I will.",
                thinking="hm",
                tool_calls=[calling("a"), calling("b")],
            ),
            ollama.Message(role="tool", content="A", tool_name="read_file"),
            ollama.Message(role="tool", content="B", tool_name="read_file"),
        ],
        tools=[
            ollama.Tool(
                function=ollama.Tool.Function(
                    name="read_file", description="Read.", parameters=parameters
                )
            )
        ],
        stream=True,
        think=True,
        format=SCHEMA,
        options=ollama.Options(
            num_ctx=4096, num_predict=9, temperature=0.5, top_p=0.25, seed=1, stop=["END"]
        ),
    )
    assert [part.message.content async for part in stream] == ["ok", ""]
    mine, theirs = server.exchanges
    assert (mine.method, mine.path) == (theirs.method, theirs.path) == ("POST", "/api/chat")
    assert known(mine.json) == theirs.json
    assert mine.json["truncate"] is mine.json["shift"] is False
    ids = [message.get("tool_call_id") for message in mine.json["messages"]]
    assert ids == [None, None, None, "1", "2"]


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (404, "model 'm' not found", BadRequest),
        (400, '"m" does not support tools', BadRequest),
        (500, "model requires more system memory (9 GiB) than is available", ModelError),
    ],
)
async def test_errors_by_status(
    status: int, said: str, kind: type[ModelError], server: FakeServer, sdk: ollama.AsyncClient
) -> None:
    server.replies.extend([refused(status, {"error": said})] * 2)
    with pytest.raises(ollama.ResponseError) as theirs:
        async for _ in await sdk.chat("m", messages=[], stream=True):
            pass
    assert (theirs.value.status_code, theirs.value.error) == (status, said)
    with pytest.raises(ModelError) as mine:
        await ours(server)
    assert (type(mine.value), mine.value.status, mine.value.retryable) == (kind, status, False)
    assert said in mine.value.message
    assert mine.value.hint


async def test_a_server_that_refuses_instead_of_cutting(server: FakeServer) -> None:
    said = "the prompt is longer than the context length currently available to the model"
    server.replies.append(refused(400, {"error": said}))
    transport = Transport(server.url, provider="ollama")
    model = HttpModel(ModelInfo(provider="ollama", name="m"), Ollama("m", num_ctx=64), transport)
    with pytest.raises(BadRequest, match=r"set llm\.ollama\.context_tokens higher"):
        [event async for event in model.stream(HI)]
    await model.aclose()
    (exchange,) = server.exchanges
    assert exchange.json["options"] == {"num_ctx": 64}


async def test_an_error_midway(server: FakeServer, sdk: ollama.AsyncClient) -> None:
    body = RECORDED["error inside"]
    server.replies.extend([WIRE.reply(body)] * 2)
    with pytest.raises(ollama.ResponseError, match="unexpected EOF"):
        async for _ in await sdk.chat("m", messages=[], stream=True):
            pass
    with pytest.raises(StreamBroken, match="unexpected EOF"):
        await ours(server)


async def test_both_see_the_same_models(server: FakeServer, sdk: ollama.AsyncClient) -> None:
    def answer(value: Mapping[str, JsonValue]) -> Reply:
        return Reply([json.dumps(value).encode()], headers={"Content-Type": "application/json"})

    tags = answer(
        {
            "models": [
                {
                    "name": "qwen3:8b",
                    "model": "qwen3:8b",
                    "modified_at": "2026-01-02T03:04:05.678901234Z",
                    "size": 1,
                    "digest": "d",
                    "details": {"family": "qwen3", "families": ["qwen3"]},
                }
            ]
        }
    )
    show = answer(
        {
            "parameters": "num_ctx                        8192",
            "details": {"family": "qwen3", "families": ["qwen3"]},
            "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40_960},
            "capabilities": ["completion", "tools", "thinking"],
        }
    )
    server.replies.extend([tags, tags, show, show])
    theirs = await sdk.list()
    config = ProviderConfig(base_url=server.url)
    assert [model.model for model in theirs.models] == await ollama_models(config)
    told = await sdk.show("qwen3:8b")
    transport = Transport(server.url, provider="ollama")
    model = await describe(transport, "qwen3:8b")
    await transport.aclose()
    assert told.capabilities == ["completion", "tools", "thinking"]
    assert told.parameters == "num_ctx                        8192"
    assert model is not None
    assert model.capabilities == Capabilities(
        tool_calling="native", context_window=8192, thinking=True
    )
    sent = server.exchanges
    assert sent[0].path == sent[1].path == "/api/tags"
    assert (sent[2].path, sent[2].json) == (sent[3].path, sent[3].json)
