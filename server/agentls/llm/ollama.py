"""What an Ollama has: its address, its models, and what it says of one of them.

Owns Ollama's own API around the chat. The chat itself is `schemes.ollama`'s; which provider to use
is `selection`'s to decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from pydantic import JsonValue, SecretStr

from agentls.core.errors import ModelError, NoModel, Unauthorized, Unreachable
from agentls.core.requests import Capabilities
from agentls.core.text import split_lines
from agentls.llm.http.transport import Transport

OLLAMA_URL = "http://127.0.0.1:11434"
"""Where it listens unless told otherwise."""

DEFAULT_CONTEXT_TOKENS = 16_384
"""The most context a model is loaded with unasked.

Ollama's own default may be 4,096 tokens, which the tools, a file and a few turns overrun. But the
memory for a context is taken in full when the model is loaded: some 128 KiB a token for a model of
8B parameters, so 2 GiB for this many and 16 GiB for the 131,072 that such a model could read. What
does not fit beside the model's weights makes it run on the processor, or not at all.
"""

_PROBE_TIMEOUT_S = 1.0
_SHOW_TIMEOUT_S = 10.0
"""It reads the model's file, which may be on a slow disk; nobody waits for less."""
_MAX_ASKED = 8
"""Models asked about in search of one that can talk."""

_NAMED_FOR_EMBEDDING = re.compile(r"embed|minilm|(^|[/-])(bge|gte|e5)-|paraphrase-multilingual")
_MISSING = re.compile(r"\bmodel\b.*\bnot found", re.IGNORECASE)
_THINK_LEVELS = frozenset({"gptoss", "gpt-oss"})
"""Families that take an effort where others take yes or no ("ThinkValue" in Ollama's API)."""


class Configured(Protocol):
    """What of a provider's configuration says how to reach it."""

    @property
    def base_url(self) -> str:
        """Empty for the default; else anything `ollama_url` takes."""

    @property
    def headers(self) -> dict[str, str]:
        """Sent with every request."""

    @property
    def api_key(self) -> SecretStr | None:
        """For a server behind a gate."""


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """What Ollama says of a model, as its wire format needs it.

    `num_ctx` is the context to ask for, in tokens; `capabilities.context_window` is the same.
    A model that only `embeds` cannot talk.
    """

    capabilities: Capabilities
    num_ctx: int
    think_levels: bool = False
    embeds: bool = False


def ollama_url(host: str) -> str:
    """A URL from what OLLAMA_HOST may hold: `host`, `host:port`, `:port` or a URL.

    Without a final slash, and without the /v1 of its OpenAI-compatible half. What is no address at
    all stays as it is, for whoever connects to say so.
    """
    url = host.strip()
    if "://" not in url:
        url = f"http://{url}"
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return url
    user, at, _ = parts.netloc.rpartition("@")
    path = parts.path.rstrip("/").removesuffix("/v1")
    if port is None and parts.scheme == "http" and not path:
        port = 11434
    # A server told to listen everywhere is reached on this machine.
    name = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(  # noqa: S104 - replaced
        name, f"[{name}]" if ":" in name else name
    )
    where = name if port is None else f"{name}:{port}"
    return f"{parts.scheme}://{user}{at}{where}{path}"


def transport_to(config: Configured) -> Transport:
    """A transport to the configured server; the caller closes it.

    Raises:
        SettingsError: the address cannot be one.
    """
    return Transport(
        ollama_url(config.base_url or OLLAMA_URL),
        provider="ollama",
        headers=config.headers,
        api_key=config.api_key,
    )


def same_model(one: str, other: str) -> bool:
    """Whether two names mean one model: `latest` is the tag of a name without one."""
    return _tagged(one) == _tagged(other)


async def ollama_models(config: Configured) -> list[str]:
    """Names of the models an Ollama has, the newest first; those that seem to embed come last.

    Raises:
        ModelError: it cannot be reached or answers something else.
    """
    transport = transport_to(config)
    try:
        answer = await transport.get_json("/api/tags", timeout_s=_PROBE_TIMEOUT_S)
    finally:
        await transport.aclose()
    models = answer.get("models") if isinstance(answer, dict) else None
    if not isinstance(models, list):
        raise Unreachable("What answers there is not Ollama.", provider="ollama")
    entries = [m for m in models if isinstance(m, dict) and "name" in m]
    return [str(entry["name"]) for entry in sorted(entries, key=_seems_to_embed)]


