"""`agentls key set`, `list` and `delete`: providers' keys in the system's keyring.

A key comes in by a hidden prompt or a pipe, never as an argument, and goes to the keyring alone: no
part of it is ever shown.
"""

from __future__ import annotations

import getpass
import os
import sys
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import SecretStr

from agentls.cli.failures import DONE, as_json, exit_code
from agentls.cli.plain import write_json
from agentls.cli.start import Environment, find_workspace
from agentls.core.errors import AgentlsError, SettingsError, UsageError
from agentls.core.text import visible
from agentls.keys import SystemKeyring
from agentls.llm.registry import PROVIDERS
from agentls.settings import LlmSettings, load, user_file, variables

_MAX_KEY_CHARS = 16 * 1024


@dataclass(frozen=True, slots=True)
class Source:
    """A place that has a key; `where` is a variable's name or a file, empty for the keyring."""

    kind: Literal["environment", "file", "keyring"]
    where: str = ""

    def __str__(self) -> str:
        """For people."""
        return self.where or "the keyring"


def store(environment: Environment, keyring: SystemKeyring | None = None) -> int:
    """Ask for the key of a provider, or read a line of standard input, and keep it in the keyring.

    Raises:
        UsageError: no such provider, no key, or one that cannot be sent.
        SettingsError: there is no keyring, or it refused.
        OutputLost: nobody reads the output any more.
    """
    try:
        provider = _provider(environment.arguments.name)
        keyring = keyring or SystemKeyring()
        keyring.require()
        # Before there is a loop: Ctrl-C while a person types ends at once.
        key = _asked_key(provider)
        return environment.interrupts.run(_store(environment, keyring, provider, key))
    except AgentlsError as error:
        return _failed(environment, error)


def delete(environment: Environment, keyring: SystemKeyring | None = None) -> int:
    """Take the key of a provider out of the keyring.

    Raises:
        UsageError: no such provider.
        SettingsError: it has no key there, there is no keyring, or it refused.
        OutputLost: nobody reads the output any more.
    """
    try:
        provider = _provider(environment.arguments.name)
        return environment.interrupts.run(
            _delete(environment, keyring or SystemKeyring(), provider)
        )
    except AgentlsError as error:
        return _failed(environment, error)


def show(environment: Environment, keyring: SystemKeyring | None = None) -> int:
    """Print which providers have a key and where; of several places the first counts.

    Raises:
        UsageError: the workspace is not a folder.
        OutputLost: nobody reads the output any more.
    """
    return environment.interrupts.run(_show(environment, keyring or SystemKeyring()))


async def _store(
    environment: Environment, keyring: SystemKeyring, provider: str, key: SecretStr
) -> int:
    name = await keyring.store(provider, key)
    if environment.arguments.json:
        write_json(environment.stdout, {"type": "result", "provider": provider, "keyring": name})
    else:
        environment.stdout.line(f"The key for {provider} is kept in {visible(name)}.")
    _tell_of_others(environment, provider, "counts before the keyring")
    return DONE


async def _delete(environment: Environment, keyring: SystemKeyring, provider: str) -> int:
    if not await keyring.delete(provider):
        raise SettingsError(f"The keyring has no key for {provider}.")
    if environment.arguments.json:
        write_json(environment.stdout, {"type": "result", "provider": provider, "deleted": True})
    else:
        environment.stdout.line(f"The key for {provider} is deleted from the keyring.")
    _tell_of_others(environment, provider, "still holds one")
    return DONE


