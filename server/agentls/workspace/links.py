"""Follows a path to the place it really names, link by link.

Owns the knowledge of symbolic links. Knows nothing of the workspace: `roots.py` decides whether
the place found may be touched. What is found here can change a moment later; `folders.py`
therefore opens it without following any link.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from agentls.core.errors import PathRefused
from agentls.workspace.failures import quoted

_MAX_LINKS = 40
"""As many as Linux follows in one lookup."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads.

    `real` holds no link, except below a folder that does not exist. `linked` says that a link was
    on the way, `dangling` that one leads to something that does not exist.
    """

    real: Path
    exists: bool = True
    linked: bool = False
    dangling: bool = False


def follow(start: Path, path: str) -> Place:
    """Follow `path` from the folder `start`, which is absolute and free of links.

    Costs one system call for each part of the path.

    Raises:
        PathRefused: a loop, a file used as a folder, a name that cannot exist.
    """
    try:
        if os.name == "posix":
            return _Walk(path).run(start)
        return _by_library(start, path)
    except PermissionError:
        raise PathRefused(f"{quoted(path)} cannot be looked at: permission denied.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise PathRefused(f"{quoted(path)} is not a usable path: {reason}.") from None


class _Walk:
    """One lookup. `todo` holds what is left, last part first; None ends what came from a link."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._real: list[str] = []
        self._todo: list[str | None] = list(reversed(_parts(path)))
        self._links = 0
        self._open_links = 0
        self._exists = True
        self._dangling = False

    def run(self, start: Path) -> Place:
        if not self._path.startswith("/"):
            self._real.extend(start.parts[1:])
        while self._todo:
            part = self._todo.pop()
            if part is None:
                self._open_links -= 1
            elif part == "..":
                self._ascend()
            else:
                self._real.append(part)
                if self._exists:
                    self._look()
        return Place(
            real=Path("/", *self._real),
            exists=self._exists,
            linked=self._links > 0,
            dangling=self._dangling,
        )

    def _ascend(self) -> None:
        if not self._exists:
            raise PathRefused(f"{quoted(self._path)} has '..' behind a folder that does not exist.")
        if self._real:
            self._real.pop()

    def _look(self) -> None:
        location = "/" + "/".join(self._real)
        try:
            mode = os.lstat(location).st_mode
        except FileNotFoundError:
            self._exists = False
            self._dangling = self._open_links > 0
            return
        if stat.S_ISLNK(mode):
            self._enter(os.readlink(location))  # noqa: PTH115 - kept as it is written
        elif not stat.S_ISDIR(mode) and any(part is not None for part in self._todo):
            raise PathRefused(
                f"{quoted(self._path)} cannot exist: {quoted(location)} is not a folder."
            )

    def _enter(self, target: str) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise PathRefused(f"{quoted(self._path)} leads through links in a loop.")
        if target.startswith("/"):
            self._real.clear()
        else:
            self._real.pop()
        self._open_links += 1
        self._todo.append(None)
        self._todo.extend(reversed(_parts(target)))


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _by_library(start: Path, path: str) -> Place:
    """For systems without POSIX paths, where the standard library knows the rules."""
    named = Path(os.path.normpath(start / path))
    real = Path(re.sub(r"^\\\\\?\\", "", os.path.realpath(named)))
    exists = real.exists()
    linked = real != named
    return Place(real, exists=exists, linked=linked, dangling=not exists and os.path.lexists(named))
