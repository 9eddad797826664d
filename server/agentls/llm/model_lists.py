"""Asks a provider which models it has and what it says of them.

Owns the reading of the lists, each of which looks different: untrusted documents in, `Known` out.
A model the list says nothing of is there all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from urllib.parse import quote

from pydantic import JsonValue

from agentls.core.errors import ModelError, SettingsError
from agentls.llm.capabilities import Known
from agentls.llm.hosted import check_key, transport
from agentls.llm.provider import Provider, ProviderConfig

_MAX_PAGES = 50
_WINDOWS = ("context_window", "context_length", "max_model_len", "max_context_length")
"""Groq; OpenRouter, Together; vLLM; LM Studio and Mistral."""
_OUTPUTS = ("max_completion_tokens", "max_output_tokens")

Object = Mapping[str, JsonValue]


async def list_models(
    provider: Provider, config: ProviderConfig, *, timeout_s: float = 20.0
) -> dict[str, Known]:
    """The models of a provider by name, in its order; `timeout_s` is for each page.

    Raises:
        SettingsError: the provider has no list.
        Unauthorized: a key is needed and there is none, or it was refused.
        ModelError: it cannot be reached, or what it says is no list of models.
    """
    if not provider.models_path:
        raise SettingsError(f"{provider.name} has no list of models.")
    check_key(provider, config)
    client = transport(provider, config)
    found: dict[str, Known] = {}
    path: str | None = provider.models_path
    try:
        for _ in range(_MAX_PAGES):
            if path is None:
                break
            page = await client.get_json(path, timeout_s=timeout_s)
            found |= _read(page, provider)
            path = _next_page(page, provider.models_path)
    finally:
        await client.aclose()
    return found


def _read(page: JsonValue, provider: Provider) -> dict[str, Known]:
    key = "models" if provider.family == "gemini" else "data"
    entries = page.get(key) if isinstance(page, dict) else page
    if not isinstance(entries, list):
        raise ModelError(
            f"What {provider.name} sent is no list of models.",
            hint="Is the base URL right?",
            provider=provider.name,
        )
    read = _READERS.get(provider.family, _openai_like)
    listed = (read(entry) for entry in entries if isinstance(entry, dict))
    return {name: known for name, known in listed if name}


def _next_page(page: JsonValue, path: str) -> str | None:
    if not isinstance(page, dict):
        return None
    separator = "&" if "?" in path else "?"
    if page.get("has_more") is True and isinstance(last := page.get("last_id"), str):
        return f"{path}{separator}after_id={quote(last, safe='')}"
    if isinstance(token := page.get("nextPageToken"), str) and token:
        return f"{path}{separator}pageToken={quote(token, safe='')}"
    return None


def _openai_like(entry: Object) -> tuple[str, Known]:
    meta = _inner(entry, "meta")  # llama.cpp
    provider = _inner(entry, "top_provider")  # OpenRouter
    modalities = _inner(entry, "architecture").get("input_modalities")
    images = "image" in modalities if isinstance(modalities, list) else None
    return _text(entry, "id"), Known(
        context_window=_first(entry, _WINDOWS) or _count(meta.get("n_ctx_train")),
        max_output_tokens=_first(entry, _OUTPUTS) or _first(provider, _OUTPUTS),
        images=images,
    )


def _anthropic(entry: Object) -> tuple[str, Known]:
    can = _inner(entry, "capabilities")
    return _text(entry, "id"), Known(
        context_window=_count(entry.get("max_input_tokens")),
        max_output_tokens=_count(entry.get("max_tokens")),
        images=_supported(can, "image_input"),
        documents=_supported(can, "pdf_input"),
        thinking=_supported(can, "thinking"),
    )


def _gemini(entry: Object) -> tuple[str, Known]:
    methods = entry.get("supportedGenerationMethods")
    if isinstance(methods, list) and "generateContent" not in methods:
        return "", Known()  # it embeds, or makes pictures
    thinking = entry.get("thinking")
    return _text(entry, "name").removeprefix("models/"), Known(
        context_window=_count(entry.get("inputTokenLimit")),
        max_output_tokens=_count(entry.get("outputTokenLimit")),
        thinking=thinking if isinstance(thinking, bool) else None,
    )


_READERS: Mapping[str, Callable[[Object], tuple[str, Known]]] = MappingProxyType(
    {"anthropic": _anthropic, "gemini": _gemini}
)


def _inner(entry: Object, key: str) -> Object:
    value = entry.get(key)
    return value if isinstance(value, dict) else {}


def _text(entry: Object, key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _first(entry: Object, keys: Iterable[str]) -> int | None:
    return next((n for key in keys if (n := _count(entry.get(key)))), None)


def _count(value: JsonValue) -> int | None:
    return value if type(value) is int and value > 0 else None


def _supported(can: Object, key: str) -> bool | None:
    value = _inner(can, key).get("supported")
    return value if isinstance(value, bool) else None
