"""What an Ollama has, and what it says of its models."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import JsonValue, SecretStr

from agentls.core.errors import BadRequest, NoModel, Unauthorized, Unreachable
from agentls.core.requests import Capabilities
from agentls.llm.ollama import (
    OllamaModel,
    describe,
    newest_model,
    ollama_models,
    same_model,
    transport_to,
)
from agentls.llm.provider import ProviderConfig
from support.fake_server import FakeServer, Reply, refused

JSON = {"Content-Type": "application/json"}
NO_EFFORT: Any = frozenset({"effort"})


def answer(value: JsonValue) -> Reply:
    return Reply([json.dumps(value).encode()], headers=JSON)


def shown(
    *abilities: str,
    family: str = "llama",
    length: int | None = 131_072,
    parameters: str = "",
    **more: JsonValue,
) -> dict[str, JsonValue]:
    """An answer of /api/show."""
    info: dict[str, JsonValue] = {"general.architecture": family, "tokenizer.ggml.model": "gpt2"}
    if length is not None:
        info[f"{family}.context_length"] = length
    return {
        "modelfile": "FROM x",
        "parameters": parameters,
        "template": "{{ .Prompt }}",
        "details": {"family": family, "families": [family], "format": "gguf"},
        "model_info": info,
        "capabilities": [*abilities],
        **more,
    }


async def described(
    reply: Reply | JsonValue, *, context_tokens: int | None = None
) -> OllamaModel | None:
    """What is made of the server's answer about the model "m"."""
    async with FakeServer(reply if isinstance(reply, Reply) else answer(reply)) as server:
        transport = transport_to(ProviderConfig(base_url=server.url))
        try:
            return await describe(transport, "m", context_tokens=context_tokens)
        finally:
            await transport.aclose()
            (exchange,) = server.exchanges
            assert (exchange.method, exchange.path) == ("POST", "/api/show")
            assert exchange.json == {"model": "m"}


# --- abilities -------------------------------------------------------------------------------


async def test_all_it_can_do() -> None:
    assert await described(shown("completion", "tools", "vision", "thinking")) == OllamaModel(
        Capabilities(tool_calling="native", context_window=16_384, images=True, thinking=True),
        num_ctx=16_384,
    )


async def test_a_model_without_tools_calls_them_in_text() -> None:
    assert await described(shown("completion", "insert")) == OllamaModel(
        Capabilities(tool_calling="text", context_window=16_384, refuses=NO_EFFORT),
        num_ctx=16_384,
    )


@pytest.mark.parametrize("family", ["gptoss", "gpt-oss"])
async def test_families_with_levels_of_thinking(family: str) -> None:
    model = await described(shown("completion", "tools", "thinking", family=family))
    assert model is not None
    assert (model.think_levels, model.capabilities.thinking) == (True, True)


async def test_a_model_that_only_embeds() -> None:
    model = await described(shown("embedding", family="bert", length=512))
    assert model is not None
    assert (model.embeds, model.num_ctx) == (True, 512)


@pytest.mark.parametrize(
    ("more", "calling", "images"),
    [
        ({"template": "{{ if .Tools }}{{ end }}"}, "native", False),
        ({"projector_info": {"general.architecture": "clip"}}, "text", True),
        ({"details": {"family": "llama", "families": ["llama", "clip"]}}, "text", True),
        ({"details": {"family": "mllama", "families": None}}, "text", True),
        (
            {"template": None, "details": None, "model_info": None, "parameters": None},
            "text",
            False,
        ),
    ],
)
async def test_an_older_server_says_it_by_its_files(
    more: dict[str, JsonValue], calling: str, images: bool
) -> None:
    model = await described({**shown(), "capabilities": None, **more})
    assert model is not None
    capabilities = model.capabilities
    assert (capabilities.tool_calling, capabilities.images, model.embeds) == (
        calling,
        images,
        False,
    )


# --- context ---------------------------------------------------------------------------------

BY_FILE = 'stop                           "<|end|>"\nnum_ctx                        8192\n'


@pytest.mark.parametrize(
    ("wanted", "parameters", "length", "num_ctx"),
    [
        (None, "", 131_072, 16_384),
        (None, "", 4096, 4096),
        (None, "", None, 16_384),
        (None, BY_FILE, 131_072, 8192),
        (None, BY_FILE.replace("\n", "\r\n"), None, 8192),
        (None, BY_FILE, 2048, 2048),
        (None, "num_ctx 65536", 131_072, 65_536),
        (None, "num_ctx many\nnum_ctx_more 7", 131_072, 16_384),
        (None, "num_ctx 0", 131_072, 16_384),
        (32_768, BY_FILE, 131_072, 32_768),
        (1024, "", 131_072, 1024),
        # The server lowers it to this and says nothing.
        (1_000_000, "", 131_072, 131_072),
        (1_000_000, "", None, 1_000_000),
    ],
)
async def test_which_context_to_ask_for(
    wanted: int | None, parameters: str, length: int | None, num_ctx: int
) -> None:
    model = await described(
        shown("completion", length=length, parameters=parameters), context_tokens=wanted
    )
    assert model is not None
    assert (model.num_ctx, model.capabilities.context_window) == (num_ctx, num_ctx)


