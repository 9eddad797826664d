"""What a provider's refusal means, as one of the errors of `core.errors` that a person can act on.

Owns the reading of HTTP statuses and of error objects, inside a stream or as a body. Knows nothing
of httpx, of any scheme's other messages, or of when to try again.
"""

from __future__ import annotations

import http
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentls.core.errors import (
    BadRequest,
    ModelError,
    RateLimited,
    StreamBroken,
    Unauthorized,
    Unreachable,
)
from agentls.core.text import short_line
from agentls.llm.wire import google_details

RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_MAX_WRAPPINGS = 8
_MAX_SAID = 600
"""Characters of a provider's own words that are passed on."""

_CONTEXT = re.compile(
    r"context[_ ]length[_ ]exceeded|maximum (context|prompt|model) length"
    r"|exceed\w*[^.]{0,80}(context|model token limit)|context[^.]{0,60}(exceed|overflow)"
    r"|longer than the[^.]{0,20} context|greater than the context length|too many tokens"
    r"|(prompt|input) (is too long|exceeds max length)"
    r"|(input|prompt) token count[^.]{0,60}(exceeds|only supports)"
    r"|`inputs`[^.]{0,40}must (have less than|be <=)",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(
    r"request (is )?too large|(request|payload)[^.]{0,20} exceeds the (maximum|limit)",
    re.IGNORECASE,
)
"""More than a request may hold, or than may be asked for within a minute: waiting mends neither."""
_BADLY_WRITTEN = re.compile(r"tool_use_failed|json_validate_failed")
"""Groq's words for what the model wrote wrong, under 400: the next try may go well."""
_QUOTA = re.compile(
    r"insufficient[_ ](quota|balance|credit)|exceeded your current quota"
    r"|billing[_ ](details|hard|limit|not)",
    re.IGNORECASE,
)
_SPENT = re.compile(r"credit balance is too low", re.IGNORECASE)
"""Anthropic says so with status 400."""
_MEMORY = re.compile(
    r"requires more (system |gpu )?memory|CUDA error: out of memory|cudaMalloc failed",
    re.IGNORECASE,
)
_MISSING = re.compile(r"model ['\"]([\w.:/-]{1,200})['\"] not found")
"""Ollama's words, which name what has to be pulled."""
_NO_TOOLS = re.compile(r"does not support tools", re.IGNORECASE)
_KINDS = (  # of an error object that names no status, by its type or code
    (re.compile(r"quota|balance|rate.?limit|too.?many.?requests|exhausted", re.IGNORECASE), 429),
    (re.compile(r"auth|api.?key", re.IGNORECASE), 401),
    (re.compile(r"permission|forbidden", re.IGNORECASE), 403),
    (re.compile(r"context|invalid|bad.?request|unsupported", re.IGNORECASE), 400),
    (re.compile(r"not.?found", re.IGNORECASE), 404),
    (re.compile(r"overload|unavailable|capacity", re.IGNORECASE), 503),
    (re.compile(r"billing", re.IGNORECASE), 402),
    (re.compile(r"too.?large", re.IGNORECASE), 413),
    (re.compile(r"timeout|timed.?out", re.IGNORECASE), 504),
    (re.compile(r"server|internal|api.?error", re.IGNORECASE), 500),
)


class Silent(Unreachable):
    """Connected, but no answer began in time: asking again would only wait as long again."""


class Stalled(StreamBroken):
    """The answer began and then stopped: as with `Silent`, another try may wait as long."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request went. `url` is fit to show: no user, no query.

    `key_variable` is the environment variable that the key would be in, if there is one.
    """

    provider: str
    url: str
    has_key: bool = False
    key_variable: str = ""
    is_local: bool = False


def from_status(
    origin: Origin,
    status: int,
    body: bytes,
    *,
    retry_after_s: float | None = None,
    location: str = "",
    redact: Callable[[str], str],
) -> ModelError:
    """The error behind a response that is no answer. `body` may be cut off anywhere."""
    report = _report_in(body)
    said, kind = _said(report)
    phrase = _phrase(status)
    message = f"{origin.provider} answered {status}{phrase and f' ({phrase})'}"
    if said:
        message += f": {short_line(redact(said), _MAX_SAID)}"
    message = message.rstrip(".") + "."
    error = _classified(status, f"{kind} {said}", message, origin.provider, report)
    meant = 401 if isinstance(error, Unauthorized) else status
    error.hint = error.hint or _hint(origin, meant, redact(location))
    if retry_after_s is not None:
        error.retry_after_s = retry_after_s
    if error.retryable and error.retry_after_s and error.retry_after_s >= 1:
        error.hint = f"It asks to wait {error.retry_after_s:.0f} s. {error.hint}".strip()
    return error


def from_report(provider: str, report: object, redact: Callable[[str], str]) -> ModelError:
    """The error behind an error object that came in place of, or inside, an answer.

    One that does not say what it is counts as a broken stream.
    """
    report = _inner(report)
    said, kind = _said(report)
    reason = short_line(redact(said or kind), _MAX_SAID) or "no reason given"
    message = f"{provider} reported an error: {reason}"
    message = message.rstrip(".") + "."
    status = _status_of(report, kind)
    if status is None:
        if _CONTEXT.search(said):
            status = 400
        else:
            return StreamBroken(message, provider=provider)
    return _classified(status, f"{kind} {said}", message, provider, report)


def _classified(status: int, said: str, message: str, provider: str, report: object) -> ModelError:
    delay_s = google_details.retry_delay_s(report)
    if google_details.rejects_key(report):
        return Unauthorized(message, provider=provider, status=status)
    error = _by_status(status, said, message, provider, is_passing=delay_s is not None)
    error.retry_after_s = delay_s
    return error


def _by_status(
    status: int, said: str, message: str, provider: str, *, is_passing: bool
) -> ModelError:
    """`is_passing` says that the server gave a time after which it may answer."""
    retryable = status in RETRYABLE
    if status in (401, 403):
        return Unauthorized(message, provider=provider, status=status)
    if status != 429 and _CONTEXT.search(said):
        hint = "It is longer than the model's context: start a new session, or send less."
        if provider == "ollama":  # its contexts are as long as it is asked to make them
            hint += " If there is memory for more, set llm.ollama.context_tokens higher."
        return BadRequest(message, hint=hint, provider=provider, status=status)
    if status < 500 and _TOO_LARGE.search(said):
        hint = "It is too much at once: start a new session, send less, or choose another model."
        return BadRequest(message, hint=hint, provider=provider, status=status)
    spent = status == 402 or _SPENT.search(said)
    if spent or (status == 429 and _QUOTA.search(said) and not is_passing):
        hint = "The account has no credit left: top it up, or choose another provider."
        return RateLimited(message, hint=hint, provider=provider, status=status, retryable=False)
    if status == 429:
        return RateLimited(message, provider=provider, status=status)
    if status >= 500 and _MEMORY.search(said):
        hint = "Choose a smaller model, or a smaller context with llm.ollama.context_tokens."
        return ModelError(message, hint=hint, provider=provider, status=status, retryable=False)
    if status == 400 and _BADLY_WRITTEN.search(said):
        return ModelError(message, provider=provider, status=status, retryable=True)
    if status < 500 and not retryable:
        return BadRequest(message, hint=_advice(said), provider=provider, status=status)
    return ModelError(message, provider=provider, status=status, retryable=retryable)


def _advice(said: str) -> str:
    if missing := _MISSING.search(said):
        return f"If this is Ollama, `ollama pull {missing[1]}` gets it."
    return "Choose a model that can call tools." if _NO_TOOLS.search(said) else ""


def _hint(origin: Origin, status: int, location: str) -> str:
    if status in (401, 403):
        where = origin.key_variable or f"api_key of {origin.provider} in your settings"
        return f"Check {where}." if origin.has_key else f"No key was sent: set {where}."
    if 300 <= status < 400:
        to = f" to {location}" if location else ""
        return f"Redirects{to} are not followed: set the final address as the base URL."
    if status in (404, 405):
        versioned = re.search(r"/v\d\w*/?$", origin.url)
        ending = "" if versioned else ", which for most servers ends in /v1"
        return f"Check the model's name and the base URL {origin.url}{ending}."
    if status == 429:
        return "Wait a little, or choose another model."
    if status >= 500:
        return "The server has a problem: try again later, or choose another model."
    return ""


def _phrase(status: int) -> str:
    if status == 529:
        return "overloaded"
    try:
        return http.HTTPStatus(status).phrase.lower()
    except ValueError:
        return ""


def _report_in(body: bytes) -> object:
    """The error object in a body, or what stands in its place."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        # A page of markup says nothing to a person that the status does not.
        return "" if text.startswith("<") else text
    return _inner(value)


def _inner(report: object) -> object:
    """The error itself: the first of a list, what is under `error`, what text holds as JSON."""
    for _ in range(_MAX_WRAPPINGS):
        within: object = None
        if isinstance(report, list):
            within = next(iter(report), None)
        elif isinstance(report, str):
            within = _object_in(report)
        elif isinstance(report, dict):
            within = report.get("error")
            if isinstance(within, str):
                within = _object_in(within)
            elif not within and not isinstance(report.get("message"), str):
                within = report.get("errors")
        if not isinstance(within, dict | list | str) or not within:
            break
        report = within
    return report


def _said(report: object) -> tuple[str, str]:
    """A report's own words, and its type and code."""
    if isinstance(report, str):
        return report, ""
    if not isinstance(report, Mapping):
        return "", ""
    kind = " ".join(str(report[key]) for key in ("type", "code", "status") if report.get(key))
    told = [report[key] for key in ("message", "detail", "msg", "error") if report.get(key)]
    words = next((each for each in told if isinstance(each, str) and each.strip()), None)
    if words is None and told:
        words = json.dumps(told[0], default=str)
    return words or "", kind


def _object_in(text: str) -> dict[str, object] | None:
    """The error object of the server behind, which some pass on as text."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and value else None


def _status_of(report: object, kind: str) -> int | None:
    if isinstance(report, Mapping):
        for key in ("status", "status_code", "code"):
            value = report.get(key)
            if isinstance(value, str) and value.isdecimal() and len(value) == 3:
                value = int(value)
            if isinstance(value, int) and 400 <= value <= 599:
                return value
    return next((status for pattern, status in _KINDS if pattern.search(kind)), None)
