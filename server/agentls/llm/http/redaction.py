"""Takes keys out of text that others wrote: providers echo the key they reject.

Owns what a key looks like. Knows nothing of errors or requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SHOWN = "[key]"
_LEAST = 6
"""A shorter secret is left alone: taking it out would tear ordinary words apart."""

_PATTERNS = (
    re.compile(r"(?i)\b(bearer|basic)\s+(?!\[key\])[^\s\"',;]{6,}"),
    # Keys by prefix: OpenAI and most of its imitators, Groq, xAI, Hugging Face, GitHub, Google,
    # AWS. Masked keys are matched too; providers leave their ends readable.
    re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|github_pat|nvapi|pplx|r8)[-_][\w*.\u2026-]{4,}"),
    re.compile(r"\b(?:AIza[\w*-]{8,}|AKIA[A-Z0-9]{8,})"),
    re.compile(
        r"(?i)\b(?:api[-_ ]?key|access[-_]?token|key|token)(?:\"|')?\s*[=:]\s*(?:\"|')?"
        r"(?!\[key\])[^\s\"'&,;]{8,}"
    ),
)
_KEY_NAME = re.compile(
    r"(?:^|[_-])(?:api[_-]?key|access[_-]?key|token|secret|password|credentials?|authorization)$",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^/\s@\"']+@")


class Redactor:
    """Replaces known secrets and whatever looks like one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are taken out exactly, longest first; patterns cover the rest."""
        known = {secret.strip() for secret in secrets}
        self._secrets = sorted((s for s in known if len(s) >= _LEAST), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            text = text.replace(secret, _SHOWN)
        for pattern in _PATTERNS:
            text = pattern.sub(_SHOWN, text)
        return _USERINFO.sub("", text)

    def __repr__(self) -> str:
        """Nothing of the secrets."""
        return "Redactor()"


def names_key(name: str) -> bool:
    """Whether what has this name is a key: `api_key` is, `max_tokens` and `cache_key` are not."""
    return bool(_KEY_NAME.search(name))


def secrets_in(value: object, name: str = "") -> Iterator[str]:
    """Texts of a document that are keys by their names; `name` is that of the document itself."""
    match value:
        case str() if names_key(name):
            yield value
        case dict():
            for inner, content in value.items():
                yield from secrets_in(content, str(inner))
        case list():
            for content in value:
                yield from secrets_in(content, name)
        case _:
            pass
