"""Atomic writes: after a crash at any moment a file holds its old bytes or its new ones.

New bytes go to a temporary file in the same folder, are brought to the disk, and take the place
of the old by a rename. Mode, owner, group and extended attributes are kept, as far as the system
lets us. A second hard link to the file is not written through: it may lie outside the workspace.
Functions raise OSError, and leave nothing behind when they do. Knows nothing of text.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import time
from contextlib import suppress

from agentls.workspace.folders import Folder, read_all

TEMPORARY_PREFIX = ".agentls-tmp-"
"""Names of temporary files start with this, followed by the writing process and a random part."""

_TEMPORARY = re.compile(re.escape(TEMPORARY_PREFIX) + r"(\d+)-[0-9a-f]+")
_MAX_AGE_S = 3600.0
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK})


class Changed(Exception):
    """The file is no longer what it was."""


def replace(folder: Folder, name: str, data: bytes, *, old: bytes) -> None:
    """Give a regular file new content, if its content is still `old` right before the rename.

    Raises:
        Changed: it is not; nothing was done.
    """
    sweep(folder)
    temporary = _temporary_name()
    try:
        with folder.opened(name) as (source, facts):
            _fill(folder, temporary, data, mode=0o600, like=(source, facts))
            if read_all(source, len(old)) != old or not _is_still(folder, name, facts):
                raise Changed
        folder.replace(temporary, name)
    except BaseException:
        with suppress(OSError):
            folder.remove(temporary)
        raise
    folder.sync()


def create(folder: Folder, name: str, data: bytes) -> None:
    """Create a file with this content; FileExistsError when the name is taken, whatever by."""
    sweep(folder)
    temporary = _temporary_name()
    try:
        _fill(folder, temporary, data, mode=0o666, like=None)
        _publish(folder, temporary, name)
    finally:
        with suppress(OSError):
            folder.remove(temporary)
    folder.sync()


def sweep(folder: Folder) -> None:
    """Remove temporary files of processes that died while writing."""
    with suppress(OSError):
        for name in folder.names():
            match = _TEMPORARY.fullmatch(name)
            if match is not None and _abandoned(folder, name, int(match[1])):
                folder.remove(name)


def _temporary_name() -> str:
    return f"{TEMPORARY_PREFIX}{os.getpid()}-{secrets.token_hex(6)}"


def _fill(
    folder: Folder, name: str, data: bytes, *, mode: int, like: tuple[int, os.stat_result] | None
) -> None:
    descriptor = folder.create(name, mode)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if like is not None:
            _copy_attributes(*like, descriptor)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_attributes(source: int, facts: os.stat_result, target: int) -> None:
    """Owner before mode, as a change of owner clears the bits that lend one's rights to others."""
    if not hasattr(os, "fchown"):
        return
    mode = stat.S_IMODE(facts.st_mode)
    own = os.fstat(target)
    if (own.st_uid, own.st_gid) != (facts.st_uid, facts.st_gid):
        try:
            os.fchown(target, facts.st_uid, facts.st_gid)
        except PermissionError:
            mode &= ~(stat.S_ISUID | stat.S_ISGID)
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for attribute in os.listxattr(source):
                with suppress(OSError):
                    os.setxattr(target, attribute, os.getxattr(source, attribute))
    os.fchmod(target, mode)


def _is_still(folder: Folder, name: str, facts: os.stat_result) -> bool:
    try:
        return os.path.samestat(folder.stat(name), facts)
    except FileNotFoundError:
        return False


def _publish(folder: Folder, temporary: str, name: str) -> None:
    """Give the finished file its name without ever taking another's.

    A hard link does that in one step. Where there are none, an empty file reserves the name first.
    """
    try:
        folder.link(temporary, name)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(folder.create(name, 0o666))
        try:
            folder.replace(temporary, name)
        except OSError:
            folder.remove(name)
            raise


def _abandoned(folder: Folder, name: str, process_id: int) -> bool:
    if not stat.S_ISREG(folder.stat(name).st_mode):
        return False
    if time.time() - folder.stat(name).st_mtime > _MAX_AGE_S:
        return True
    if os.name != "posix":
        return False
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return False
