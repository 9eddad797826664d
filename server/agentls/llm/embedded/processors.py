"""How many processors there are to compute on. Knows nothing of models."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def physical_cores() -> int:
    """Cores to compute on; -1 where llama.cpp knows better.

    Two threads on one core are slower than one, and so are more threads than this process may use.
    """
    if sys.platform != "linux":
        return -1
    allowed = os.sched_getaffinity(0)
    cores = {_siblings(cpu) for cpu in allowed}
    return max(1, min(len(cores), _quota() or len(cores)))


def _siblings(cpu: int) -> str:
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError):
        return str(cpu)


def _quota() -> int | None:
    """Processors that a container's limit allows, rounded up; None without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text("ascii").split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError, ZeroDivisionError):
        return None
