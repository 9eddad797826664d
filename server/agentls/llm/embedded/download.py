"""What the sources of weights have in common: progress, failure, the growing file.

Knows no source. A `.part` file is at all times a prefix of the file wanted, so that any source can
go on where another stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentls.core.errors import ModelError


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a download is, in bytes; `what` says what is going on, for people."""

    done_bytes: int
    total_bytes: int
    what: str


Report = Callable[[Progress], None]


class SourceFailed(ModelError):
    """One source could not serve the file; another may."""


def size_of(path: Path) -> int:
    """Bytes of a file; 0 when there is none."""
    return path.stat().st_size if path.is_file() else 0
