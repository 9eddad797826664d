"""Keeps other processes of the same user out of this one, which holds keys.

A command that the agent runs belongs to the same user. Given a clean environment it could still
read the keys out of this process: from `/proc/PID/environ` and `/proc/PID/mem`, or with a debugger.
Standard library only, and light: every command calls this first.
"""

from __future__ import annotations

import sys

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4


def forbid_inspection() -> bool:
    """Let nobody but root look into this process, and leave no core file; whether that holds.

    False where the system has no such switch: only Linux has. Children that run another program are
    open again and must do the same for themselves. Nothing protects what the process that started
    this one still has in its own environment.
    """
    _leave_no_core_file()
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return False
    nothing = ctypes.c_ulong(0)
    refused = prctl(_PR_SET_DUMPABLE, nothing, nothing, nothing, nothing) != 0
    return not refused and prctl(_PR_GET_DUMPABLE, nothing, nothing, nothing, nothing) == 0


def _leave_no_core_file() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    # The hard limit stays: a command that wants a core file of its own may still ask for it.
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
