"""Which model answers: what the user chose, else what can be found.

`auto` means: a provider with a base URL or a local model of the user's own; else a running Ollama;
else a key; else the embedded model. Nothing is sent anywhere but to Ollama's address to see.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass

from agentls.core.errors import ModelError, NoModel, Unreachable
from agentls.llm.endpoint import Endpoint
from agentls.llm.registry import PROVIDERS, ProviderConfig, ollama_url
from agentls.llm.transport import Transport

_PROBE_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A provider to use, its configuration, and why it was chosen, as a phrase."""

    provider: str
    config: ProviderConfig
    reason: str


async def choose(wanted: str, configs: Mapping[str, ProviderConfig], model: str = "") -> Choice:
    """Choose a provider.

    `wanted` is a provider's name or "auto"; `configs` has one entry a provider; `model` overrides
    the model of whichever is chosen.

    Raises:
        NoModel: nothing was configured and nothing found; the text says what was looked for.
        Unreachable: Ollama was chosen without a model, and its list of models cannot be read.
    """
    if wanted != "auto":
        config = configs.get(wanted, ProviderConfig())
        choice = Choice(wanted, _with(config, model), f"{wanted} is the chosen provider")
        return await _named_ollama(choice) if wanted == "ollama" else choice
    if model and _is_embedded(model):
        config = configs.get("local", ProviderConfig())
        return Choice("local", _with(config, model), f"{model} is an embedded model")
    if configured := _configured(configs, model):
        return configured
    looked = []
    for look in (_running_ollama, _found_key, _embedded):
        found = await look(configs, model)
        if isinstance(found, Choice):
            return found
        looked.append(found)
    raise NoModel(
        "No model was found. Looked for "
        + "; ".join(("a provider in the settings (LLM_PROVIDER, a base URL): none", *looked))
        + ".",
        hint="Three ways to get one:\n"
        "  1. install Ollama, start it and run `ollama pull qwen2.5-coder`\n"
        "  2. set a key, such as OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own\n"
        "  3. run `agentls model pull qwen1.5b` for the embedded model "
        "(`pip install 'agentls[local]'` first if it is missing)",
    )


async def ollama_models(config: ProviderConfig) -> list[str]:
    """Names of the models an Ollama has.

    Raises:
        ModelError: it cannot be reached or answers something else.
    """
    transport = Transport(
        ollama_url(config.base_url or PROVIDERS["ollama"].base_url), provider="ollama"
    )
    try:
        answer = await transport.get_json("/api/tags", timeout_s=_PROBE_TIMEOUT_S)
    finally:
        await transport.aclose()
    models = answer.get("models") if isinstance(answer, dict) else None
    if not isinstance(models, list):
        raise Unreachable("What answers there is not Ollama.", provider="ollama")
    return [str(m["name"]) for m in models if isinstance(m, dict) and "name" in m]


def _is_embedded(model: str) -> bool:
    from agentls.llm.local_spec import names_weights

    return names_weights(model)


def _with(config: ProviderConfig, model: str) -> ProviderConfig:
    return config.model_copy(update={"model": model}) if model else config


def _configured(configs: Mapping[str, ProviderConfig], model: str) -> Choice | None:
    for name, config in configs.items():
        if name == "local" and config.model:
            return Choice(name, _with(config, model), "llm.local.model is set")
        if name != "ollama" and config.base_url:
            return Choice(name, _with(config, model), f"a base URL is set for {name}")
    return None


async def _named_ollama(choice: Choice) -> Choice:
    if choice.config.model:
        return choice
    names = await ollama_models(choice.config)
    if not names:
        raise NoModel(
            "Ollama is running but has no model.",
            hint="Run `ollama pull qwen2.5-coder`, or set OLLAMA_MODEL.",
            provider="ollama",
        )
    return Choice("ollama", _with(choice.config, names[0]), f"{choice.reason}, its newest model")


async def _running_ollama(configs: Mapping[str, ProviderConfig], model: str) -> Choice | str:
    config = configs.get("ollama", ProviderConfig())
    address = ollama_url(config.base_url or PROVIDERS["ollama"].base_url)
    url = Endpoint(address, provider="ollama").origin.url  # the address may hold a password
    try:
        names = await ollama_models(config)
    except ModelError:
        return f"Ollama at {url}: not running"
    wanted = model or config.model
    if not wanted and not names:
        return f"Ollama at {url}: running, but it has no model"
    return Choice("ollama", _with(config, wanted or names[0]), f"Ollama is running at {url}")


async def _found_key(configs: Mapping[str, ProviderConfig], model: str) -> Choice | str:
    variables = []
    for name, provider in PROVIDERS.items():
        if not provider.key_variable:
            continue
        config = configs.get(name, ProviderConfig())
        if config.api_key is not None:
            return Choice(name, _with(config, model), f"{provider.key_variable} is set")
        variables.append(provider.key_variable)
    return f"a key ({', '.join(variables)}): none set"


async def _embedded(configs: Mapping[str, ProviderConfig], model: str) -> Choice | str:
    if importlib.util.find_spec("xllamacpp") is None:
        return "the embedded model: the package for it is not installed"
    from agentls.llm.local_spec import default_weights

    config = configs.get("local", ProviderConfig())
    name = default_weights(config.models_folder) if config.models_folder else None
    if name is None:
        return "the embedded model: no weights downloaded"
    return Choice("local", _with(config, model or name), f"the embedded model {name} is installed")
