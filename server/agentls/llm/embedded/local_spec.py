"""Which weights the name of an embedded model means, and how they are to be loaded.

Owns the settling of what a name leaves open: the best model that is there, the context, the
threads. Starts nothing and knows no engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentls.core.errors import NoModel, SettingsError
from agentls.core.requests import Capabilities, ModelInfo, ToolCalling
from agentls.llm.embedded import weights
from agentls.llm.embedded.catalogue import CATALOGUE, CatalogueEntry
from agentls.llm.embedded.download import size_of
from agentls.llm.embedded.gguf import read_facts
from agentls.llm.embedded.processors import physical_cores

PROVIDER = "local"
_SUFFIX = ".gguf"
_UNKNOWN_CONTEXT_TOKENS = 4096
_LARGEST_CONTEXT_TOKENS = 8192
"""Memory and prompt reading grow with it; the user may ask for more."""
_REPLY_TOKENS = 1024
_SMALLEST_CALLER_BYTES = 300_000_000


@dataclass(frozen=True, slots=True)
class LocalSpec:
    """What to load and how; `threads` -1 leaves the number to llama.cpp."""

    weights: Path
    info: ModelInfo
    context_tokens: int
    max_reply_tokens: int = _REPLY_TOKENS
    threads: int = -1


def names_weights(model: str) -> bool:
    """Whether this is the name of an embedded model: one of the catalogue, or a GGUF file."""
    return model in CATALOGUE or model.lower().endswith(_SUFFIX)


def default_weights(folder: Path) -> str | None:
    """The best model whose weights are in the folder; None when there is none."""
    found = weights.installed(folder)
    return found[0].name if found else None


def find(
    model: str, folder: Path, *, threads: int | None = None, context_tokens: int | None = None
) -> LocalSpec:
    """What a name or the path of a GGUF file means.

    `folder` holds downloaded weights; an empty name means the best of them. The context is never
    larger than what the model was trained for.

    Raises:
        NoModel: its weights are not there.
        SettingsError: there is no such model or file, or the file is not GGUF.
    """
    name = model or default_weights(folder) or next(iter(CATALOGUE))
    if entry := CATALOGUE.get(name):
        found = _of_catalogue(entry, folder)
    elif name.lower().endswith(_SUFFIX):
        found = _of_file(Path(name).expanduser().absolute())
    else:
        raise SettingsError(
            f"There is no embedded model named {name!r}.",
            hint=f"Known models: {', '.join(CATALOGUE)}; or give the path of a {_SUFFIX} file.",
        )
    trained = read_facts(found.path).context_tokens or _UNKNOWN_CONTEXT_TOKENS
    window = min(context_tokens or found.context_tokens, trained)
    return LocalSpec(
        weights=found.path,
        info=ModelInfo(
            provider=PROVIDER,
            name=found.name,
            capabilities=Capabilities(tool_calling=found.tool_calling, context_window=window),
        ),
        context_tokens=window,
        max_reply_tokens=found.max_reply_tokens,
        threads=threads or physical_cores(),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    name: str
    path: Path
    tool_calling: ToolCalling
    context_tokens: int
    max_reply_tokens: int


def _of_catalogue(entry: CatalogueEntry, folder: Path) -> _Found:
    path = folder.absolute() / entry.file
    if not path.is_file():
        raise NoModel(
            f"The weights of {entry.name} are not on this machine.",
            hint=f"Run `agentls model pull {entry.name}` ({entry.size_bytes / 1e6:,.0f} MB).",
            provider=PROVIDER,
        )
    return _Found(
        entry.name, path, entry.tool_calling, entry.context_tokens, entry.max_reply_tokens
    )


def _of_file(path: Path) -> _Found:
    # Held to a schema any model can call tools; the smallest do so without sense.
    calls = size_of(path) >= _SMALLEST_CALLER_BYTES
    return _Found(
        path.stem,
        path,
        "constrained" if calls else "none",
        _LARGEST_CONTEXT_TOKENS,
        _REPLY_TOKENS,
    )
