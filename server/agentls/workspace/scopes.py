"""What part of the workspace a search covers, and what its files are called.

Owns the choice of roots and of the ignore files that count. Knows nothing of patterns.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentls.core.errors import ToolError
from agentls.workspace.failures import quoted, tool_error
from agentls.workspace.folders import Folder
from agentls.workspace.roots import Roots

_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")


@dataclass(frozen=True, slots=True)
class Scope:
    """One folder, `parts` below its root, or only `file` in it.

    Paths below the folder that start with one of `covered` belong to another scope.
    """

    roots: Roots
    root: Path
    parts: tuple[str, ...] = ()
    file: str | None = None
    covered: tuple[str, ...] = ()

    def relative(self, path: str) -> str:
        """The path below the root, of a path below the folder."""
        return "/".join((*self.parts, path))

    def is_covered(self, path: str) -> bool:
        """Whether a path below the folder belongs to another scope."""
        return path.startswith(self.covered)

    def name(self, path: str) -> str:
        """The workspace's name of a path below the folder."""
        return self.roots.name(self.root, self.relative(path))

    @contextmanager
    def opened(self) -> Iterator[Folder]:
        """The folder, opened without following links.

        Raises:
            ToolError: it cannot be opened.
        """
        try:
            folder = Folder.open(self.root, self.parts)
        except OSError as error:
            raise tool_error(error, self.name("."), "read") from None
        with folder:
            yield folder

    def ignore_arguments(self) -> list[str]:
        """How ripgrep finds ignore files: those of the workspace and of a repository around it.

        Outside a repository it would go on to the top of the disk, where a stray `*` hides all.
        """
        above = [self.root, *self.root.parents]
        if any((folder / ".git").exists() for folder in above):
            return []
        if not any((folder / name).exists() for folder in above[1:] for name in _IGNORE_FILES):
            return []
        own = [self.root / name for name in _IGNORE_FILES if (self.root / name).exists()]
        return ["--no-ignore-parent", *(f"--ignore-file={path}" for path in own)]


def scopes(roots: Roots, path: str) -> list[Scope]:
    """What to search for `path`: all roots for `.`, else the folder or file it names.

    Raises:
        PathRefused: outside the workspace.
        ToolError: it does not exist.
    """
    place = roots.resolve(path)
    if not place.exists:
        raise ToolError(f"{quoted(path)} does not exist.")
    if place.parts and not place.real.is_dir():
        return [Scope(roots, place.root, place.parts[:-1], file=place.parts[-1])]
    if place.parts or place.root != roots.folders[0]:
        return [Scope(roots, place.root, place.parts)]
    chosen: list[Scope] = []
    for root in roots.folders:
        earlier = [scope.root for scope in chosen]
        if not any(root.is_relative_to(other) for other in earlier):
            inside = [other for other in earlier if other.is_relative_to(root)]
            covered = tuple(f"{other.relative_to(root).as_posix()}/" for other in inside)
            chosen.append(Scope(roots, root, covered=covered))
    return chosen
