"""Providers' lists of models, as each of them writes it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import pytest
from pydantic import JsonValue, SecretStr

from agentls.core.errors import ModelError, SettingsError, Unauthorized
from agentls.llm.capabilities import Known
from agentls.llm.model_lists import list_models
from agentls.llm.provider import ProviderConfig
from agentls.llm.registry import PROVIDERS
from support.fake_server import FakeServer, Reply, refused


def document(value: JsonValue) -> Reply:
    return Reply([json.dumps(value).encode()], 200, {"Content-Type": "application/json"})


@pytest.fixture
async def server() -> AsyncGenerator[FakeServer, None]:
    async with FakeServer() as server:
        yield server


async def ask(server: FakeServer, name: str, *replies: Reply) -> dict[str, Known]:
    server.replies.extend(replies)
    config = ProviderConfig(base_url=server.url, api_key=SecretStr("k" * 20))
    return await list_models(PROVIDERS[name], config, timeout_s=5)


async def test_anthropic_in_pages(server: FakeServer) -> None:
    def model(name: str) -> JsonValue:
        return {
            "id": name,
            "max_input_tokens": 200_000,
            "max_tokens": 64_000,
            "capabilities": {
                "image_input": {"supported": True},
                "pdf_input": {"supported": False},
                "thinking": {"supported": True, "types": {}},
            },
        }

    found = await ask(
        server,
        "anthropic",
        document({"data": [model("a")], "has_more": True, "last_id": "a"}),
        document({"data": [model("b/é")], "has_more": False, "last_id": "b/é"}),
    )
    known = Known(
        context_window=200_000,
        max_output_tokens=64_000,
        images=True,
        documents=False,
        thinking=True,
    )
    assert found == {"a": known, "b/é": known}
    first, second = server.exchanges
    assert (first.path, second.path) == (
        "/v1/models?limit=1000",
        "/v1/models?limit=1000&after_id=a",
    )
    assert first.headers["x-api-key"] == "k" * 20
    assert first.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in first.headers


async def test_gemini_leaves_out_what_does_not_talk(server: FakeServer) -> None:
    talks: JsonValue = {
        "name": "models/gemini-x",
        "inputTokenLimit": 1_000,
        "outputTokenLimit": 10,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
        "thinking": True,
    }
    embeds: JsonValue = {"name": "models/e", "supportedGenerationMethods": ["embedContent"]}
    found = await ask(
        server,
        "gemini",
        document({"models": [talks, embeds], "nextPageToken": "p 2"}),
        document({"models": [{"name": "models/other"}]}),
    )
    assert found == {
        "gemini-x": Known(context_window=1_000, max_output_tokens=10, thinking=True),
        "other": Known(),
    }
    assert server.exchanges[1].path in (
        "/v1beta/models?pageSize=1000&pageToken=p+2",
        "/v1beta/models?pageSize=1000&pageToken=p%202",
    )


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        ({"id": "m", "object": "model"}, Known()),
        ({"id": "m", "context_window": 131_072}, Known(context_window=131_072)),  # Groq
        ({"id": "m", "max_model_len": 4_096}, Known(context_window=4_096)),  # vLLM
        ({"id": "m", "meta": {"n_ctx_train": 8_192}}, Known(context_window=8_192)),  # llama.cpp
        (  # OpenRouter
            {
                "id": "m",
                "context_length": 9,
                "architecture": {"input_modalities": ["text", "image"]},
                "top_provider": {"max_completion_tokens": 3},
            },
            Known(context_window=9, max_output_tokens=3, images=True),
        ),
        ({"id": "m", "context_window": True, "meta": 3, "architecture": []}, Known()),
    ],
)
async def test_openai_and_its_kin(server: FakeServer, entry: JsonValue, known: Known) -> None:
    assert await ask(server, "openai", document({"data": [entry, 7, {"id": None}]})) == {"m": known}
    assert await ask(server, "openai", document([entry])) == {"m": known}  # Together


async def test_no_list(server: FakeServer) -> None:
    with pytest.raises(ModelError, match="no list of models"):
        await ask(server, "openai", document({"models": 3}))
    with pytest.raises(Unauthorized, match="bad key"):
        await ask(server, "groq", refused(401, {"error": {"message": "bad key"}}))
    with pytest.raises(Unauthorized, match="needs a key"):
        await list_models(PROVIDERS["groq"], ProviderConfig())
    with pytest.raises(SettingsError, match="has no list"):
        await list_models(PROVIDERS["scripted"], ProviderConfig())
