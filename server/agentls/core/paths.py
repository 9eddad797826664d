"""What a path means by its name alone, for all who judge paths. Pure."""

from __future__ import annotations

import unicodedata


def is_git(path: str) -> bool:
    """Whether a path is git's own: a part of it is `.git`, in any spelling some system equates.

    `path` has forward slashes.
    """
    return any(map(_is_git_name, path.split("/")))


def _is_git_name(part: str) -> bool:
    """Also what macOS (invisible characters) and Windows (endings, short name) take for it."""
    if not part.isascii():
        part = "".join(char for char in part if unicodedata.category(char) != "Cf")
    return part.split(":")[0].rstrip(" .").casefold() in {".git", "git~1"}
