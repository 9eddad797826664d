"""Runs one shell command and answers for every process that comes of it.

Started by `process.py` as a program of its own: `supervisor.py SHELL COMMAND`, with a pipe from
the server as standard input. It adopts whatever the command leaves behind, also what has moved to
a session of its own (Linux: `PR_SET_CHILD_SUBREAPER`; elsewhere the command's process group is
all it can see). When the command ends, when the server closes the pipe, or when the server dies,
nothing of it stays alive. Its exit code is the command's, or 128 + the signal that ended it.

Imports as little as possible: its start is part of the time of every command.
"""

from __future__ import annotations

import os
import select
import sys
import time

TERM, KILL = 15, 9
"""The same everywhere; the signal module costs more time than all the rest."""

_PYTHON_IGNORES = (13, 25)
"""SIGPIPE and SIGXFSZ: Python ignores them, commands must not inherit that."""

_PR_SET_CHILD_SUBREAPER = 36
_GRACE_S = 0.5
_GRACE_AFTER_END_S = 0.2
_GIVE_UP_S = 1.0
_ROUND_S = 0.005
_REAP_S = 1.0
_NO_SHELL = 127


def main(shell: str, command: str) -> int:
    """Run the command; returns its exit code."""
    if sys.platform == "linux":
        _adopt_orphans()
    try:
        child = os.posix_spawn(
            shell,
            [shell, "-c", "--", command],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)],
            setsid=True,
            setsigdef=_PYTHON_IGNORES,
        )
    except OSError as error:
        os.write(1, f"{shell}: {error.strerror}\n".encode())
        return _NO_SHELL
    family = Family(child)
    ended = family.wait(lifeline=0)
    left = family.end(_GRACE_AFTER_END_S if ended else _GRACE_S)
    if ended and left:
        noun = "process was" if left == 1 else "processes were"
        os.write(1, f"\n[{left} background {noun} stopped when the command ended]\n".encode())
    return family.exit_code


class Family:
    """A command and its descendants."""

    def __init__(self, child: int) -> None:
        """`child` is the shell, leader of its own session."""
        self._child = child
        self._running = True
        self.exit_code = 128 + KILL

    def wait(self, lifeline: int) -> bool:
        """Wait for the shell to end (True), or for the end of the descriptor `lifeline` (False)."""
        poller = select.poll()
        poller.register(lifeline, select.POLLIN)
        interval_s = 0.02
        if sys.platform == "linux":
            try:
                poller.register(os.pidfd_open(self._child), select.POLLIN)
                interval_s = _REAP_S
            except OSError:
                pass
        while self._reap() and self._running:
            if any(descriptor == lifeline for descriptor, _ in poller.poll(interval_s * 1000)):
                return False
        return True

    def end(self, grace_s: float) -> int:
        """Ask all that is left to end, then force it; returns how many processes were left."""
        if not self._alive():
            return 0
        found = self._signal(TERM)
        start = time.monotonic()
        while self._alive():
            passed = time.monotonic() - start
            if passed > grace_s:
                self._signal(KILL)
            if passed > grace_s + _GIVE_UP_S:
                break
            time.sleep(_ROUND_S)
        return found

    def _reap(self) -> bool:
        """Collect what has ended; whether any child is left."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                self._running = False
                return False
            if process == 0:
                return True
            if process == self._child:
                code = os.waitstatus_to_exitcode(status)
                self.exit_code = code if code >= 0 else 128 - code
                self._running = False

    def _alive(self) -> bool:
        """Whether anything is left that can be seen."""
        children = self._reap()
        if sys.platform == "linux":
            return children
        try:
            os.killpg(self._child, 0)
        except OSError:
            return children
        return True

    def _signal(self, number: int) -> int:
        if sys.platform != "linux":
            try:
                os.killpg(self._child, number)
            except OSError:
                return 0
            return 1
        members = _descendants(os.getpid())
        for process in members:
            try:
                os.kill(process, number)
            except OSError:  # it ended meanwhile, or belongs to another user
                continue
        return len(members)


def end_descendants(ancestor: int) -> None:
    """Force the end of all below a process that is not this one (Linux; elsewhere none is seen)."""
    start = time.monotonic()
    while sys.platform == "linux" and time.monotonic() - start < _GIVE_UP_S:
        members = _descendants(ancestor)
        if not members:
            return
        for process in members:
            try:
                os.kill(process, KILL)
            except OSError:  # it ended meanwhile, or belongs to another user
                continue
        time.sleep(_ROUND_S)


def _adopt_orphans() -> None:
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _descendants(ancestor: int) -> list[int]:
    """All living processes below one, parents first."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is slow to import
        if name.isdigit():
            parent = _living_parent(name)
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    found = [ancestor]
    for process in found:
        found.extend(children.get(process, ()))
    return found[1:]


def _living_parent(process: str) -> int | None:
    """From `/proc/PID/stat`: `pid (name) state parent …`, where the name may hold anything."""
    try:
        descriptor = os.open(f"/proc/{process}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        state, parent = os.read(descriptor, 4096).rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
    return None if state in {b"Z", b"X"} else int(parent)


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2]))