@pytest.mark.parametrize(("length", "num_ctx"), [(262_144, 262_144), (None, 16_384)])
async def test_a_model_elsewhere_takes_no_memory_here(length: int | None, num_ctx: int) -> None:
    model = await described(
        shown("completion", length=length, remote_host="https://example.com", remote_model="m")
    )
    assert model is not None
    assert model.num_ctx == num_ctx


async def test_the_length_may_stand_under_another_name() -> None:
    odd = shown("completion", length=None)
    odd["model_info"] = {"other.context_length": 2048, "other.embedding_length": 4}
    model = await described(odd)
    assert model is not None
    assert model.num_ctx == 2048


# --- no answer -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said", ["model 'm' not found", 'model "m" not found, try pulling it first']
)
async def test_a_missing_model_says_how_to_get_it(said: str) -> None:
    with pytest.raises(NoModel) as caught:
        await described(refused(404, {"error": said}))
    assert str(caught.value) == (
        "Ollama has no model named m. Run `ollama pull m`, or choose one that `ollama list` shows."
    )
    assert caught.value.status == 404


@pytest.mark.parametrize(
    "reply",
    [
        Reply([b"404 page not found"], 404, {"Content-Type": "text/plain"}),
        refused(404, {"detail": "Not Found"}),
        refused(405),
        refused(501),
        refused(500, {"error": "oops"}),
        answer([]),
        answer(None),
    ],
)
async def test_a_server_that_answers_no_such_questions(reply: Reply) -> None:
    assert await described(reply) is None


async def test_what_is_no_api_is_an_error() -> None:
    with pytest.raises(Unauthorized, match="401"):
        await described(refused(401))
    with pytest.raises(BadRequest, match="did not answer as an API does"):
        await described(Reply([b"{oops"], headers=JSON))


async def test_nobody_there() -> None:
    async with FakeServer() as server:
        config = ProviderConfig(base_url=server.url)
    with pytest.raises(Unreachable):
        await ollama_models(config)
    with pytest.raises(Unreachable):
        await newest_model(config, ["a"])


# --- lists -----------------------------------------------------------------------------------


def tagged(name: str, family: str = "llama", **more: JsonValue) -> dict[str, JsonValue]:
    return {"name": name, "model": name, "details": {"family": family}, **more}


async def listed(*models: JsonValue) -> list[str]:
    async with FakeServer(answer({"models": [*models]})) as server:
        return await ollama_models(ProviderConfig(base_url=server.url))


async def test_models_that_embed_come_last() -> None:
    assert await listed(
        tagged("nomic-embed-text:latest", "nomic-bert"),
        tagged("vectors:latest", "bert"),
        tagged("all-minilm:l6-v2"),
        tagged("hub/someone/bge-m3:latest"),
        tagged("qwen3-embedding:0.6b", "qwen3"),
        tagged("mine:latest", capabilities=["embedding"]),
        tagged("qwen3:8b", "qwen3"),
        tagged("embedder-of-tools:latest", capabilities=["completion", "tools"]),
        {"name": "bare"},
        {"no": "name"},
        7,
    ) == [
        "qwen3:8b",
        "embedder-of-tools:latest",
        "bare",
        "nomic-embed-text:latest",
        "vectors:latest",
        "all-minilm:l6-v2",
        "hub/someone/bge-m3:latest",
        "qwen3-embedding:0.6b",
        "mine:latest",
    ]


async def test_what_answers_otherwise_is_not_ollama() -> None:
    async with FakeServer(answer({"models": "none"})) as server:
        with pytest.raises(Unreachable, match="not Ollama"):
            await ollama_models(ProviderConfig(base_url=server.url))


@pytest.mark.parametrize(
    ("replies", "newest"),
    [
        ([answer(shown("embedding")), answer(shown("completion"))], "b"),
        ([answer(shown("completion"))], "a"),
        ([refused(404, {"error": "model 'a' not found"}), answer(shown("completion"))], "b"),
        ([refused(405)], "a"),
        ([answer(shown("embedding"))] * 2, "a"),
    ],
)
async def test_the_newest_model_is_one_that_can_talk(replies: list[Reply], newest: str) -> None:
    async with FakeServer(*replies) as server:
        config = ProviderConfig(base_url=server.url)
        assert await newest_model(config, ["a", "b"]) == newest
        assert len(server.exchanges) == len(replies)
        assert await newest_model(config, []) is None


async def test_a_server_behind_a_gate_is_sent_the_key() -> None:
    async with FakeServer(answer({"models": []})) as server:
        config = ProviderConfig(
            base_url=f"{server.url}/v1/", api_key=SecretStr("k-123"), headers={"X-Team": "a"}
        )
        assert await ollama_models(config) == []
    (exchange,) = server.exchanges
    assert exchange.path == "/api/tags"
    assert exchange.headers["authorization"] == "Bearer k-123"
    assert exchange.headers["x-team"] == "a"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("llama3", "llama3:latest", True),
        ("Llama3:Latest", "llama3", True),
        ("llama3:8b", "llama3", False),
        ("llama3:8b", "llama3:8b", True),
        ("box:5000/me/m", "box:5000/me/m:latest", True),
        ("box:5000/me/m", "box:5000/me/n", False),
    ],
)
def test_names_with_and_without_a_tag(one: str, other: str, same: bool) -> None:
    assert same_model(one, other) is same
    assert same_model(other, one) is same
