"""What a provider is, and how a user configures one. Data only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, SecretStr

from agentls.core.messages import Frozen
from agentls.core.ports import Model
from agentls.llm.capabilities import Facts
from agentls.llm.wire.scheme import Scheme


class ProviderConfig(Frozen):
    """One provider as the user configured it; empty strings mean the provider's default.

    `max_tokens` bounds the replies to requests that have no bound of their own. `attempts` is
    how often a request is tried, by default what `RetryPolicy` says. `learned` is the file with
    what providers said of their models. `script` serves the scripted model, `function` the custom
    one; `models_folder` and `threads` the embedded one, whose `model` is a catalogue name or the
    path of a GGUF file.
    """

    model: str = ""
    base_url: str = ""
    api_key: SecretStr | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    extra_body: dict[str, JsonValue] = Field(default_factory=dict)
    context_tokens: int | None = None
    max_tokens: int | None = None
    tool_calling: Literal["native", "text"] | None = None
    keep_alive: str | None = None
    read_timeout_s: float = 120
    attempts: int | None = None
    learned: Path | None = None
    script: Path | None = None
    function: str = ""
    models_folder: Path | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """How to reach one provider and what it needs.

    `key_variable` is the environment variable that holds its key; with `key_needed`, choosing the
    provider without one is an error. `family` names the settings, variables and table entries it
    shares with others. `model_prefix` may stand before a model's name and means nothing.
    `models_path` is where its list of models is, below the base URL.
    """

    name: str
    build: Callable[[Provider, ProviderConfig], Awaitable[Model]]
    scheme: Callable[[Provider, ProviderConfig, str, Facts], Scheme] | None = None
    base_url: str = ""
    model: str = ""
    family: str = ""
    model_prefix: str = ""
    key_variable: str = ""
    key_header: str = "Authorization"
    key_needed: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    models_path: str = ""

    def __post_init__(self) -> None:
        """A provider is of its own family unless it says otherwise."""
        if not self.family:
            object.__setattr__(self, "family", self.name)

    def variable(self, what: str) -> str:
        """The name of one of its environment variables, such as OPENAI_MODEL."""
        return f"{self.family.upper()}_{what}"
