from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from agentls.core.errors import NoModel, SettingsError, Unreachable
from agentls.llm.provider import ProviderConfig
from agentls.llm.selection import Choice, choose, choose_pool
from support.openai_server import OpenAIServer, Reply


def tags(*names: str) -> Reply:
    body = json.dumps({"models": [{"name": name} for name in names]}).encode()
    return Reply([body], headers={"Content-Type": "application/json"})


@pytest.fixture
def closed_port() -> Iterator[str]:
    """An address where nobody listens and nobody else can start to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def at(server: OpenAIServer) -> str:
    return server.url.removesuffix("/v1")


async def test_an_explicit_provider_is_taken_as_it_is() -> None:
    config = ProviderConfig(model="a", base_url="http://127.0.0.1:1/v1")
    assert await choose("openai", {"openai": config}, "b") == Choice(
        "openai", config.model_copy(update={"model": "b"}), "openai is the chosen provider"
    )


async def test_an_unknown_provider_is_refused() -> None:
    with pytest.raises(SettingsError, match="no provider named 'nope'"):
        await choose("nope", {})


async def test_the_keyring_is_asked_only_for_a_key_that_is_needed(closed_port: str) -> None:
    asked: list[str] = []

    async def find_key(provider: str) -> SecretStr | None:
        asked.append(provider)
        return SecretStr("found") if provider == "gemini" else None

    own = ProviderConfig(base_url="http://127.0.0.1:1/v1")
    with_key = ProviderConfig(api_key=SecretStr("k"))
    await choose("openai", {"openai": own}, find_key=find_key)
    await choose("openai-responses", {"openai": with_key}, find_key=find_key)
    await choose("local", {}, find_key=find_key)
    assert asked == []
    choice = await choose("gemini", {}, find_key=find_key)
    assert choice.config.api_key == SecretStr("found")
    assert asked == ["gemini"]
    configs = {"ollama": ProviderConfig(base_url=closed_port)}
    choice = await choose("auto", configs, find_key=find_key)
    assert (choice.provider, choice.reason) == ("gemini", "its key is in the system keyring")
    assert asked == ["gemini", "anthropic", "openai", "gemini"]


KEYED = ProviderConfig(api_key=SecretStr("k"))
OWN = ProviderConfig(base_url="http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    ("configs", "model", "provider", "name"),
    [
        ({"openai": KEYED, "groq": KEYED}, "openai/gpt-6-sol", "openai", "gpt-6-sol"),
        ({"openai": KEYED, "groq": KEYED}, "groq/openai/gpt-x", "groq", "openai/gpt-x"),
        ({}, "anthropic/claude-x", "anthropic", "claude-x"),  # whose key is then asked for
        ({"openai": OWN}, "ollama/qwen", "ollama", "qwen"),
        ({"openai": OWN}, "local/qwen1.5b", "local", "qwen1.5b"),
        # Groq's own names, and those of servers that pass requests on.
        ({"groq": KEYED, "ollama": OWN}, "openai/gpt-oss-20b", "groq", "openai/gpt-oss-20b"),
        ({"openai": OWN}, "anthropic/claude-x", "openai", "anthropic/claude-x"),
        ({"openai": OWN}, "openai/gpt-x", "openai", "openai/gpt-x"),
        ({"anthropic": OWN, "openai": OWN}, "openai/gpt-x", "openai", "openai/gpt-x"),
        ({"openai": OWN}, "some/model", "openai", "some/model"),
        ({"openai": OWN}, "openai/", "openai", "openai/"),
        ({}, "local/folder/weights.gguf", "local", "local/folder/weights.gguf"),
    ],
)
async def test_a_model_may_name_its_provider(
    configs: dict[str, ProviderConfig], model: str, provider: str, name: str
) -> None:
    choice = await choose("auto", configs, model)
    assert (choice.provider, choice.config.model) == (provider, name)


async def test_a_pool() -> None:
    configs = {
        "anthropic": ProviderConfig(api_key=SecretStr("a"), model="x"),
        "groq": ProviderConfig(api_key=SecretStr("g")),
    }
    members = await choose_pool(["anthropic", "groq/openai/gpt-oss-20b", "groq"], configs)
    assert [(each.provider, each.config.model) for each in members] == [
        ("anthropic", "x"),
        ("groq", "openai/gpt-oss-20b"),
        ("groq", ""),
    ]
    with pytest.raises(SettingsError, match="no provider named 'nope'"):
        await choose_pool(["nope"], configs)


async def test_auto_takes_what_the_user_configured_first(closed_port: str) -> None:
    configs = {
        "ollama": ProviderConfig(base_url=closed_port),
        "openai": ProviderConfig(base_url="http://127.0.0.1:1/v1"),
        "groq": ProviderConfig(api_key=SecretStr("k")),
    }
    choice = await choose("auto", configs)
    assert (choice.provider, choice.reason) == ("openai", "a base URL is set for openai")


async def test_auto_takes_a_running_ollama_before_a_key() -> None:
    async with OpenAIServer(tags("qwen2.5-coder:7b", "llama3")) as server:
        configs = {
            "ollama": ProviderConfig(base_url=at(server)),
            "openai": ProviderConfig(api_key=SecretStr("k")),
        }
        choice = await choose("auto", configs)
        assert (choice.provider, choice.config.model) == ("ollama", "qwen2.5-coder:7b")
        assert (await server.exchange()).path == "/api/tags"


async def test_auto_takes_the_first_key(closed_port: str) -> None:
    configs = {
        "ollama": ProviderConfig(base_url=closed_port),
        "deepseek": ProviderConfig(api_key=SecretStr("k")),
        "groq": ProviderConfig(api_key=SecretStr("k")),
    }
    choice = await choose("auto", configs)
    assert (choice.provider, choice.reason) == ("groq", "GROQ_API_KEY is set")


async def test_auto_takes_a_model_named_as_embedded_without_looking_further(
    tmp_path: Path,
) -> None:
    choice = await choose("auto", {"openai": ProviderConfig(base_url="http://x/v1")}, "qwen1.5b")
    assert (choice.provider, choice.config.model) == ("local", "qwen1.5b")


@pytest.mark.parametrize("answer", ["nothing", "no models"])
async def test_with_nothing_found_the_error_says_what_was_looked_for(
    closed_port: str, tmp_path: Path, answer: str
) -> None:
    async with OpenAIServer(tags()) as server:
        url = closed_port if answer == "nothing" else at(server)
        configs = {
            "ollama": ProviderConfig(base_url=url),
            "local": ProviderConfig(models_folder=tmp_path),
        }
        with pytest.raises(NoModel) as caught:
            await choose("auto", configs)
    state = "not running" if answer == "nothing" else "running, but it has no model"
    assert caught.value.message == (
        "No model was found. Looked for a provider in the settings (LLM_PROVIDER, a base URL): "
        f"none; Ollama at {url}: {state}; "
        "a key (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, GROQ_API_KEY, "
        "DEEPSEEK_API_KEY): none set; a key in the system keyring: none; "
        "the embedded model: no weights downloaded."
    )
    assert [line.strip()[:2] for line in caught.value.hint.split("\n")[1:]] == ["1.", "2.", "3."]


async def test_a_chosen_ollama_without_a_model_takes_its_newest() -> None:
    async with OpenAIServer(tags("b", "a")) as server:
        choice = await choose("ollama", {"ollama": ProviderConfig(base_url=at(server))})
        assert choice.config.model == "b"


async def test_a_chosen_ollama_that_is_down_is_unreachable(closed_port: str) -> None:
    with pytest.raises(Unreachable, match="ollama"):
        await choose("ollama", {"ollama": ProviderConfig(base_url=closed_port)})


async def test_a_chosen_ollama_without_any_model_says_how_to_get_one() -> None:
    async with OpenAIServer(tags()) as server:
        with pytest.raises(NoModel, match="ollama pull"):
            await choose("ollama", {"ollama": ProviderConfig(base_url=at(server))})


async def test_something_else_at_the_address_is_not_ollama() -> None:
    async with OpenAIServer(Reply([b"[]"], headers={"Content-Type": "application/json"})) as server:
        with pytest.raises(Unreachable, match="not Ollama"):
            await choose("ollama", {"ollama": ProviderConfig(base_url=at(server))})


@pytest.mark.parametrize("found", [True, False])
async def test_a_password_in_the_address_of_ollama_shows_nowhere(found: bool) -> None:
    replies = [tags("m")] if found else [tags()]
    async with OpenAIServer(*replies) as server:
        address = at(server).replace("://", "://user:hunter2@")
        configs = {"ollama": ProviderConfig(base_url=address)}
        try:
            told = (await choose("auto", configs)).reason
        except NoModel as error:
            told = str(error)
    assert "Ollama" in told
    assert "hunter2" not in told
