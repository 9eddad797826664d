"""Which TCP ports a process and its children listen on, as Linux reports it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_LISTEN = "0A"


def listening_ports(pid: int) -> frozenset[int] | None:
    """Ports that `pid` or a descendant listens on; None where there is no /proc to ask."""
    sockets = _listening_sockets()
    if sockets is None:
        return None
    own = {inode for each in _family(pid) for inode in _socket_inodes(each)}
    return frozenset(port for inode, port in sockets.items() if inode in own)


def _listening_sockets() -> dict[str, int] | None:
    """Listening TCP sockets of the machine, by inode."""
    sockets: dict[str, int] = {}
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
                sockets[fields[9]] = int(fields[1].rsplit(":", 1)[1], 16)
    return sockets if readable else None


def _socket_inodes(pid: int) -> Iterator[str]:
    try:
        descriptors = list((_PROC / str(pid) / "fd").iterdir())
    except OSError:
        return
    for descriptor in descriptors:
        try:
            target = str(descriptor.readlink())
        except OSError:
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
