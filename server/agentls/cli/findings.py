"""What doctor finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentls.cli.failures import classified


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. "failed" means something needed does not work; `next` says what to do."""

    name: str
    state: Literal["ok", "failed", "note"]
    detail: str
    next: str = ""


def failure(name: str, error: Exception) -> Check:
    """An error as a finding; a defect is one like any other."""
    known = classified(error)
    return Check(name, "failed", known.message, known.hint)
