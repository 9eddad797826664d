"""Open folders, in which names are looked up without ever following a link.

The way from a root to a file is opened part by part, each relative to the descriptor before it,
so that a folder or file swapped for a link after `roots.resolve` is refused and never followed.
Where the system has no descriptors of folders (Windows), every step checks the path instead: that
closes the ordinary cases and leaves a window of microseconds to someone who swaps names on
purpose.

Methods raise OSError; `failures.tool_error` words it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd
_FOLDER = (
    getattr(os, "O_PATH", os.O_RDONLY)
    | getattr(os, "O_DIRECTORY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_LISTED = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _FILE
_OWN_DESCRIPTORS = "/proc/self/fd"
_CHUNK = 1 << 20
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE


class Folder:
    """A folder that stays the same one, whatever happens to its name. Close it after use."""

    def __init__(self, path: Path, descriptor: int | None) -> None:
        """`descriptor` belongs to this object from now on; None where the system has none."""
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def open(cls, root: Path, parts: Sequence[str] = ()) -> Folder:
        """Open `root`, which is trusted, and from there each part, which is not."""
        folder = cls(root, os.open(root, _FOLDER) if _BY_DESCRIPTOR else None)
        for part in parts:
            with folder:
                folder = folder.child(part)
        return folder

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def child(self, name: str) -> Folder:
        """Open a folder in this one; a link is an error (ELOOP or ENOTDIR)."""
        if self._descriptor is not None:
            return Folder(self.path / name, os.open(name, _FOLDER, dir_fd=self._descriptor))
        if not stat.S_ISDIR(self.stat(name).st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name)
        return Folder(self.path / name, None)

    def stat(self, name: str) -> os.stat_result:
        """Facts about a name, about the link itself if it is one."""
        return os.stat(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)

    @contextmanager
    def opened(self, name: str) -> Iterator[tuple[int, os.stat_result]]:
        """A descriptor of a regular file, for reading, and facts about exactly that file.

        Never blocks, and never opens a device. A folder is an error (EISDIR), so is a link
        (ELOOP), and so are a device, pipe or socket (ENXIO).
        """
        before = self.stat(name)
        _require_regular(before, name)
        descriptor = os.open(self._at(name), _READ, dir_fd=self._descriptor)
        try:
            facts = os.fstat(descriptor)
            _require_regular(facts, name)
            if self._descriptor is None and not os.path.samestat(before, facts):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
            yield descriptor, facts
        finally:
            os.close(descriptor)

    def create(self, name: str, mode: int) -> int:
        """A descriptor, for writing, of a file that did not exist (FileExistsError)."""
        return os.open(self._at(name), _CREATE, mode, dir_fd=self._descriptor)

    def make_folder(self, name: str) -> None:
        """Create a folder."""
        os.mkdir(self._at(name), dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._at(name), dir_fd=self._descriptor)

    def replace(self, old: str, new: str) -> None:
        """Rename `old` to `new`, atomically taking the place of what `new` was."""
        os.replace(
            self._at(old),
            self._at(new),
            src_dir_fd=self._descriptor,
            dst_dir_fd=self._descriptor,
        )

    def link(self, old: str, new: str) -> None:
        """Give `old` the second name `new`, which must not exist (FileExistsError)."""
        os.link(
            self._at(old),
            self._at(new),
            src_dir_fd=self._descriptor,
            dst_dir_fd=self._descriptor,
            follow_symlinks=os.link not in os.supports_follow_symlinks,
        )

    def remove(self, name: str) -> None:
        """Remove a file."""
        os.unlink(self._at(name), dir_fd=self._descriptor)

    def writable(self, name: str) -> bool:
        """Whether a file may be written: by its mode, and by this user."""
        if not self.stat(name).st_mode & 0o222:
            return False
        return os.access(
            self._at(name),
            os.W_OK,
            dir_fd=self._descriptor,
            effective_ids=os.access in os.supports_effective_ids,
        )

    @property
    def as_working_folder(self) -> str:
        """A path by which a child that is started now enters exactly this folder."""
        if self._descriptor is not None and Path(_OWN_DESCRIPTORS).exists():
            return f"{_OWN_DESCRIPTORS}/{self._descriptor}"
        return str(self.path)

    def names(self) -> list[str]:
        """All names in the folder."""
        if self._descriptor is None:
            return os.listdir(self.path)  # noqa: PTH208 - names only
        listed = os.open(".", _LISTED, dir_fd=self._descriptor)
        try:
            return os.listdir(listed)  # noqa: PTH208 - by descriptor
        finally:
            os.close(listed)

    def sync(self) -> None:
        """Bring renames to the disk, where the system can do that for a folder."""
        if self._descriptor is None:
            return
        with suppress(OSError):
            listed = os.open(".", _LISTED, dir_fd=self._descriptor)
            try:
                os.fsync(listed)
            finally:
                os.close(listed)

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else str(self.path / name)


def read_all(descriptor: int, max_bytes: int) -> bytes:
    """Everything from where the descriptor stands, up to one byte more than `max_bytes`."""
    chunks: list[bytes] = []
    left = max_bytes + 1
    while left and (chunk := os.read(descriptor, min(left, _CHUNK))):
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def _require_regular(facts: os.stat_result, name: str) -> None:
    """Refuse what is not an ordinary file."""
    mode = facts.st_mode
    if stat.S_ISREG(mode):
        return
    number = errno.ENXIO
    if stat.S_ISLNK(mode):
        number = errno.ELOOP
    elif stat.S_ISDIR(mode):
        number = errno.EISDIR
    raise OSError(number, os.strerror(number), name)