async def newest_model(config: Configured, names: Sequence[str]) -> str | None:
    """The first of the names, as `ollama_models` gives them, whose model can talk.

    The first of all where none can or the server does not say; None without any.

    Raises:
        ModelError: the server cannot be reached.
    """
    transport = transport_to(config)
    try:
        for name in names[:_MAX_ASKED]:
            try:
                model = await describe(transport, name)
            except NoModel:
                continue  # removed a moment ago
            if model is None or not model.embeds:
                return name
    finally:
        await transport.aclose()
    return names[0] if names else None


async def describe(
    transport: Transport, model: str, *, context_tokens: int | None = None
) -> OllamaModel | None:
    """What the server says of a model; None when it does not answer such questions.

    `context_tokens` is the context the user wants. Without it, it is what the model's own file
    sets, else as much as it can read up to `DEFAULT_CONTEXT_TOKENS`; a model that runs elsewhere
    takes no memory here and gets all.

    Raises:
        NoModel: the server has no such model; the hint says how to get it.
        ModelError: the server cannot be reached.
    """
    try:
        answer = await transport.post_json("/api/show", {"model": model}, timeout_s=_SHOW_TIMEOUT_S)
    except ModelError as error:
        if error.status == 404 and _MISSING.search(error.message):
            raise NoModel(
                f"Ollama has no model named {model}.",
                hint=f"Run `ollama pull {model}`, or choose one that `ollama list` shows.",
                provider="ollama",
                status=404,
            ) from None
        if error.status is None or isinstance(error, Unauthorized):
            raise
        return None  # it answers, so the chat may work all the same
    return _described(answer, context_tokens) if isinstance(answer, dict) else None


def _described(answer: Mapping[str, JsonValue], wanted: int | None) -> OllamaModel:
    able = _abilities(answer)
    longest = _context_length(answer)
    num_ctx = wanted or _set_by_file(answer)
    if num_ctx is None:
        is_remote = bool(answer.get("remote_host") or answer.get("remote_model"))
        most = longest if is_remote else DEFAULT_CONTEXT_TOKENS
        num_ctx = min(longest or DEFAULT_CONTEXT_TOKENS, most or DEFAULT_CONTEXT_TOKENS)
    elif longest is not None:
        num_ctx = min(num_ctx, longest)  # as the server does, without a word
    capabilities = Capabilities(
        tool_calling="native" if "tools" in able else "text",
        context_window=num_ctx,
        images="vision" in able,
        thinking="thinking" in able,
        refuses=frozenset() if "thinking" in able else frozenset({"effort"}),
    )
    return OllamaModel(
        capabilities,
        num_ctx,
        think_levels=not _THINK_LEVELS.isdisjoint(_families(answer.get("details"))),
        embeds="embedding" in able and "completion" not in able,
    )


def _abilities(answer: Mapping[str, JsonValue]) -> frozenset[str]:
    """What the model can do; read off its template where an older server does not say."""
    told = answer.get("capabilities")
    if isinstance(told, list):
        return frozenset(str(each) for each in told)
    template = str(answer.get("template") or "")
    found = {"completion"}
    if ".Tools" in template:
        found.add("tools")
    if answer.get("projector_info") or not {"clip", "mllama"}.isdisjoint(
        _families(answer.get("details"))
    ):
        found.add("vision")
    return frozenset(found)


def _context_length(answer: Mapping[str, JsonValue]) -> int | None:
    """Tokens the model was trained to read."""
    facts = answer.get("model_info")
    if not isinstance(facts, dict):
        return None
    key = f"{facts.get('general.architecture')}.context_length"
    if key not in facts:
        key = next((name for name in facts if name.endswith(".context_length")), key)
    return _positive(facts.get(key))


def _set_by_file(answer: Mapping[str, JsonValue]) -> int | None:
    """`PARAMETER num_ctx` of the model's file: a line of name and value."""
    for line in split_lines(str(answer.get("parameters") or "")):
        name, _, value = line.strip().partition(" ")
        value = value.strip()
        if name == "num_ctx" and value.isdecimal() and len(value) < 10:
            return _positive(int(value))
    return None


def _positive(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


def _families(details: JsonValue) -> frozenset[str]:
    if not isinstance(details, dict):
        return frozenset()
    families = details.get("families")
    several = families if isinstance(families, list) else []
    return frozenset(str(each) for each in (details.get("family"), *several) if each)


def _seems_to_embed(entry: Mapping[str, JsonValue]) -> bool:
    able = entry.get("capabilities")
    if isinstance(able, list):
        return "completion" not in able
    families = _families(entry.get("details"))
    return any("bert" in family for family in families) or bool(
        _NAMED_FOR_EMBEDDING.search(str(entry["name"]).casefold())
    )


def _tagged(name: str) -> str:
    # The colon of a port is in front of a slash.
    _, _, last = name.rpartition("/")
    return (name if ":" in last else f"{name}:latest").casefold()