async def _show(environment: Environment, keyring: SystemKeyring) -> int:
    workspace = find_workspace(environment.arguments.workspace)
    problems, elsewhere = _sources(workspace)
    found: dict[str, list[Source]] = {}
    for provider in dict.fromkeys(_providers().values()):
        stored = await keyring.find(provider) is not None
        found[provider] = elsewhere.get(provider, []) + [Source("keyring")] * stored
    out = environment.stdout
    if environment.arguments.json:
        for provider, sources in found.items():
            shown = [asdict(source) for source in sources]
            write_json(out, {"type": "key", "provider": provider, "sources": shown})
        result = {"type": "result", "problems": [*problems, *keyring.problems]}
        write_json(out, result)
        return DONE
    width = max(map(len, ("PROVIDER", *found)))
    out.line(f"{'PROVIDER':{width}}  KEY FROM")
    for provider, sources in found.items():
        out.line(f"{provider:{width}}  {visible(', '.join(map(str, sources))) or 'none'}")
    for problem in (*problems, *keyring.problems):
        environment.stderr.line(f"agentls: warning: {visible(problem)}")
    return DONE


def _tell_of_others(environment: Environment, provider: str, remark: str) -> None:
    """Name the places that have a key for the provider too."""
    _, elsewhere = _sources(Path())
    for source in elsewhere.get(provider, []):
        environment.stderr.line(f"agentls: {visible(str(source))} {remark}.")


def _failed(environment: Environment, error: AgentlsError) -> int:
    if not environment.arguments.json:
        raise error
    write_json(environment.stdout, {"type": "result", "error": as_json(error)})
    return exit_code(error)


# --- which keys there are --------------------------------------------------------------------


def _sources(workspace: Path) -> tuple[tuple[str, ...], dict[str, list[Source]]]:
    """What is wrong with the settings, and where each provider has a key, keyring aside."""
    loaded = load(workspace)
    file = load(workspace, environ=_only("XDG_CONFIG_HOME")).settings.llm
    sources: dict[str, list[Source]] = {}
    for provider in dict.fromkeys(_providers().values()):
        of_variables = reversed(variables("llm", provider, "api_key"))
        sources[provider] = [
            Source("environment", name) for name in of_variables if os.environ.get(name, "").strip()
        ]
        if _has_key(file, provider):
            sources[provider].append(Source("file", str(user_file())))
    return loaded.problems, sources


def _has_key(settings: LlmSettings, provider: str) -> bool:
    key = getattr(getattr(settings, provider, None), "api_key", None)
    return isinstance(key, SecretStr) and bool(key.get_secret_value().strip())


def _only(*names: str) -> Mapping[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}


def _providers() -> dict[str, str]:
    """The names of providers with keys, and under which of them their key is."""
    return {name: provider.family for name, provider in PROVIDERS.items() if provider.key_variable}


def _provider(name: str) -> str:
    known = _providers()
    if name not in known:
        # The name is not repeated: it may be a key in the wrong place.
        raise UsageError(
            "That is no provider with a key.", hint=f"Name one of: {', '.join(known)}."
        )
    return known[name]


# --- the key itself --------------------------------------------------------------------------


def _asked_key(provider: str) -> SecretStr:
    typed = _hidden(provider) if sys.stdin.isatty() else sys.stdin.readline(_MAX_KEY_CHARS + 1)
    key = typed.removeprefix("\ufeff").strip()
    if not key:
        raise UsageError(
            "There is no key.",
            hint=f"Type it when asked, or pipe it: agentls key set {provider} < FILE",
        )
    if len(key) > _MAX_KEY_CHARS:
        raise UsageError("That is too long for a key.")
    if not (key.isascii() and key.isprintable()):
        raise UsageError(
            "The key holds characters that cannot be sent.",
            hint="Copy it again, without quotes or line ends.",
        )
    return SecretStr(key)


def _hidden(provider: str) -> str:
    """A line typed at the terminal, which does not show it."""
    with warnings.catch_warnings():
        # Rather than to let the terminal show it.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(f"Key for {provider} (it is not shown): ")
        except EOFError:
            return ""
        except getpass.GetPassWarning:
            raise UsageError(
                "This terminal cannot hide what is typed.",
                hint=f"Pipe the key: agentls key set {provider} < FILE",
            ) from None
