"""What is known of models: a table that ships with the package, and what providers told since.

Owns the lookup. `models.toml` beside this file has the facts; `model_lists` asks for newer ones.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import os
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from agentls.core.messages import Frozen
from agentls.core.requests import Capabilities


class Known(Frozen):
    """What one provider's list says of a model; None where it says nothing."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    context_window: int | None = Field(default=None, ge=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    images: bool | None = None
    audio: bool | None = None
    documents: bool | None = None
    thinking: bool | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What a model can do, and what its wire format has to know of it."""

    capabilities: Capabilities = field(default_factory=Capabilities)
    wire: Mapping[str, JsonValue] = field(default_factory=dict)


def facts(provider: str, model: str, *, learned: Path | None = None) -> Facts:
    """What is known of a model; `learned` is where `remember` wrote."""
    row = next((row for row in table() if row.fits(provider, model)), None)
    told = {} if row is None else dict(row.told)
    known = _recalled(learned).get(provider, {}).get(model) if learned else None
    if known is not None:
        told |= known.model_dump(exclude_none=True)
    return Facts(Capabilities.model_validate(told), {} if row is None else row.wire)


def remember(path: Path, provider: str, models: Mapping[str, Known]) -> None:
    """Keep what a provider's list says, in place of what it said before. Atomic.

    Raises:
        OSError: the file cannot be written.
    """
    everything = {**_recalled(path), provider: dict(models)}
    document = {
        name: {model: known.model_dump(exclude_none=True) for model, known in known_models.items()}
        for name, known_models in everything.items()
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
        Path(name).replace(path)
    except BaseException:  # also when interrupted, half a file stays nowhere
        Path(name).unlink(missing_ok=True)
        raise


def _recalled(path: Path) -> dict[str, dict[str, Known]]:
    """What was kept; nothing where the file is missing or is not what was written."""
    try:
        document = json.loads(path.read_bytes())
        return {
            provider: {model: Known.model_validate(known) for model, known in models.items()}
            for provider, models in document.items()
        }
    except (OSError, ValueError, AttributeError, ValidationError, RecursionError):
        return {}


@dataclass(frozen=True, slots=True)
class Row:
    """One entry of the table; `told` has fields of `Capabilities`."""

    provider: str
    match: str
    told: Mapping[str, JsonValue]
    wire: Mapping[str, JsonValue]

    def fits(self, provider: str, model: str) -> bool:
        """Whether the entry is about this model."""
        return self.provider == provider and fnmatch.fnmatchcase(model, self.match)


@functools.cache
def table() -> tuple[Row, ...]:
    """The table that ships with the package, in its order."""
    text = resources.files("agentls.llm").joinpath("models.toml").read_text("utf-8")
    return tuple(
        Row(
            provider=row.pop("provider"),
            match=row.pop("match"),
            wire=row.pop("wire", {}),
            told=row,
        )
        for row in tomllib.loads(text)["model"]
    )
