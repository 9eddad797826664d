"""Text files on the disk: load, replace, create. Blocking; for worker threads.

Joins descriptors (`folders`), text (`decoding`, `line_ends`) and atomic writes (`writes`), and
words their failures. Places come resolved from `roots`. Knows nothing of editors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from agentls.core.errors import PathRefused, StaleFile, ToolError
from agentls.core.ports import FileText
from agentls.workspace import writes
from agentls.workspace.decoding import Decoded, Undecodable, decode, encode
from agentls.workspace.failures import quoted, tool_error
from agentls.workspace.folders import Folder, read_all
from agentls.workspace.line_ends import restore
from agentls.workspace.roots import Resolved

MAX_FILE_BYTES = 10_000_000
"""Larger files are neither read nor written."""

READ_AGAIN = "Read it again."


def version(data: bytes) -> str:
    """The name of exactly this content."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def require_base(place: Resolved, base: str | None, current: str) -> None:
    """Refuse a write that was made from something else than what is there now.

    Raises:
        StaleFile: `base` is not `current`, or None although something is there.
    """
    if base is None:
        raise _exists(place)
    if base != current:
        raise StaleFile(f"{quoted(place.name)} changed since it was read.", hint=READ_AGAIN)


def _exists(place: Resolved) -> StaleFile:
    return StaleFile(f"{quoted(place.name)} exists already.", hint="Read it first.")


@contextmanager
def _worded(place: Resolved, doing: Literal["read", "written"]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise tool_error(error, place.name, doing) from None


def load(place: Resolved) -> FileText:
    """Read a file.

    Raises:
        PathRefused: not a regular file.
        ToolError: missing, too large, binary, or in an encoding that is not supported.
    """
    with _worded(place, "read"):
        if not place.parts:
            raise PathRefused(f"{quoted(place.name)} is a folder, not a file.")
        with Folder.open(place.root, place.parts[:-1]) as folder:
            data, decoded = _read(folder, place)
    return FileText(place.name, decoded.text, version(data))


def save(place: Resolved, text: str, base: str | None) -> FileText:
    """Write a file that is still `base`, or create one that does not exist when `base` is None.

    Raises:
        StaleFile: the content is not `base`; with `base` None, the file exists.
        EditRefused: the file's encoding lacks a character.
        ToolError: not permitted, no space left, not decodable. The file is unchanged then.
    """
    with _worded(place, "written"):
        if base is None:
            return _create(place, text)
        return _replace(place, text, base)


def _read(folder: Folder, place: Resolved) -> tuple[bytes, Decoded]:
    with folder.opened(place.parts[-1]) as (descriptor, facts):
        data = b"" if facts.st_size > MAX_FILE_BYTES else read_all(descriptor, MAX_FILE_BYTES)
        size = max(facts.st_size, len(data))
    if size > MAX_FILE_BYTES:
        raise ToolError(
            f"{quoted(place.name)} has {size / 1e6:.0f} MB; the limit is "
            f"{MAX_FILE_BYTES / 1e6:.0f} MB.",
            hint="Search it with grep, or look at parts of it with a command.",
        )
    try:
        return data, decode(data)
    except Undecodable as error:
        raise ToolError(f"{quoted(place.name)} cannot be read as text: {error}.") from None


def _replace(place: Resolved, text: str, base: str) -> FileText:
    name = place.parts[-1]
    try:
        with Folder.open(place.root, place.parts[:-1]) as folder:
            old, decoded = _read(folder, place)
            require_base(place, base, version(old))
            new_text = restore(decoded.text, text)
            new = _encoded(place, new_text, decoded)
            if new != old:
                if not folder.writable(name):
                    raise ToolError(f"{quoted(place.name)} is read-only. Nothing was changed.")
                writes.replace(folder, name, new, old=old)
            return FileText(place.name, decode(new).text, version(new))
    except FileNotFoundError:
        raise StaleFile(f"{quoted(place.name)} does not exist any more.", hint=READ_AGAIN) from None
    except writes.Changed:
        raise StaleFile(
            f"{quoted(place.name)} changed while it was being written.", hint=READ_AGAIN
        ) from None


def _create(place: Resolved, text: str) -> FileText:
    data = _encoded(place, text, Decoded(""))
    with _parents(place) as folder:
        try:
            writes.create(folder, place.parts[-1], data)
        except FileExistsError:
            raise _exists(place) from None
    return FileText(place.name, decode(data).text, version(data))


def _encoded(place: Resolved, text: str, like: Decoded) -> bytes:
    data = encode(text, like)
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(
            f"{quoted(place.name)} would have {len(data) / 1e6:.0f} MB; the limit is "
            f"{MAX_FILE_BYTES / 1e6:.0f} MB."
        )
    return data


@contextmanager
def _parents(place: Resolved) -> Iterator[Folder]:
    """The folder of a new file, created as needed; folders made for nothing are removed again."""
    made: list[tuple[Folder, str]] = []
    folders = [Folder.open(place.root)]
    try:
        for part in place.parts[:-1]:
            here = folders[-1]
            with suppress(FileExistsError):
                here.make_folder(part)
                made.append((here, part))
            folders.append(here.child(part))
        yield folders[-1]
    except BaseException:
        for parent, part in reversed(made):
            with suppress(OSError):
                parent.remove_folder(part)
        raise
    finally:
        for folder in folders:
            folder.close()
