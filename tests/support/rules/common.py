"""Rules that several vendors share. Each gives what is wrong, and nothing when all is well."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
BASE64 = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")

Body = dict[str, Any]


def name(name: object, pattern: re.Pattern[str] = NAME) -> Iterator[str]:
    if not isinstance(name, str) or not pattern.fullmatch(name):
        yield f"{name!r} is not a name"


def unique(what: str, values: list[Any]) -> Iterator[str]:
    if len(set(values)) < len(values):
        yield f"{what} are not unique: {values}"


def short(what: str, values: list[str], longest: int) -> Iterator[str]:
    if any(len(value) > longest for value in values):
        yield f"{what} longer than {longest}: {values}"


def alternating(roles: list[str], sides: set[str]) -> Iterator[str]:
    if not roles:
        yield "no messages"
        return
    if roles[0] != "user":
        yield f"begins with {roles[0]}"
    if roles[-1] != "user":
        yield f"ends with {roles[-1]}"
    if not set(roles) <= sides:
        yield f"roles {sorted(set(roles) - sides)}"
    if any(one == other for one, other in itertools.pairwise(roles)):
        yield f"roles do not alternate: {roles}"


def arguments(raw: object) -> Iterator[str]:
    """Arguments as the text of a JSON object."""
    try:
        value = json.loads(raw) if isinstance(raw, str) else None
    except ValueError:
        value = None
    if not isinstance(value, dict):
        yield f"arguments are no text of an object: {raw!r}"
