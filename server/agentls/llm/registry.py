"""The providers: a new OpenAI-compatible one is one entry, a new wire format a file and an entry.

Knows how to build a model from a configuration; which one to use is `selection.py`'s to decide. A
wire format is imported when a model that speaks it is built: the others would only cost time.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from agentls.core.errors import ModelError, NoModel, SettingsError
from agentls.core.ports import Model
from agentls.core.requests import Capabilities, ModelInfo
from agentls.llm.capabilities import Facts
from agentls.llm.hosted import hosted_model, is_own_server, transport
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.ollama import (
    DEFAULT_CONTEXT_TOKENS,
    OLLAMA_URL,
    OllamaModel,
    describe,
    ollama_url,
)
from agentls.llm.provider import Provider, ProviderConfig
from agentls.llm.scripted import ScriptedModel
from agentls.llm.wire.scheme import Scheme

Order = Literal["random", "listed"]

_ANTHROPIC_TOKENS = 32_000
"""Longest reply asked for when nobody said: whole files fit, and no model of today refuses it."""


def provider_named(name: str) -> Provider:
    """A provider by its name.

    Raises:
        SettingsError: there is none.
    """
    provider = PROVIDERS.get(name.strip().lower().replace("_", "-"))
    if provider is None:
        known = ", ".join(("auto", *PROVIDERS))
        raise SettingsError(
            f"There is no provider named {name!r}.", hint=f"Set LLM_PROVIDER to one of: {known}."
        )
    return provider


async def create(name: str, config: ProviderConfig) -> Model:
    """Build the model of a provider. Only Ollama is asked something: what its model can do.

    Raises:
        SettingsError: no provider has this name, or its configuration cannot work.
        Unauthorized: a key is needed and there is none.
    """
    from agentls.llm.text_calls.recovered import with_text_calls

    provider = provider_named(name)
    return with_text_calls(await provider.build(provider, config))


def pool_of(models: Sequence[Model], *, order: Order = "random", seed: int | None = None) -> Model:
    """One model out of several that stand in for one another; their configurations are `one_try`'s.

    A `seed` makes the choices among them repeatable.
    """
    if len(models) == 1:
        return models[0]
    from agentls.llm.failover import PooledModel

    return PooledModel(models, order=order, random=None if seed is None else random.Random(seed))  # noqa: S311 - spreads load, keeps no secret


def one_try(config: ProviderConfig) -> ProviderConfig:
    """The configuration of a member of a pool, which does the asking again."""
    return config.model_copy(update={"attempts": 1})


# --- wire formats ----------------------------------------------------------------------------


def _chat(provider: Provider, config: ProviderConfig, model: str, known: Facts) -> Scheme:
    from agentls.llm.schemes.openai_chat import OpenAIChat

    # OpenAI's reasoning models refuse the older name; other servers know only that one.
    newer = provider.name == "openai" and not is_own_server(provider, config)
    return OpenAIChat(
        model,
        provider=provider.name,
        extra_body=config.extra_body,
        replay_reasoning=known.wire.get("replay_reasoning") is True,
        max_tokens_key="max_completion_tokens" if newer else "max_tokens",
        least_effort=str(known.wire.get("least_effort", "none")),
    )


def _responses(provider: Provider, config: ProviderConfig, model: str, known: Facts) -> Scheme:
    from agentls.llm.schemes.openai_responses import OpenAIResponses

    return OpenAIResponses(
        model,
        provider=provider.name,
        extra_body=config.extra_body,
        thinks="effort" not in known.capabilities.refuses,
        least_effort=str(known.wire.get("least_effort", "none")),
    )


def _messages(provider: Provider, config: ProviderConfig, model: str, known: Facts) -> Scheme:
    from agentls.llm.schemes.anthropic import Anthropic, Thinking

    longest = known.capabilities.max_output_tokens or _ANTHROPIC_TOKENS
    styles: dict[object, Thinking] = {"adaptive": "adaptive", "always": "always"}
    return Anthropic(
        model,
        provider=provider.name,
        max_tokens=min(longest, _ANTHROPIC_TOKENS),
        thinking=styles.get(known.wire.get("thinking"), "budget"),
        extra_body=config.extra_body,
    )


def _generate(provider: Provider, config: ProviderConfig, model: str, known: Facts) -> Scheme:
    from agentls.llm.schemes.gemini import Gemini

    thinking = known.wire.get("thinking")
    return Gemini(
        model,
        provider=provider.name,
        thinking="level" if thinking == "level" else "off" if thinking == "off" else "budget",
        extra_body=config.extra_body,
    )


# --- models without a hosted provider --------------------------------------------------------


async def _ollama(provider: Provider, config: ProviderConfig) -> Model:
    from agentls.llm.schemes.ollama import Ollama

    if not config.model:
        raise SettingsError(
            "No model is named for Ollama.", hint="Set OLLAMA_MODEL or pass --model."
        )
    way = transport(
        provider, config.model_copy(update={"base_url": ollama_url(config.base_url or OLLAMA_URL)})
    )
    said = await _said_of(way, config)
    scheme = Ollama(
        config.model,
        num_ctx=said.num_ctx,
        think_levels=said.think_levels,
        keep_alive=config.keep_alive,
        extra_body=config.extra_body,
    )
    can = said.capabilities
    if config.tool_calling is not None:
        can = can.model_copy(update={"tool_calling": config.tool_calling})
    info = ModelInfo(provider="ollama", name=config.model, capabilities=can)
    return HttpModel(info, scheme, way, max_tokens=config.max_tokens)


async def _said_of(way: Transport, config: ProviderConfig) -> OllamaModel:
    """What Ollama says of the model. Where it says nothing, the first request will tell more."""
    try:
        said = await describe(way, config.model, context_tokens=config.context_tokens)
    except NoModel:
        await way.aclose()
        raise
    except ModelError:
        said = None
    num_ctx = config.context_tokens or DEFAULT_CONTEXT_TOKENS
    return said or OllamaModel(Capabilities(context_window=num_ctx, images=True), num_ctx)


async def _scripted(_provider: Provider, config: ProviderConfig) -> Model:
    if config.script is None:
        raise SettingsError(
            "The scripted model has no script.", hint="Set AGENTLS_SCRIPT to a JSON lines file."
        )
    return ScriptedModel(config.script)


async def _custom(_provider: Provider, config: ProviderConfig) -> Model:
    from agentls.llm.function.model import CallableModel, load_callable

    if not config.function:
        raise SettingsError(
            "The custom model has no function.",
            hint='Set llm.custom.function to "package.module:name" in your own settings file.',
        )
    return CallableModel(load_callable(config.function), name=config.model or config.function)


async def _local(_provider: Provider, config: ProviderConfig) -> Model:
    if config.models_folder is None:
        raise SettingsError("The embedded model has no folder for its weights.")
    # Only here: the parts around the embedded model cost every other start-up time.
    from agentls.llm.embedded.local import local_model

    return local_model(
        config.model,
        config.models_folder,
        threads=config.threads,
        context_tokens=config.context_tokens,
    )


# --- the table -------------------------------------------------------------------------------

_OPENAI = Provider(
    "openai",
    hosted_model,
    _chat,
    base_url="https://api.openai.com/v1",
    model="gpt-6-luna",
    key_variable="OPENAI_API_KEY",
    key_needed=True,
    models_path="/models",
)

PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        provider.name: provider
        for provider in (
            Provider(
                "anthropic",
                hosted_model,
                _messages,
                base_url="https://api.anthropic.com",
                model="claude-sonnet-5-5",
                key_variable="ANTHROPIC_API_KEY",
                key_header="x-api-key",
                key_needed=True,
                headers={"anthropic-version": "2023-06-01"},
                models_path="/v1/models?limit=1000",
            ),
            _OPENAI,
            Provider(
                "gemini",
                hosted_model,
                _generate,
                base_url="https://generativelanguage.googleapis.com",
                model="gemini-3.8-flash",
                key_variable="GEMINI_API_KEY",
                model_prefix="models/",
                key_header="x-goog-api-key",
                key_needed=True,
                models_path="/v1beta/models?pageSize=1000",
            ),
            Provider(
                "groq",
                hosted_model,
                _chat,
                base_url="https://api.groq.com/openai/v1",
                model="openai/gpt-oss-120b",
                key_variable="GROQ_API_KEY",
                key_needed=True,
                models_path="/models",
            ),
            Provider(
                "deepseek",
                hosted_model,
                _chat,
                base_url="https://api.deepseek.com/v1",
                model="deepseek-v4-flash",
                key_variable="DEEPSEEK_API_KEY",
                key_needed=True,
                models_path="/models",
            ),
            replace(_OPENAI, name="openai-responses", scheme=_responses, family="openai"),
            Provider("ollama", _ollama, base_url=OLLAMA_URL),
            Provider("local", _local),
            Provider("custom", _custom),
            Provider("scripted", _scripted),
        )
    }
)
"""In the order in which `auto` looks for keys."""
