from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue, SecretStr

from agentls.core.errors import SettingsError, Unauthorized
from agentls.core.messages import Message
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest
from agentls.llm.capabilities import facts
from agentls.llm.hosted import transport
from agentls.llm.ollama import ollama_url
from agentls.llm.provider import ProviderConfig
from agentls.llm.registry import PROVIDERS, create, one_try, pool_of, provider_named
from agentls.llm.text_calls.tools import TextToolModel
from support.agent_fakes import script

CLOUD = ["anthropic", "openai", "gemini", "groq", "deepseek", "openai-responses"]


@pytest.mark.parametrize("name", CLOUD)
async def test_a_cloud_provider_without_its_key_is_an_error_that_names_it(name: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        await create(name, ProviderConfig())
    assert str(caught.value) == (
        f"{name} needs a key and none is set. Set {PROVIDERS[name].key_variable}, or choose "
        "another provider with LLM_PROVIDER."
    )


async def test_a_server_of_ones_own_needs_no_key() -> None:
    model = await create("openai", ProviderConfig(base_url="http://127.0.0.1:8000/v1", model="m"))
    assert model.info == ModelInfo(
        provider="openai", name="m", capabilities=Capabilities(images=True)
    )


@pytest.mark.parametrize("name", CLOUD)
async def test_a_key_is_enough_for_the_default_model(name: str) -> None:
    model = await create(name, ProviderConfig(api_key=SecretStr("k")))
    family = name.removesuffix("-responses")
    assert (model.info.provider, model.info.name) == (name, PROVIDERS[name].model)
    assert model.info.capabilities == facts(family, PROVIDERS[name].model).capabilities
    assert model.info.capabilities.context_window is not None
    await model.aclose()


@pytest.mark.parametrize(
    ("name", "path", "headers"),
    [
        ("openai", "/v1/chat/completions", {"authorization": "Bearer k"}),
        ("openai-responses", "/v1/responses", {"authorization": "Bearer k"}),
        ("anthropic", "/v1/messages", {"x-api-key": "k", "anthropic-version": "2023-06-01"}),
        ("gemini", "/v1beta/models/m:streamGenerateContent", {"x-goog-api-key": "k"}),
    ],
)
def test_addresses_and_keys(name: str, path: str, headers: dict[str, str]) -> None:
    provider = PROVIDERS[name]
    config = ProviderConfig(api_key=SecretStr("k"), headers={"X-API-KEY": "mine"})
    assert provider.scheme is not None
    scheme = provider.scheme(provider, config, "m", facts(name, "m"))
    for base in (provider.base_url, f"{provider.base_url}/".removesuffix("/v1/")):
        way = transport(provider, config.model_copy(update={"base_url": base}))
        url = way.endpoint.url(scheme.path)
        assert url.path == path or name.startswith("openai")
    sent = {key.lower(): value for key, value in way.endpoint.headers().items()}
    expected = {**headers, "x-api-key": "mine"}
    assert {key: sent.get(key) for key in expected} == expected


async def test_what_the_user_says_of_a_model_counts() -> None:
    config = ProviderConfig(
        api_key=SecretStr("k"), model="gpt-4", context_tokens=99_000, tool_calling="text"
    )
    model = await create("openai", config)
    assert isinstance(model, TextToolModel)
    can = model.info.capabilities
    assert (can.context_window, can.max_output_tokens) == (99_000, 4_096)


@pytest.mark.parametrize("name", ["openai_responses", " Anthropic ", "OLLAMA"])
def test_names_are_taken_as_they_are_meant(name: str) -> None:
    assert provider_named(name).name == name.strip().lower().replace("_", "-")


async def test_an_unknown_provider_is_refused_with_the_list() -> None:
    with pytest.raises(SettingsError, match="auto, anthropic, openai, gemini, groq, deepseek"):
        await create("nope", ProviderConfig())


async def test_the_scripted_model_needs_a_script(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="AGENTLS_SCRIPT"):
        await create("scripted", ProviderConfig())
    config = ProviderConfig(script=script(tmp_path, {"text": "x"}))
    assert (await create("scripted", config)).info.provider == "scripted"


async def test_a_function_is_a_model() -> None:
    with pytest.raises(SettingsError, match=r"llm\.custom\.function"):
        await create("custom", ProviderConfig())
    model = await create("custom", ProviderConfig(function="builtins:str"))
    assert model.info.provider == "custom"


async def test_a_pool_of_one_is_that_one_and_members_ask_once() -> None:
    config = one_try(ProviderConfig(api_key=SecretStr("k")))
    assert config.attempts == 1
    one, other = await create("groq", config), await create("openai", config)
    assert pool_of([one]) is one
    pool = pool_of([one, other], order="listed", seed=1)
    assert pool.info.provider == "pool"


@pytest.mark.parametrize(
    ("name", "model", "field", "value"),
    [
        ("openai", "gpt-5-mini", "reasoning_effort", "minimal"),
        ("openai", "gpt-6-sol", "max_completion_tokens", 7),
        ("groq", "m", "max_tokens", 7),
        ("anthropic", "claude-haiku-4-5", "max_tokens", 7),
        ("openai-responses", "gpt-6-sol", "max_output_tokens", 7),
    ],
)
def test_what_the_table_and_the_provider_say_reaches_the_request(
    name: str, model: str, field: str, value: JsonValue
) -> None:
    provider = PROVIDERS[name]
    assert provider.scheme is not None
    known = facts(provider.family, model)
    scheme = provider.scheme(provider, ProviderConfig(), model, known)
    request = ModelRequest(items=(Message.of("user", "hi"),), max_tokens=7, effort="none")
    assert scheme.build(request)[field] == value


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0:9", "http://127.0.0.1:9"),
        ("http://box:1/", "http://box:1"),
        ("https://box", "https://box"),
        ("https://box/ollama/", "https://box/ollama"),
        ("[::1]", "http://[::1]:11434"),
        (" localhost ", "http://localhost:11434"),
        (":8080", "http://127.0.0.1:8080"),
        ("http://", "http://127.0.0.1:11434"),
        ("[::]:9", "http://[::1]:9"),
        ("http://box:1/v1/", "http://box:1"),
        ("user:pass@box", "http://user:pass@box:11434"),
        ("box:99999", "http://box:99999"),
        ("[::1", "http://[::1"),
    ],
)
def test_every_form_of_ollama_host(host: str, url: str) -> None:
    assert ollama_url(host) == url
