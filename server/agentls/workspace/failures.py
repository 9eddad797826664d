"""Turns what the operating system refuses into errors a model and a person can act on."""

from __future__ import annotations

import errno
from typing import Literal

from agentls.core.errors import PathRefused, ToolError
from agentls.core.text import visible

_MAX_SHOWN = 300

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SWAPPED = frozenset({errno.ELOOP, errno.ENOTDIR})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})


def quoted(path: str) -> str:
    """A path for a message: quoted, on one line, hidden characters escaped, cut when long."""
    shown = visible(path).replace("\n", "\\n").replace("\t", "\\t")
    if len(shown) > _MAX_SHOWN:
        shown = f"{shown[:_MAX_SHOWN]}…"
    return f"'{shown}'"


def tool_error(error: OSError, name: str, doing: Literal["read", "written"]) -> ToolError:
    """What to tell about a file that could not be read or written; it is unchanged then."""
    shown = quoted(name)
    unchanged = " Nothing was changed." if doing == "written" else ""
    if isinstance(error, FileNotFoundError):
        return ToolError(f"{shown} does not exist.")
    if error.errno == errno.EISDIR:
        return PathRefused(f"{shown} is a folder, not a file.")
    if error.errno == errno.ENXIO:
        return PathRefused(f"{shown} is a device, pipe or socket, not a file.")
    if error.errno in _SWAPPED:
        return PathRefused(f"{shown} changed into something else while it was being opened.")
    if error.errno in _FULL:
        return ToolError(f"{shown} was not written: the disk is full.{unchanged}")
    if error.errno == errno.EROFS:
        return ToolError(f"{shown} was not written: the file system is read-only.{unchanged}")
    if error.errno in _FORBIDDEN:
        return ToolError(f"{shown} cannot be {doing}: permission denied.{unchanged}")
    return ToolError(f"{shown} cannot be {doing}: {error.strerror or error}.{unchanged}")
