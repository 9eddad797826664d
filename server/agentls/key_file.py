"""The user's settings file as a holder of keys: read once, and robbed of its keys if others see it.

Owns what counts as a key in it and whose eyes are too many. Knows nothing of what settings mean.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentls.core.redaction import Redactor, carries_key, names_key

_USER_INFO = re.compile(r"^([a-z][a-z0-9+.-]*:)?//[^/?#]*@", re.IGNORECASE)


class KeyFile:
    """The file at a path, or at the end of a link there. `text` reads it, once."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened yet."""
        self._path = path
        self._exposure = ""

    def text(self) -> str:
        """What is in it; empty if there is no file.

        Raises:
            OSError: it cannot be read, is no ordinary file, or anybody at all may have written it:
                then it says who may do what unasked and where questions go.
            UnicodeDecodeError: it is not UTF-8.
        """
        try:
            # Without waiting for the other end, if it is a pipe.
            descriptor = os.open(self._path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            return ""
        with open(descriptor, "rb") as file:  # noqa: PTH123 - there is no path to a descriptor
            # Of what was opened: the name may lead elsewhere by now.
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError("it is no ordinary file")
            if distrust := _distrust(status, self._path):
                raise OSError(distrust)
            self._exposure = _exposure(status)
            return file.read().decode("utf-8")

    def withhold_keys(self, layer: dict[str, Any]) -> list[str]:
        """Take the keys out of the parsed file, if others can get at it; gives the problem, if any.

        Everything else stays. Of an address that holds a password only that is taken out.
        """
        llm = layer.get("llm")
        if not self._exposure or not isinstance(llm, dict):
            return []
        names = [".".join(place) for place in _withheld(llm, ("llm",))]
        if not names:
            return []
        return [
            f"{self._path}: {', '.join(names)} "
            f"{'was' if len(names) == 1 else 'were'} not used: {self._exposure}. "
            f"Run `chmod 600 {shlex.quote(str(self._path))}`."
        ]


def _distrust(status: os.stat_result, path: Path) -> str:
    """Why nothing in the file counts, as a clause; empty if it does."""
    if os.name != "posix":
        return ""
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid not in (0, os.geteuid()):
        return f"it belongs to another user (uid {status.st_uid}); make it your own"
    if mode & stat.S_IWOTH:
        return f"anybody can change it (mode {mode:04o}); run `chmod 600 {shlex.quote(str(path))}`"
    return ""


def _exposure(status: os.stat_result) -> str:
    """Who beside this user can get at the file, as a clause; empty if nobody."""
    if os.name != "posix":
        return ""
    mode = stat.S_IMODE(status.st_mode)
    can = [verb for verb, bits in (("read", 0o044), ("change", 0o022)) if mode & bits]
    return f"others can {' and '.join(can)} the file (mode {mode:04o})" if can else ""


def _withheld(section: dict[str, Any], place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Take the keys out of a section of the file and of those below it; gives their places."""
    for name, value in [*section.items()]:
        here = (*place, name)
        match name, value:
            case "headers", dict():
                yield from _headers(value, here)
            case "extra_body", dict():
                for member, content in [*value.items()]:
                    if _holds_key(member, content):
                        del value[member]
                        yield (*here, member)
            case "base_url", str():
                # The address stays: without it, what is asked would go to somebody else.
                section[name] = _without_credentials(value)
                if section[name] != value:
                    yield here
            case _, dict():
                yield from _withheld(value, here)
            case _, str() if value.strip() and names_key(name):
                del section[name]
                yield here


def _headers(headers: dict[str, Any], place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, value in [*headers.items()]:
        if carries_key(name) or _holds_key(name, value):
            del headers[name]
            yield (*place, name)


def _holds_key(name: str, value: object) -> bool:
    match value:
        case str():
            return bool(value.strip()) and bool(names_key(name) or _looks_like_key(value))
        case dict():
            return any(_holds_key(str(inner), content) for inner, content in value.items())
        case list():
            return any(_holds_key(name, content) for content in value)
        case _:
            return False


def _looks_like_key(text: str) -> bool:
    return Redactor()(text) != text


def _without_credentials(url: str) -> str:
    bare = _USER_INFO.sub(lambda match: f"{match[1] or ''}//", url)
    return bare.partition("?")[0] if _looks_like_key(bare) else bare
