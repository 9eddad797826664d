"""Files as the user sees them: the editor's open buffer if there is one, else the disk.

The only way in which tools read and write files. Resolves places, chooses between buffer and
disk, and puts writes to one file in a line. Knows nothing of permissions; it states the facts
they are decided by.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

from agentls.core.errors import PathRefused, StaleFile
from agentls.core.paths import is_git
from agentls.core.ports import Buffers, FileText, PathFacts
from agentls.workspace import disk
from agentls.workspace.failures import quoted
from agentls.workspace.line_ends import restore
from agentls.workspace.roots import Resolved, Roots
from agentls.workspace.sensitive import is_protected, is_secret

T = TypeVar("T")


class Documents:
    """`core.ports.Files` over the disk and, where an editor is there, its buffers.

    Blocking work runs in threads; buffers are only touched from the caller's event loop. A write
    that has begun is finished before a cancellation takes effect, so that its caller knows what
    the file is.
    """

    def __init__(self, roots: Roots, buffers: Buffers | None = None) -> None:
        """`buffers` are the documents an editor holds open, if one is there."""
        self._roots = roots
        self._buffers = buffers
        self._guard = threading.Lock()
        self._locks: WeakValueDictionary[Path, _Lock] = WeakValueDictionary()

    async def facts(self, path: str) -> PathFacts:
        """Resolve a path without opening it; see `core.ports.Files`.

        `path` is the name that was asked for, `target` the one it leads to through a link. Secret
        and protected are whichever of the two is.
        """
        place = await asyncio.to_thread(self._roots.resolve, path)
        own_names = [place.relative, *([place.asked] if place.linked else [])]
        return PathFacts(
            path=place.asked,
            exists=place.exists or self._open_text(place) is not None,
            secret=any(map(is_secret, own_names)),
            protected=any(map(is_protected, own_names)),
            target=place.name if place.asked != place.name else None,
        )

    async def read(self, path: str) -> FileText:
        """The text of a file, without byte order mark; see `core.ports.Files`.

        Raises:
            PathRefused: outside the workspace, or not a regular file.
            ToolError: missing, too large, binary, or in an encoding that is not supported.
        """
        place = await asyncio.to_thread(self._roots.resolve, path)
        held = self._open_text(place)
        if held is not None:
            text, number = held
            return FileText(place.name, text, _buffer_version(text, number))
        return await asyncio.to_thread(disk.load, place)

    async def write(
        self, path: str, text: str, *, base: str | None, place: str | None = None
    ) -> FileText:
        r"""Replace a file's text; see `core.ports.Files`.

        Line ends in `text` may all be \n: those of the file are restored (`line_ends.restore`).

        Raises:
            PathRefused: outside the workspace, in `.git`, a dangling link, or not a regular file.
            StaleFile: the content is not `base`; with `base` None, the file exists; the path does
                not lead to `place`.
            EditRefused: the file's encoding has no such character.
            ToolError: not permitted, no space left, not decodable. The file is unchanged.
        """
        found = await asyncio.to_thread(self._roots.resolve, path)
        if place is not None and found.name != place:
            # From here on no link is followed, so what is compared is what is written.
            raise StaleFile(f"{quoted(path)} leads elsewhere by now.", hint="Try again.")
        _require_writable_place(found, path)
        held = self._open_text(found)
        if held is not None and self._buffers is not None:
            return await self._write_buffer(self._buffers, found, text, held, base)
        return await _finished(lambda: self._write_disk(found, text, base))

    def _open_text(self, place: Resolved) -> tuple[str, int] | None:
        return None if self._buffers is None else self._buffers.open_text(place.real)

    async def _write_buffer(
        self,
        buffers: Buffers,
        place: Resolved,
        text: str,
        held: tuple[str, int],
        base: str | None,
    ) -> FileText:
        old, number = held
        disk.require_base(place, base, _buffer_version(old, number))
        new = restore(old, text)
        if new != old:
            number = await buffers.replace(place.real, new, base=number)
        return FileText(place.name, new, _buffer_version(new, number))

    def _write_disk(self, place: Resolved, text: str, base: str | None) -> FileText:
        with self._lock(place.real):
            return disk.save(place, text, base)

    def _lock(self, path: Path) -> _Lock:
        with self._guard:
            return self._locks.setdefault(path, _Lock())


class _Lock:
    """A lock that can be held weakly: it lives as long as someone uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


async def _finished(work: Callable[[], T]) -> T:
    """Run in a thread, and let it finish even when the caller is cancelled meanwhile."""
    running = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()
        raise


def _buffer_version(text: str, number: int) -> str:
    """With a digest, since an editor counts from the start when a document is opened again."""
    return f"buffer:{number}:{disk.version(text.encode('utf-8', 'surrogatepass'))}"


def _require_writable_place(place: Resolved, path: str) -> None:
    shown = quoted(path)
    if any(is_git(name) for name in (place.relative, place.asked)):
        raise PathRefused(f"{shown} belongs to git, which alone writes there.")
    if place.dangling:
        raise PathRefused(f"{shown} is a link to something that does not exist.")
    if not place.parts or (path.endswith("/") and not place.exists):
        raise PathRefused(f"{shown} is a folder, not a file.")
