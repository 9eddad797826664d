"""Keeps the garbage collector out of the way of the large imports at start-up."""

from __future__ import annotations

import gc


def pause() -> None:
    """No collection until `settle`.

    Importing lsprotocol alone builds about a thousand classes, none of which is ever garbage:
    scanning them over and over is a seventh of the time to `initialize`.
    """
    gc.disable()


def settle() -> None:
    """Collect once, never scan again what is left, and collect as usual from now on.

    Takes some tens of milliseconds, so it belongs behind the last large import.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
