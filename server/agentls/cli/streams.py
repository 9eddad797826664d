"""Standard streams that survive what they meet: old encodings, readers that leave, terminal codes.

Owns writing to stdout and stderr. Knows nothing of turns or events.
"""

from __future__ import annotations

import os
import re
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

_ACTIVE = re.compile(r"\r(?!\n)|[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def legible(text: str) -> str:
    """Show characters that a terminal acts on, or that reorder text, as escapes.

    Meant for prose and code, so joiners that scripts and emoji need stay; for a prompt that asks a
    person to decide, use `core.text.visible`.
    """
    return _ACTIVE.sub(lambda match: f"\\u{{{ord(match[0]):x}}}", text)


class OutputLost(Exception):
    """Nobody reads a stream any more, or it cannot take more; `reason` is the system's."""

    def __init__(self, reason: OSError) -> None:
        """Not an `OSError` itself, so that no layer in between takes it for its own."""
        super().__init__(str(reason))
        self.reason = reason


class Output:
    """A text stream for people or programs.

    `writing` is true while a write is under way: a signal handler may then raise `OSError` to get
    out of waiting for a reader that has stopped reading. `write` and `flush` raise `OutputLost`.
    """

    def __init__(self, stream: TextIO) -> None:
        """Wrap a stream; the caller keeps owning it."""
        self.stream = stream
        self.writing = False

    @property
    def encoding(self) -> str:
        """The stream's encoding."""
        return self.stream.encoding or "ascii"

    def isatty(self) -> bool:
        """Whether a person sees it at once."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """The descriptor below."""
        return self.stream.fileno()

    def write(self, text: str) -> int:
        """Write text as it is; it may stay in a buffer until `flush`."""
        self.writing = True
        try:
            return self.stream.write(text)
        except OSError as error:
            raise OutputLost(error) from error
        finally:
            self.writing = False

    def flush(self) -> None:
        """Hand everything to the other end."""
        self.writing = True
        try:
            self.stream.flush()
        except OSError as error:
            raise OutputLost(error) from error
        finally:
            self.writing = False

    def line(self, text: str = "") -> None:
        """Write a line and flush it."""
        self.write(text + "\n")
        self.flush()

    def mark(self, symbol: str, ascii_form: str) -> str:
        """The symbol, or its plain form where the encoding has no such character."""
        try:
            symbol.encode(self.encoding)
        except (UnicodeEncodeError, LookupError):
            return ascii_form
        return symbol


def prepare_streams() -> tuple[Output, Output]:
    """Make stdout and stderr unable to fail for an encoding or for being closed.

    Characters the encoding lacks are written as escapes; undecodable input is replaced.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdin is None:
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    elif isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    return Output(sys.stdout), Output(sys.stderr)


def discard(stream: TextIO) -> None:
    """Point a stream whose reader is gone at nothing, so that the interpreter exits quietly."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, stream.fileno())
        os.close(devnull)
    except (OSError, ValueError):
        return
