"""Which TCP ports a process and its children listen on, as Linux reports it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_LISTEN = "0A"


@dataclass(frozen=True, slots=True)
class _Socket:
    port: int
    uid: int


def listening_ports(pid: int) -> frozenset[int] | None:
    """Ports that `pid` or a descendant listens on; None where that cannot be told.

    Children that hold secrets let nobody but root look into them. They listen on nothing if every
    listening socket of their user belongs to a process that can be looked into.
    """
    sockets = _listening_sockets()
    if sockets is None:
        return None
    own: set[str] = set()
    closed: list[int] = []
    for each in _family(pid):
        try:
            own.update(_socket_inodes(each))
        except PermissionError:
            closed.append(each)
    found = frozenset(socket.port for inode, socket in sockets.items() if inode in own)
    if closed and not found and _may_hold(closed, sockets):
        return None
    return found


def _may_hold(closed: Iterable[int], sockets: dict[str, _Socket]) -> bool:
    """Whether a listening socket is left that could belong to one of these processes."""
    users = {uid for each in closed for uid in _users(each)}
    theirs = {inode for inode, socket in sockets.items() if socket.uid in users}
    return bool(theirs) and not theirs <= _seen_inodes()


def _listening_sockets() -> dict[str, _Socket] | None:
    """Listening TCP sockets of the machine, by inode."""
    sockets: dict[str, _Socket] = {}
    readable = False
    for name in ("tcp", "tcp6"):
        try:
            rows = (_PROC / "net" / name).read_text("ascii").split("\n")[1:]
        except OSError:
            continue
        readable = True
        for row in rows:
            fields = row.split()
            if len(fields) > 9 and fields[3] == _LISTEN:
                port = int(fields[1].rsplit(":", 1)[1], 16)
                sockets[fields[9]] = _Socket(port, int(fields[7]))
    return sockets if readable else None


def _seen_inodes() -> set[str]:
    """Sockets of all processes of the machine that can be looked into."""
    seen: set[str] = set()
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                seen.update(_socket_inodes(int(entry.name)))
            except PermissionError:
                continue
    return seen


def _users(pid: int) -> Iterator[int]:
    """Whose files and sockets a process can make: its real, effective, saved and file system id."""
    try:
        lines = (_PROC / str(pid) / "status").read_text("utf-8", "replace").split("\n")
    except OSError:
        return
    for line in lines:
        if line.startswith("Uid:"):
            yield from map(int, line.split()[1:])


def _socket_inodes(pid: int) -> Iterator[str]:
    """The sockets of a process, none if it is gone.

    Raises:
        PermissionError: the process lets nobody look.
    """
    try:
        descriptors = list((_PROC / str(pid) / "fd").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return
    for descriptor in descriptors:
        try:
            target = str(descriptor.readlink())
        except (FileNotFoundError, ProcessLookupError):
            continue  # closed since it was listed
        if target.startswith("socket:["):
            yield target[8:-1]


def _family(pid: int) -> Iterator[int]:
    """The process and all below it."""
    yield pid
    for children in (_PROC / str(pid) / "task").glob("*/children"):
        try:
            found = children.read_text("ascii").split()
        except OSError:
            continue
        for child in found:
            yield from _family(int(child))
