"""What a member's failure means for the others of a pool, and how it is told. Pure.

Knows the words of providers as far as `failures` does not: which refusals are about the one that
refused. Knows nothing of who is asked next.
"""

from __future__ import annotations

import re

from agentls.core.errors import BadRequest, ModelError, RateLimited, Unauthorized
from agentls.core.redaction import Redactor
from agentls.core.requests import ModelInfo
from agentls.core.text import short_line

_REASON_CHARS = 240
_SHARED_FAULTS = frozenset({400, 413, 422})
"""Statuses of a request that is bad for everyone, unless the words speak of the member itself."""

_ACCOUNT = re.compile(
    r"api[ _-]?key|\bcredits?\b|quota|\bbalance\b|(?<!/)\bbilling\b|\bpayment\b", re.IGNORECASE
)
_OWN_FAULT = re.compile(
    # what the model or its server cannot take
    r"context|too long|\btokens\b|unsupported|(?:not|n't|only|longer)(?: \w+)? support"
    r"|not (?:available|enabled)|cannot take|can't take|thinking|reasoning|signature"
    # what it is called there
    r"|model[^.]{0,80}(?:not found|not exist|decommissioned)|(?:unknown|invalid|no such) model"
    r"|not a valid model|model_not_found"
    # fields that only its wire format has
    r"|(?:unknown|unrecogni[sz]ed|unexpected)[^.]{0,30}(?:parameter|argument|field|name)"
    r"|extra inputs",
    re.IGNORECASE,
)


def is_account(error: ModelError) -> bool:
    """Whether the key or the credit is at fault, which no waiting mends."""
    if isinstance(error, Unauthorized) or error.status == 402:
        return True
    # Spent credit is a limit that does not pass; some speak of both, credit and key, under 400.
    return not error.retryable and (
        isinstance(error, RateLimited)
        or (isinstance(error, BadRequest) and _ACCOUNT.search(error.message) is not None)
    )


def is_everyones(error: ModelError) -> bool:
    """Whether every other member would refuse the request as well."""
    return (
        isinstance(error, BadRequest)
        and error.status in _SHARED_FAULTS
        and not is_account(error)
        and _OWN_FAULT.search(f"{error.message} {error.hint}") is None
    )


def reworded(error: ModelError, message: str) -> ModelError:
    """A copy with another message: the error itself may be raised again by whoever made it."""
    copy = type(error).__new__(type(error))
    copy.__dict__.update(error.__dict__)
    copy.message = message
    copy.args = (message,)
    return copy


def reason(info: ModelInfo, error: ModelError) -> str:
    """Why a member failed, as one sentence that names it."""
    said = sentence(error.message)
    name = f"{info.provider} "
    if said.startswith(name):
        return f"{label(info)} {said.removeprefix(name)}"
    return f"{label(info)}: {said}"


def sentence(message: str) -> str:
    """An error's words, short and without keys."""
    said = short_line(Redactor()(message), _REASON_CHARS)
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."


def label(info: ModelInfo) -> str:
    """How a member is named to people."""
    return f"{info.provider} ({info.name})" if info.name else info.provider
