from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from agentls.core.errors import SettingsError, Unauthorized
from agentls.core.requests import Capabilities, ModelInfo
from agentls.llm.registry import PROVIDERS, ProviderConfig, create, ollama_url
from support.agent_fakes import script


@pytest.mark.parametrize("name", ["openai", "groq", "deepseek"])
def test_a_cloud_provider_without_its_key_is_an_error_that_names_it(name: str) -> None:
    with pytest.raises(Unauthorized) as caught:
        create(name, ProviderConfig())
    assert str(caught.value) == (
        f"{name} needs a key and none is set. "
        f"Set {PROVIDERS[name].key_variable}, or choose another provider with LLM_PROVIDER."
    )


def test_a_server_of_ones_own_needs_no_key() -> None:
    model = create("openai", ProviderConfig(base_url="http://127.0.0.1:8000/v1", model="m"))
    assert model.info == ModelInfo(
        provider="openai", name="m", capabilities=Capabilities(images=True)
    )


def test_a_key_is_enough_for_the_default_model() -> None:
    model = create("groq", ProviderConfig(api_key=SecretStr("k")))
    assert model.info.name == "llama-3.3-70b-versatile"


def test_an_unknown_provider_is_refused_with_the_list() -> None:
    with pytest.raises(SettingsError, match="auto, openai, groq, deepseek, ollama"):
        create("nope", ProviderConfig())


def test_the_scripted_model_needs_a_script(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="AGENTLS_SCRIPT"):
        create("scripted", ProviderConfig())
    config = ProviderConfig(script=script(tmp_path, {"text": "x"}))
    assert create("scripted", config).info.provider == "scripted"


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
