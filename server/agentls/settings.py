"""Settings: defaults < user file < environment < client options < flags.

A value that does not fit is reported and the next lower layer counts; nothing here raises for a bad
value. A workspace's own file may only tighten. Knows nothing of what the settings are used for.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_config_path
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    ValidationError,
)

from agentls.core.errors import AgentlsError, UsageError
from agentls.core.nesting import deeper_than
from agentls.core.ports import Mode
from agentls.core.requests import Effort
from agentls.key_file import KeyFile
from agentls.workspace import disk
from agentls.workspace.roots import Roots

Layer = dict[str, Any]

_MAX_NESTING = 50
"""No setting is nested as deep as this; what is, is there to do harm."""


_VERBATIM = frozenset({"headers", "extra_body"})

Texts = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]
"""One of them may stand without brackets."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProviderSettings(_Section):
    """One provider: where it is, which model, which key, and what the table of models has wrong.

    `headers` and `extra_body` are sent as they are, over what would be sent otherwise.
    """

    model: str = ""
    base_url: str = ""
    api_key: SecretStr | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    context_tokens: int | None = Field(default=None, ge=512)
    max_tokens: int | None = Field(default=None, ge=1)
    tool_calling: Literal["native", "text"] | None = None


class OllamaSettings(ProviderSettings):
    """Ollama; `keep_alive` is how long it keeps the model loaded, such as "30m"."""

    keep_alive: str | None = None


class CustomSettings(_Section):
    """A function of one's own as the model: `package.module:name`. It runs inside agentls."""

    function: str = ""
    model: str = ""


class LocalSettings(_Section):
    """The embedded model: a catalogue name or a GGUF file."""

    model: str = ""
    threads: int | None = Field(default=None, ge=1, le=1024)
    context_tokens: int | None = Field(default=None, ge=512, le=1_048_576)


def _words(value: object) -> object:
    if not isinstance(value, str):
        return value
    return [word.strip() for word in value.split(",") if word.strip()]


Pool = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""Providers, each as `provider` or `provider/model`; one text may hold all, between commas."""


ProviderName = Annotated[
    str, BeforeValidator(lambda value: value.strip().lower() if isinstance(value, str) else value)
]


class LlmSettings(_Section):
    """Which model answers, and how. `model` overrides the model of whichever provider is chosen.

    A `pool` counts when no provider is chosen; `pool_seed` makes its choices repeatable.
    """

    provider: ProviderName = "auto"
    pool: Pool = ()
    order: Literal["random", "listed"] = "random"
    pool_seed: int | None = None
    model: str = ""
    script: str = ""
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    seed: int | None = None
    stop: Texts = ()
    effort: Effort | None = None
    read_timeout_s: float = Field(default=120, gt=0)
    anthropic: ProviderSettings = Field(default_factory=ProviderSettings)
    openai: ProviderSettings = Field(default_factory=ProviderSettings)
    gemini: ProviderSettings = Field(default_factory=ProviderSettings)
    groq: ProviderSettings = Field(default_factory=ProviderSettings)
    deepseek: ProviderSettings = Field(default_factory=ProviderSettings)
    ollama: OllamaSettings = Field(default_factory=OllamaSettings)
    local: LocalSettings = Field(default_factory=LocalSettings)
    custom: CustomSettings = Field(default_factory=CustomSettings)


class PermissionSettings(_Section):
    """Rules, each `tool` or `tool(pattern)`. `mode` is the mode of new sessions.

    A question that an editor does not answer within `answer_timeout_s` counts as answered by no.
    """

    mode: Mode = "ask"
    answer_timeout_s: float = Field(default=600, gt=0)
    allow: Texts = ()
    ask: Texts = ()
    deny: Texts = ()


class MemorySettings(_Section):
    """How much of a conversation is sent again."""

    strategy: Literal["sliding"] = "sliding"
    max_messages: int = Field(default=20, ge=1)


class TurnSettings(_Section):
    """Bounds of one turn."""

    max_iterations: int = Field(default=25, ge=1)
    tool_concurrency: int = Field(default=5, ge=1)
    max_output_bytes: int = Field(default=10_000, ge=500)


class Settings(_Section):
    """Everything a user can set."""

    llm: LlmSettings = Field(default_factory=LlmSettings)
    permissions: PermissionSettings = Field(default_factory=PermissionSettings)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    turn: TurnSettings = Field(default_factory=TurnSettings)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and what was wrong with their sources, as sentences for people."""

    settings: Settings
    problems: tuple[str, ...] = ()


_ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "LLM_PROVIDER": ("llm", "provider"),
    "LLM_POOL": ("llm", "pool"),
    "AGENTLS_SCRIPT": ("llm", "script"),
    # The name that Google's own tools look for; the one below wins.
    "GOOGLE_API_KEY": ("llm", "gemini", "api_key"),
    **{
        f"{provider.upper()}_{what.upper()}": ("llm", provider, what)
        for provider in ("anthropic", "openai", "gemini", "groq", "deepseek")
        for what in ("api_key", "model", "base_url")
    },
    "ANTHROPIC_MAX_TOKENS": ("llm", "anthropic", "max_tokens"),
    "OLLAMA_HOST": ("llm", "ollama", "base_url"),
    "OLLAMA_MODEL": ("llm", "ollama", "model"),
    "MEMORY_STRATEGY": ("memory", "strategy"),
    "MEMORY_MAX_MESSAGES": ("memory", "max_messages"),
}

_TIGHTENING = {("permissions", "ask"), ("permissions", "deny")}
"""What a workspace's file may set: rules that ask or deny."""


def user_file(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the user's own file is."""
    base = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(base) / "agentls" if base else user_config_path("agentls", appauthor=False)
    return folder / "config.toml"


def variables(*keys: str) -> tuple[str, ...]:
    """The environment variables for the setting at `keys`; of several the last one wins."""
    return tuple(name for name, place in _ENVIRONMENT.items() if place == keys)


def workspace_file(workspace: Path) -> Path:
    """Where a workspace's file is."""
    return workspace / ".agentls" / "config.toml"


def load(
    workspace: Path,
    *,
    environ: Mapping[str, str] = os.environ,
    client_options: Mapping[str, Any] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Loaded:
    """Merge all sources. `client_options` and `flags` are nested like the file; camelCase too."""
    problems: list[str] = []
    user = user_file(environ)
    keys = KeyFile(user)
    user_layer = _read(user, lambda _: keys.text(), problems)
    problems += keys.withhold_keys(user_layer)
    layers = [
        (str(user), user_layer),
        ("the environment", _from_environment(environ)),
        ("the editor's options", _given(client_options, "the editor's options", problems)),
        ("the command line", _given(flags, "the command line", problems)),
    ]
    _forbid_code(layers[2][1], "the editor's options", problems)
    merged: Layer = {}
    for source, layer in layers:
        _merge(merged, _valid_part(_said(layer), source, problems))
    tightening = workspace_file(workspace)
    workspace_layer = _read(tightening, lambda _: _workspace_text(workspace), problems)
    _tighten(merged, workspace_layer, str(tightening), problems)
    return Loaded(Settings.model_validate(merged), tuple(problems))


def _read(path: Path, text_of: Callable[[Path], str], problems: list[str]) -> Layer:
    try:
        layer = tomllib.loads(text_of(path).removeprefix("\ufeff"))
        if not deeper_than(layer, _MAX_NESTING):
            return layer
        reason = "it is nested too deeply"
    except RecursionError:
        reason = "it is nested too deeply"
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AgentlsError) as error:
        reason = str(error).rstrip(".")
    problems.append(f"{path} was ignored: {reason}.")
    return {}


def _workspace_text(workspace: Path) -> str:
    """Somebody else's file: read like any other of the workspace, never a device or a pipe."""
    try:
        place = Roots(workspace).resolve(str(workspace_file(Path())))
    except UsageError:
        return ""
    return disk.load(place).text if place.exists or place.dangling else ""


def _given(options: Mapping[str, Any] | None, source: str, problems: list[str]) -> Layer:
    if not deeper_than(options, _MAX_NESTING):
        return _snake(options or {})
    problems.append(f"{source} were ignored: they are nested too deeply.")
    return {}


def _from_environment(environ: Mapping[str, str]) -> Layer:
    layer: Layer = {}
    for name, keys in _ENVIRONMENT.items():
        # A variable that is set to nothing counts as not set, as shells make unsetting awkward.
        if value := environ.get(name, "").strip():
            target = layer
            for key in keys[:-1]:
                target = target.setdefault(key, {})
            target[keys[-1]] = value
    return layer


def _snake(value: Mapping[str, Any]) -> Layer:
    layer: Layer = {}
    for key, inner in value.items():
        name = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: f"_{m.group(1).lower()}", str(key))
        # The names of headers and of a provider's own options are not ours to change.
        ours = isinstance(inner, Mapping) and name not in _VERBATIM
        layer[name] = _snake(inner) if ours else inner
    return layer


