"""Which model answers: what the user chose, else what can be found.

`auto` means: a provider with a base URL, a function or a local model of the user's own; else a
running Ollama; else a key; else the embedded model. Nothing is sent anywhere but to Ollama's
address to see.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import SecretStr

from agentls.core.errors import ModelError, NoModel, SettingsError
from agentls.llm.hosted import FindKey, is_own_server, with_key
from agentls.llm.http.endpoint import Endpoint
from agentls.llm.ollama import newest_model, ollama_models, ollama_url
from agentls.llm.provider import Provider, ProviderConfig
from agentls.llm.registry import PROVIDERS, provider_named

Configs = Mapping[str, ProviderConfig]
"""One configuration a family of providers."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A provider to use, its configuration, and why it was chosen, as a phrase."""

    provider: str
    config: ProviderConfig
    reason: str


async def no_key(_provider: str) -> SecretStr | None:
    """Look nowhere."""
    return None


async def choose(
    wanted: str, configs: Configs, model: str = "", *, find_key: FindKey = no_key
) -> Choice:
    """Choose a provider.

    `wanted` is a provider's name or "auto"; `model` overrides the model of whichever is chosen,
    and with "auto" may name its provider too: see `_named_with`. `find_key` is asked only for a
    key that is needed and not configured.

    Raises:
        SettingsError: no provider has this name.
        NoModel: nothing was configured and nothing found; the text says what was looked for.
        Unreachable: Ollama was chosen without a model, and its list of models cannot be read.
    """
    if wanted != "auto":
        return await _named(provider_named(wanted), configs, model, find_key)
    if model and _is_embedded(model):
        config = configs.get("local", ProviderConfig())
        return Choice("local", _with(config, model), f"{model} is an embedded model")
    if named := _named_with(model, configs):
        return await _named(*named, find_key)
    if configured := _configured(configs, model):
        return configured

    async def key_in_keyring(configs: Configs, model: str) -> Choice | str:
        return await _found_in_keyring(configs, model, find_key)

    looked = []
    for look in (_running_ollama, _found_key, key_in_keyring, _embedded):
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
        "  2. set a key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or OPENAI_BASE_URL for a "
        "server of your own\n"
        "  3. for the embedded model, install agentls with its extra `local` "
        "(`pip install '.[local]'` in its clone), then run `agentls model pull qwen1.5b`",
    )


async def choose_pool(
    entries: Sequence[str], configs: Configs, *, find_key: FindKey = no_key
) -> list[Choice]:
    """The members of a failover pool; an entry is `provider` or `provider/model`.

    Raises:
        SettingsError: no provider has this name.
        Unreachable, NoModel: as `choose`.
    """
    members = []
    for entry in entries:
        name, _, model = entry.partition("/")
        try:
            provider = provider_named(name)
        except SettingsError as error:
            names = ", ".join(PROVIDERS)
            error.hint = (
                f"A pool (LLM_POOL) is made of: {names}; each may have a model behind a slash."
            )
            raise
        members.append(await _named(provider, configs, model, find_key))
    return members


def _named_with(model: str, configs: Configs) -> tuple[Provider, Configs, str] | None:
    """The provider that `provider/model` names, and the name for it; None where it names none.

    Servers that pass requests on have names like this for their own models. So a server of the
    user's own gets the name as it is, and a provider that is not set up is not meant while another
    one is.
    """
    name, _, rest = model.partition("/")
    provider = PROVIDERS.get(name) if rest else None
    if provider is None:
        return None
    config = configs.get(provider.family, ProviderConfig())
    if provider.key_needed and is_own_server(provider, config):
        return provider, configs, model
    ready = not provider.key_needed or config.api_key is not None
    others = (each for family, each in configs.items() if family != provider.family)
    if not ready and any(each.api_key or each.base_url for each in others):
        return None
    return provider, configs, rest


def _is_embedded(model: str) -> bool:
    from agentls.llm.embedded.local_spec import names_weights

    return names_weights(model)


def _with(config: ProviderConfig, model: str) -> ProviderConfig:
    return config.model_copy(update={"model": model}) if model else config


async def _named(provider: Provider, configs: Configs, model: str, find_key: FindKey) -> Choice:
    config = _with(configs.get(provider.family, ProviderConfig()), model)
    reason = f"{provider.name} is the chosen provider"
    config = await with_key(provider, config, find_key)
    if provider.name != "ollama" or config.model:
        return Choice(provider.name, config, reason)
    names = await ollama_models(config)
    if not names:
        raise NoModel(
            "Ollama is running but has no model.",
            hint="Run `ollama pull qwen2.5-coder`, or set OLLAMA_MODEL.",
            provider="ollama",
        )
    newest = await newest_model(config, names)
    return Choice("ollama", _with(config, newest or names[0]), f"{reason}, its newest model")


def _configured(configs: Configs, model: str) -> Choice | None:
    for name, config in configs.items():
        if name == "local" and config.model:
            return Choice(name, _with(config, model), "llm.local.model is set")
        if name == "custom" and config.function:
            return Choice(name, _with(config, model), "llm.custom.function is set")
        if name != "ollama" and config.base_url:
            return Choice(name, _with(config, model), f"a base URL is set for {name}")
    return None


async def _running_ollama(configs: Configs, model: str) -> Choice | str:
    config = configs.get("ollama", ProviderConfig())
    address = ollama_url(config.base_url or PROVIDERS["ollama"].base_url)
    url = Endpoint(address, provider="ollama").origin.url  # the address may hold a password
    try:
        names = await ollama_models(config)
    except ModelError:
        return f"Ollama at {url}: not running"
    wanted = model or config.model
    if not wanted:
        wanted = await newest_model(config, names) or ""
    if not wanted:
        return f"Ollama at {url}: running, but it has no model"
    return Choice("ollama", _with(config, wanted), f"Ollama is running at {url}")


def _families() -> list[Provider]:
    """The providers that need a key, each once."""
    return [p for p in PROVIDERS.values() if p.key_variable and p.name == p.family]


async def _found_key(configs: Configs, model: str) -> Choice | str:
    for provider in _families():
        config = configs.get(provider.name, ProviderConfig())
        if config.api_key is not None:
            reason = f"{provider.key_variable} is set"
            return Choice(provider.name, _with(config, model), reason)
    variables = ", ".join(provider.key_variable for provider in _families())
    return f"a key ({variables}): none set"


async def _found_in_keyring(configs: Configs, model: str, find_key: FindKey) -> Choice | str:
    for provider in _families():
        if (key := await find_key(provider.name)) is not None:
            config = configs.get(provider.name, ProviderConfig())
            config = _with(config, model).model_copy(update={"api_key": key})
            return Choice(provider.name, config, "its key is in the system keyring")
    return "a key in the system keyring: none"


async def _embedded(configs: Configs, model: str) -> Choice | str:
    if importlib.util.find_spec("xllamacpp") is None:
        return "the embedded model: the package for it is not installed"
    from agentls.llm.embedded.local_spec import default_weights

    config = configs.get("local", ProviderConfig())
    name = default_weights(config.models_folder) if config.models_folder else None
    if name is None:
        return "the embedded model: no weights downloaded"
    return Choice("local", _with(config, model or name), f"the embedded model {name} is installed")
