"""How deeply data from outside is nested: parsers take more than those who use it. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def deeper_than(value: object, levels: int) -> bool:
    """Whether lists and mappings are nested more than `levels` deep."""
    if isinstance(value, Mapping):
        inner = list(value.values())
    elif isinstance(value, list | tuple):
        inner = list(value)
    else:
        return False
    return levels == 0 or any(deeper_than(each, levels - 1) for each in inner)
