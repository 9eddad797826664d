"""Takes keys out of text that others wrote: providers echo the key they reject.

Owns what a key looks like. Knows nothing of errors or requests.
"""

from __future__ import annotations

import html
import json
import re
import urllib.parse
from collections.abc import Iterable, Iterator

_SHOWN = "[key]"
_LEAST = 6
"""A shorter secret is left alone: taking it out would tear ordinary words apart."""
_PART = 12
"""So much of the beginning of a secret gives it away; of one that is hardly longer, too little."""

_PATTERNS = (
    re.compile(r"(?i)\b(bearer|basic)\s+(?!\[key\])[^\s\"',;]{6,}"),
    # Keys by prefix: OpenAI and most of its imitators, Groq, xAI, Hugging Face, GitHub, Google,
    # AWS. Masked keys are matched too; providers leave their ends readable.
    re.compile(
        r"\b(?:sk|pk|rk|gsk|xai|hf|ghp|github_pat|nvapi|pplx|r8|glpat)[-_][\w*.\u2026-]{4,}"
    ),
    re.compile(
        r"\b(?:AIza[\w*-]{8,}|AQ\.[\w-]{12,}|AKIA[A-Z0-9]{8,}|eyJ[\w-]{8,}(?:\.[\w-]+){1,2})"
    ),
    re.compile(
        r"(?i)\b(?:api[-_ ]?key|access[-_]?token|key|token)(?:\"|')?\s*[=:]\s*(?:\"|')?"
        r"(?!\[key\])[^\s\"'&,;]{8,}"
    ),
)
_KEY_NAME = re.compile(
    r"(?:^|[_-])(?:api[_-]?key|access[_-]?key|token|secret|password|credentials?|authorization)$",
    re.IGNORECASE,
)
_USERINFO = re.compile(r"(?<=://)[^/\s\"'<>]+@")
_KEY_HEADER = re.compile(r"auth|key|token|secret|cookie|passw|credential", re.IGNORECASE)


class Redactor:
    """Replaces known secrets and whatever looks like one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """`secrets` are taken out exactly, longest first; patterns cover the rest."""
        known = {each for secret in secrets for each in _spellings(secret.strip())}
        self._secrets = sorted((s for s in known if len(s) >= _LEAST), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            text = _without(text, secret)
        for pattern in _PATTERNS:
            text = pattern.sub(_SHOWN, text)
        return _USERINFO.sub("", text)

    def __repr__(self) -> str:
        """Nothing of the secrets."""
        return "Redactor()"


def _spellings(secret: str) -> Iterator[str]:
    """A secret as it stands in JSON, also in JSON within JSON, in Python, an address and HTML."""
    once = json.dumps(secret)[1:-1]
    for plain in (
        secret,
        once,
        json.dumps(once)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    ):
        yield from (plain, plain.replace("/", "\\/"))
    yield repr(secret)[1:-1]
    yield from (urllib.parse.quote(secret), urllib.parse.quote(secret, safe=""))
    yield from (html.escape(secret), html.escape(secret, quote=False))


def _without(text: str, secret: str) -> str:
    """The text without a secret, and without a long beginning of it that was cut off."""
    text = text.replace(secret, _SHOWN)
    if len(secret) < _PART * 3 // 2:
        return text
    start = text.find(secret[:_PART])
    while start >= 0:
        end = start + _PART
        while end < len(text) and text[end] == secret[end - start]:
            end += 1
        text = text[:start] + _SHOWN + text[end:]
        start = text.find(secret[:_PART], start + len(_SHOWN))
    return text


def carries_key(header: str) -> bool:
    """Whether a header of this name may carry a key."""
    return _KEY_HEADER.search(header) is not None


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
