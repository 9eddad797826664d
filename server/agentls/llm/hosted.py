"""Builds the model of a provider that is reached over HTTP.

Owns what all of them need: a key, a name, an address, what is known of the model. The registry says
what differs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from pydantic import SecretStr

from agentls.core.errors import SettingsError, Unauthorized
from agentls.core.redaction import secrets_in
from agentls.core.requests import Capabilities, ModelInfo
from agentls.llm.capabilities import Facts, facts
from agentls.llm.http.retry import RetryPolicy
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.provider import Provider, ProviderConfig

FindKey = Callable[[str], Awaitable[SecretStr | None]]
"""Looks for a provider's key where looking takes time, such as the system keyring."""


async def hosted_model(provider: Provider, config: ProviderConfig) -> HttpModel:
    """A model over HTTP; nothing is sent.

    Raises:
        SettingsError: no model is named, or the base URL is none.
        Unauthorized: a key is needed and there is none.
    """
    if provider.scheme is None:
        raise TypeError(f"{provider.name} has no wire format")
    check_key(provider, config)
    model = (config.model or provider.model).removeprefix(provider.model_prefix)
    if not model:
        raise SettingsError(
            f"No model is named for {provider.name}.",
            hint=f"Set {provider.variable('MODEL')} or pass --model.",
        )
    known = known_facts(provider, config, model)
    info = ModelInfo(provider=provider.name, name=model, capabilities=known.capabilities)
    scheme = provider.scheme(provider, config, model, known)
    return HttpModel(info, scheme, transport(provider, config), max_tokens=config.max_tokens)


async def with_key(provider: Provider, config: ProviderConfig, find_key: FindKey) -> ProviderConfig:
    """The configuration with a key looked for elsewhere, if one is needed and there is none.

    What is found goes to the provider's own address alone, never to one of the user's choosing.
    """
    if not provider.key_needed or config.api_key or is_own_server(provider, config):
        return config
    return config.model_copy(update={"api_key": await find_key(provider.family)})


def check_key(provider: Provider, config: ProviderConfig) -> None:
    """Say early that a key is missing. A server at an address of one's own may need none.

    Raises:
        Unauthorized: it is.
    """
    if provider.key_needed and config.api_key is None and not is_own_server(provider, config):
        raise Unauthorized(
            f"{provider.name} needs a key and none is set.",
            hint=f"Set {provider.key_variable}, or choose another provider with LLM_PROVIDER.",
            provider=provider.name,
        )


def is_own_server(provider: Provider, config: ProviderConfig) -> bool:
    """Whether the user set an address that is not the provider's own."""
    return bool(config.base_url) and config.base_url.rstrip("/") != provider.base_url.rstrip("/")


def transport(provider: Provider, config: ProviderConfig) -> Transport:
    """The way to a provider.

    Raises:
        SettingsError: the base URL is none.
    """
    return Transport(
        config.base_url or provider.base_url,
        provider=provider.name,
        headers={**provider.headers, **_overriding(config.headers, provider.headers)},
        api_key=config.api_key,
        key_header=provider.key_header,
        key_variable=provider.key_variable,
        secrets=secrets_in(config.extra_body),
        retry=RetryPolicy(attempts=config.attempts) if config.attempts else RetryPolicy(),
        idle_s=config.read_timeout_s,
    )


def known_facts(provider: Provider, config: ProviderConfig, model: str) -> Facts:
    """What is known of a model, and what the user says of it, which counts more."""
    known = facts(provider.family, model, learned=config.learned)
    said: dict[str, object] = {}
    if config.context_tokens is not None:
        said["context_window"] = config.context_tokens
    if config.tool_calling is not None:
        said["tool_calling"] = config.tool_calling
    if not said:
        return known
    said = {**known.capabilities.model_dump(), **said}
    return Facts(Capabilities.model_validate(said), known.wire)


def _overriding(headers: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The user's headers, spelled as the defaults they replace: names know no case."""
    spelled = {name.lower(): name for name in defaults}
    return {spelled.get(name.lower(), name): value for name, value in headers.items()}
