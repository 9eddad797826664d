"""Keeps the garbage collector out of the way of large imports."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_gc() -> Iterator[None]:
    """No collection while the block runs; what it made is then never scanned again.

    Importing lsprotocol alone builds about a thousand classes, none of which is ever garbage:
    scanning them over and over is a tenth of the start-up time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
