"""The folders that make up the workspace, and the only code that turns a path into a place.

Containment is decided by the parts of the real path, after every link is resolved. A place is a
fact about one moment; files are therefore opened by `folders.py`, which follows no link at all.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from agentls.core.errors import PathRefused, UsageError
from agentls.workspace.failures import quoted
from agentls.workspace.links import Place, follow

_PSEUDO = frozenset({"proc", "sys", "dev"})
_MAX_PATH_CHARS = 4096
_HINT = "Give a path relative to the workspace folder."


@dataclass(frozen=True, slots=True)
class Resolved:
    """A place inside the workspace.

    `root` is the real path of the root that holds it and `parts` the way from there, free of
    links. `name` is what the rest of the product calls it: relative to the first root, with
    forward slashes, or absolute when another root holds it; resolving `name` leads here again.
    `asked` is the name the caller used, in the same form. `linked` and `dangling` are as in
    `links.Place`.
    """

    root: Path
    parts: tuple[str, ...]
    name: str
    asked: str
    exists: bool
    linked: bool
    dangling: bool

    @property
    def real(self) -> Path:
        """The absolute path, free of links."""
        return self.root.joinpath(*self.parts)

    @property
    def relative(self) -> str:
        """The path below its own root, with forward slashes."""
        return "/".join(self.parts) or "."


class Roots:
    """One or more folders, the first being where relative paths start."""

    def __init__(self, *folders: Path) -> None:
        """Folders may be links.

        Raises:
            UsageError: there is none, or one does not exist or is not a folder.
        """
        if not folders:
            raise UsageError("A workspace needs at least one folder.")
        self._given = tuple(Path(os.path.abspath(folder)) for folder in folders)  # noqa: PTH100
        self._folders = tuple(_real_folder(folder) for folder in folders)

    @property
    def folders(self) -> tuple[Path, ...]:
        """The real paths of the roots, in the order given."""
        return self._folders

    def resolve(self, path: str) -> Resolved:
        """Find the place a path names. Relative paths start at the first root that has them.

        Takes some tens of microseconds on a local disk, and opens nothing.

        Raises:
            PathRefused: the place is outside every root, or the path is malformed.
        """
        _check_form(path)
        if path.startswith("~") and not self._has(path.split("/")[0]):
            raise PathRefused(f"{quoted(path)}: '~' is not expanded.", hint=_HINT)
        place = self._follow(path)
        for root in self._folders:
            if place.real.is_relative_to(root):
                return self._resolved(path, root, place)
        where = f"leads to {quoted(str(place.real))}," if place.linked else "is"
        raise PathRefused(f"{quoted(path)} {where} outside the workspace.", hint=_HINT)

    def name(self, root: Path, relative: str) -> str:
        """The workspace's name for a place `relative` (forward slashes) below one of the roots."""
        first = self._folders[0]
        if root == first:
            return relative
        real = root / relative
        if real.is_relative_to(first):
            return real.relative_to(first).as_posix()
        return real.as_posix()

    def _has(self, name: str) -> bool:
        return any(os.path.lexists(folder / name) for folder in self._folders)

    def _follow(self, path: str) -> Place:
        place = follow(self._folders[0], path)
        if place.exists or place.linked or Path(path).is_absolute():
            return place
        for folder in self._folders[1:]:
            other = follow(folder, path)
            if other.exists:
                return other
        return place

    def _resolved(self, path: str, root: Path, place: Place) -> Resolved:
        parts = place.real.parts[len(root.parts) :]
        if len(root.parts) == 1 and parts and parts[0] in _PSEUDO:
            raise PathRefused(f"{quoted(path)} is part of the system, not of the workspace.")
        name = self.name(root, "/".join(parts) or ".")
        return Resolved(
            root=root,
            parts=parts,
            name=name,
            asked=self._asked(path, name) if place.linked else name,
            exists=place.exists,
            linked=place.linked,
            dangling=place.dangling,
        )

    def _asked(self, path: str, name: str) -> str:
        """The caller's own name for a place that was reached through a link."""
        named = Path(os.path.normpath(path))
        if ".." in Path(path).parts:
            return name
        if not named.is_absolute():
            return named.as_posix()
        for folder in (self._given[0], self._folders[0]):
            if named.is_relative_to(folder):
                return named.relative_to(folder).as_posix()
        return named.as_posix()


def _real_folder(folder: Path) -> Path:
    try:
        real = Path(os.path.realpath(folder, strict=True))
    except OSError as error:
        raise UsageError(
            f"The folder {quoted(str(folder))} cannot be opened: {error.strerror}."
        ) from None
    if not real.is_dir():
        raise UsageError(f"{quoted(str(folder))} is not a folder.")
    return real


def _check_form(path: str) -> None:
    """Refuse what cannot name a file here, before anything is looked up."""
    if not path.strip():
        raise PathRefused("The path is empty.", hint=_HINT)
    if "\0" in path:
        raise PathRefused(f"{quoted(path)} contains a NUL character.")
    if len(path) > _MAX_PATH_CHARS:
        raise PathRefused(f"The path is longer than {_MAX_PATH_CHARS} characters.")
    try:
        path.encode()
    except UnicodeEncodeError:
        raise PathRefused(f"{quoted(path)} is not valid Unicode.") from None
