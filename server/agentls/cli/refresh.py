"""`agentls model refresh`: asks providers what their models can do, and keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from agentls.app import build, learned_file
from agentls.cli.failures import DONE, FAILED
from agentls.cli.plain import write_json
from agentls.cli.start import Environment, find_workspace, flags_of
from agentls.core.errors import AgentlsError, UsageError
from agentls.core.text import visible
from agentls.llm.capabilities import Known, remember
from agentls.llm.model_lists import list_models
from agentls.llm.provider import Provider, ProviderConfig
from agentls.llm.registry import PROVIDERS, provider_named
from agentls.settings import load


def refresh(environment: Environment) -> int:
    """Ask one provider, or all that a key is set for; 1 when one could not be asked.

    Raises:
        UsageError: the provider has no list, or none is named and none has a key.
        OutputLost: nobody reads the report any more.
    """
    return environment.interrupts.run(_refresh(environment))


async def _refresh(environment: Environment) -> int:
    workspace = find_workspace(environment.arguments.workspace)
    settings = load(workspace, flags=flags_of(environment.arguments)).settings
    app = await build(settings, workspace=workspace)
    configs = app.provider_configs()
    failed = False
    for provider in _wanted(environment.arguments.name, configs):
        config = configs[provider.family]
        if config.api_key is None:
            config = config.model_copy(update={"api_key": await app.find_key(provider.family)})
        failed = not await _ask(environment, provider, config) or failed
    if environment.arguments.json:
        write_json(environment.stdout, {"type": "result", "ok": not failed})
    return FAILED if failed else DONE


def _wanted(name: str, configs: dict[str, ProviderConfig]) -> list[Provider]:
    listing = [p for p in PROVIDERS.values() if p.models_path and p.name == p.family]
    if name:
        provider = provider_named(name)
        if not provider.models_path:
            raise UsageError(f"{provider.name} keeps no list: its models are asked when used.")
        return [PROVIDERS[provider.family]]
    known = [p for p in listing if configs[p.family].api_key or configs[p.family].base_url]
    if not known:
        names = ", ".join(provider.name for provider in listing)
        raise UsageError("No provider has a key.", hint=f"Set one, or name one of: {names}.")
    return known


async def _ask(environment: Environment, provider: Provider, config: ProviderConfig) -> bool:
    out, path = environment.stdout, learned_file()
    try:
        models = await list_models(provider, config)
        await asyncio.to_thread(_keep, path, provider, models)
    except AgentlsError as error:
        if environment.arguments.json:
            line = {"type": "provider", "provider": provider.name, "error": str(error)}
            write_json(out, line)
        else:
            out.line(f"{provider.name}: {visible(str(error))}")
        return False
    told = sum(1 for known in models.values() if known.context_window is not None)
    if environment.arguments.json:
        write_json(out, {"type": "provider", "provider": provider.name, "models": [*models]})
    else:
        out.line(f"{provider.name}: {len(models)} models, {told} with their context size")
    return True


def _keep(path: Path, provider: Provider, models: Mapping[str, Known]) -> None:
    try:
        remember(path, provider.family, models)
    except OSError as error:
        reason = error.strerror or str(error)
        raise AgentlsError(f"{path} cannot be written: {reason}.") from None
