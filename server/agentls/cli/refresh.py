"""`agentls model refresh`: asks providers what their models can do, and keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from agentls.app import App, build, learned_file
from agentls.cli.failures import DONE, FAILED
from agentls.cli.plain import write_json
from agentls.cli.start import Environment, find_workspace, flags_of
from agentls.core.errors import AgentlsError, SettingsError, UsageError
from agentls.core.text import visible
from agentls.llm.capabilities import Known, remember
from agentls.llm.hosted import with_key
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
    loaded = load(workspace, flags=flags_of(environment.arguments))
    app = await build(loaded.settings, workspace=workspace)
    failed = False
    for provider, config in await _wanted(environment.arguments.name, app):
        failed = not await _ask(environment, provider, config) or failed
    for problem in (*loaded.problems, *app.problems):
        environment.stderr.line(f"agentls: warning: {visible(problem)}")
    if environment.arguments.json:
        write_json(environment.stdout, {"type": "result", "ok": not failed})
    return FAILED if failed else DONE


async def _wanted(name: str, app: App) -> list[tuple[Provider, ProviderConfig]]:
    """The providers to ask, with their keys: the one named, else all that have a key."""
    configs = app.provider_configs()
    listing = [p for p in PROVIDERS.values() if p.models_path and p.name == p.family]
    if name:
        names = ", ".join(provider.name for provider in listing)
        try:
            provider = provider_named(name)
        except SettingsError as error:
            raise UsageError(error.message, hint=f"Name one of: {names}.") from None
        if not provider.models_path:
            raise UsageError(
                f"{provider.name} keeps no list that could be asked.", hint=f"Name one of: {names}."
            )
        listing = [PROVIDERS[provider.family]]
    found = [(p, await with_key(p, configs[p.family], app.find_key)) for p in listing]
    if not name:
        found = [(p, config) for p, config in found if config.api_key or config.base_url]
    if not found:
        names = ", ".join(provider.name for provider in listing)
        raise UsageError("No provider has a key.", hint=f"Set one, or name one of: {names}.")
    return found


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
            environment.stderr.line(f"agentls: error: {visible(str(error))}")
        return False
    told = sum(1 for known in models.values() if known.context_window is not None)
    if environment.arguments.json:
        write_json(out, {"type": "provider", "provider": provider.name, "models": [*models]})
    else:
        counted = "1 model" if len(models) == 1 else f"{len(models)} models"
        out.line(f"{provider.name}: {counted}, {told} with the context size")
    return True


def _keep(path: Path, provider: Provider, models: Mapping[str, Known]) -> None:
    try:
        remember(path, provider.family, models)
    except OSError as error:
        reason = error.strerror or str(error)
        raise AgentlsError(f"{path} cannot be written: {reason}.") from None
