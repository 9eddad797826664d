"""The providers: a new OpenAI-compatible one is one entry, a new wire format a file and an entry.

Knows how to build a model from a configuration; which one to use is `selection.py`'s to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, SecretStr

from agentls.core.errors import SettingsError, Unauthorized
from agentls.core.messages import Frozen
from agentls.core.ports import Model
from agentls.core.requests import Capabilities, ModelInfo
from agentls.llm.http_model import HttpModel
from agentls.llm.schemes.openai_chat import OpenAIChat
from agentls.llm.scripted import ScriptedModel
from agentls.llm.transport import Transport


class ProviderConfig(Frozen):
    """One provider as the user configured it; empty strings mean the provider's default.

    `script` serves the scripted model; `models_folder`, `threads` and `context_tokens` the embedded
    one, whose `model` is a catalogue name or the path of a GGUF file.
    """

    model: str = ""
    base_url: str = ""
    api_key: SecretStr | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    read_timeout_s: float = 120
    script: Path | None = None
    models_folder: Path | None = None
    threads: int | None = None
    context_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """How to reach one provider and what it needs.

    `key_variable` is the environment variable that holds its key; with `key_needed`, choosing the
    provider without one is an error.
    """

    name: str
    build: Callable[[Provider, ProviderConfig], Model]
    base_url: str = ""
    model: str = ""
    key_variable: str = ""
    key_needed: bool = False
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"


def create(name: str, config: ProviderConfig) -> Model:
    """Build the model of a provider.

    Raises:
        SettingsError: no provider has this name, or its configuration cannot work.
        Unauthorized: a key is needed and there is none.
    """
    provider = PROVIDERS.get(name)
    if provider is None:
        known = ", ".join(("auto", *PROVIDERS))
        raise SettingsError(
            f"There is no provider named {name!r}.", hint=f"Set LLM_PROVIDER to one of: {known}."
        )
    return provider.build(provider, config)


def _openai_compatible(provider: Provider, config: ProviderConfig) -> Model:
    base_url = config.base_url or provider.base_url
    model = config.model or provider.model
    own_server = bool(config.base_url) and config.base_url != provider.base_url
    if provider.key_needed and config.api_key is None and not own_server:
        raise Unauthorized(
            f"{provider.name} needs a key and none is set.",
            hint=f"Set {provider.key_variable}, or choose another provider with LLM_PROVIDER.",
            provider=provider.name,
        )
    if not model:
        raise SettingsError(
            f"No model is named for {provider.name}.",
            hint=f"Set {provider.name.upper()}_MODEL or pass --model.",
        )
    transport = Transport(
        base_url,
        provider=provider.name,
        headers=config.headers,
        api_key=config.api_key,
        idle_s=config.read_timeout_s,
    )
    capabilities = Capabilities(
        context_window=config.context_tokens, images=provider.name in ("openai", "ollama")
    )
    return HttpModel(
        ModelInfo(provider=provider.name, name=model, capabilities=capabilities),
        OpenAIChat(
            model,
            provider=provider.name,
            extra_body=config.extra_body,
            max_tokens_key="max_tokens" if own_server else provider.max_tokens_key,
        ),
        transport,
    )


def _ollama(provider: Provider, config: ProviderConfig) -> Model:
    base_url = f"{ollama_url(config.base_url or provider.base_url)}/v1"
    return _openai_compatible(provider, config.model_copy(update={"base_url": base_url}))


def ollama_url(host: str) -> str:
    """A URL from what OLLAMA_HOST may hold: `host`, `host:port`, `:port` or a URL.

    Without a final slash, and without the /v1 of its OpenAI-compatible half. What is no address at
    all stays as it is, for whoever connects to say so.
    """
    url = host.strip()
    if "://" not in url:
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return url
    user, at, _ = parts.netloc.rpartition("@")
    path = parts.path.rstrip("/").removesuffix("/v1")
    if port is None and parts.scheme == "http" and not path:
        port = 11434
    # A server told to listen everywhere is reached on this machine.
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(  # noqa: S104 - replaced
        name, f"[{name}]" if ":" in name else name
    )
    where = name if port is None else f"{name}:{port}"
    return f"{parts.scheme}://{user}{at}{where}{path}"


def _scripted(_provider: Provider, config: ProviderConfig) -> Model:
    if config.script is None:
        raise SettingsError(
            "The scripted model has no script.", hint="Set AGENTLS_SCRIPT to a JSON lines file."
        )
    return ScriptedModel(config.script)


def _local(_provider: Provider, config: ProviderConfig) -> Model:
    if config.models_folder is None:
        raise SettingsError("The embedded model has no folder for its weights.")
    # Only here: the parts around the embedded model cost every other start-up time.
    from agentls.llm.local import local_model

    return local_model(
        config.model,
        config.models_folder,
        threads=config.threads,
        context_tokens=config.context_tokens,
    )


PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        provider.name: provider
        for provider in (
            Provider(
                "openai",
                _openai_compatible,
                base_url="https://api.openai.com/v1",
                model="gpt-5-mini",
                key_variable="OPENAI_API_KEY",
                key_needed=True,
                # Its reasoning models refuse the older name; other servers know only that one.
                max_tokens_key="max_completion_tokens",
            ),
            Provider(
                "groq",
                _openai_compatible,
                base_url="https://api.groq.com/openai/v1",
                model="llama-3.3-70b-versatile",
                key_variable="GROQ_API_KEY",
                key_needed=True,
            ),
            Provider(
                "deepseek",
                _openai_compatible,
                base_url="https://api.deepseek.com/v1",
                model="deepseek-chat",
                key_variable="DEEPSEEK_API_KEY",
                key_needed=True,
            ),
            Provider("ollama", _ollama, base_url="http://127.0.0.1:11434"),
            Provider("local", _local),
            Provider("scripted", _scripted),
        )
    }
)
"""In the order in which `auto` looks for keys."""