def _said(layer: Layer) -> Layer:
    """The layer without what is set to nothing: editors send their empty fields, and null, too."""
    said: Layer = {}
    for key, value in layer.items():
        # What a provider is sent is sent as it stands: there, nothing means something.
        ours = isinstance(value, dict) and key not in _VERBATIM
        kept = _said(value) if ours else value
        if kept is not None and not (isinstance(kept, str) and not kept.strip()):
            said[key] = kept
    return said


def _forbid_code(layer: Layer, source: str, problems: list[str]) -> None:
    """Take out what would run code: an editor's options may come from the workspace."""
    llm = layer.get("llm")
    if isinstance(llm, dict) and llm.pop("custom", None) is not None:
        problems.append(f"{source}: llm.custom was ignored: it belongs in your own settings file.")


def _valid_part(layer: Layer, source: str, problems: list[str]) -> Layer:
    """The layer without the values that do not fit, each of which is reported."""
    while True:
        try:
            Settings.model_validate(layer)
            return layer
        except ValidationError as error:
            # One at a time: taking out an element of a list moves those behind it.
            detail = error.errors(include_url=False, include_input=False)[0]
            keys = _remove(layer, detail["loc"])
            unknown = detail["type"] == "extra_forbidden"
            reason = "this version does not know it" if unknown else detail["msg"]
            problems.append(f"{source}: {'.'.join(keys)} was ignored: {reason}.")


def _remove(layer: Layer, where: Sequence[str | int]) -> list[str]:
    """Take out the value at a location, or the deepest one on the way that exists.

    Only the element goes from a list: losing a whole list of deny rules would allow more.
    """
    target: Any = layer
    for depth, key in enumerate(where):
        inner, last = target[key], depth == len(where) - 1
        if last or not _has(inner, where[depth + 1]):
            del target[key]
            return [str(part) for part in where[: depth + 1]]
        target = inner
    raise AssertionError("a validation error has a location")


def _has(inner: object, key: str | int) -> bool:
    if isinstance(inner, dict):
        return key in inner
    return isinstance(inner, list) and isinstance(key, int) and key < len(inner)


def _merge(into: Layer, layer: Layer) -> None:
    for key, value in layer.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _tighten(merged: Layer, layer: Layer, source: str, problems: list[str]) -> None:
    for keys, value in _leaves(layer):
        if keys not in _TIGHTENING:
            problems.append(
                f"{source}: {'.'.join(keys)} was ignored: a workspace may only add rules under "
                "permissions.ask and permissions.deny."
            )
            continue
        section = merged.setdefault(keys[0], {})
        rules = [*_listed(section.get(keys[1], ()))]
        for number, rule in enumerate(_listed(value)):
            if isinstance(rule, str):
                rules.append(rule)
            else:
                problems.append(f"{source}: {'.'.join(keys)}.{number} was ignored: not a string.")
        section[keys[1]] = rules


def _leaves(layer: Layer, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in layer.items():
        if isinstance(value, dict):
            yield from _leaves(value, (*above, key))
        else:
            yield (*above, key), value


def _listed(value: object) -> Sequence[object]:
    """A list of rules, also where one stands by itself."""
    return value if isinstance(value, list | tuple) else [value]
