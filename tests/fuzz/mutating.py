"""Changes streams as wrong servers would: in what their frames say, not in their bytes.

Pure: the same seed gives the same stream. Knows how frames are told apart and nothing of what is in
them.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

_ODD: tuple[Any, ...] = (
    None, "", [], {}, 0, -1, 1, True, False, 1.5, 10**30, "x", "\ud83d", "\udc00", " ", "[DONE]",
    [{}], [None], {"error": {"message": "busy"}}, {"a": 1}, '{"a": 1}', '{"a"', "length", "stop",
    "error", float("nan"),
)  # fmt: skip


def mutated(stream: bytes, seed: int) -> bytes:
    """The stream with a few changes to its frames."""
    rng = random.Random(seed)  # noqa: S311 - not a secret
    is_sse = bool(re.search(rb"(?m)^data:", stream))
    end = b"\n\n" if is_sse else b"\n"
    frames = [frame for frame in stream.replace(b"\r\n", b"\n").split(end) if frame.strip()]
    for _ in range(rng.choice((1, 1, 2, 4))):
        if frames:
            _change(frames, rng)
    return end.join([*frames, b""])


def _change(frames: list[bytes], rng: random.Random) -> None:
    at, other = rng.randrange(len(frames)), rng.randrange(len(frames))
    match rng.randrange(8):
        case 0:
            del frames[at]
        case 1:
            frames.insert(other, frames[at])
        case 2:
            frames[at], frames[other] = frames[other], frames[at]
        case _:
            frames[at] = _in_frame(frames[at], rng)


def _in_frame(frame: bytes, rng: random.Random) -> bytes:
    head, mark, data = frame.rpartition(b"data: ")
    try:
        value = json.loads(data)
    except ValueError:
        return frame
    holders = list(_holders(value))
    if holders:
        _in_value(rng.choice(holders), rng)
    return head + mark + json.dumps(value).encode()


def _holders(value: Any) -> list[Any]:
    """All objects and lists in a value that are not empty."""
    if not isinstance(value, dict | list) or not value:
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [value, *(holder for each in inner for holder in _holders(each))]


def _in_value(holder: Any, rng: random.Random) -> None:
    key = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    value = holder[key]
    match rng.randrange(6):
        case 0:
            del holder[key]
        case 1:
            holder[key] = [value, value]
        case 2 if isinstance(value, str) and value:
            cut = rng.randrange(len(value))
            holder[key] = rng.choice(
                (value[:cut], value * 2, value[:cut] + "\ud83d", value.upper())
            )
        case 3 if isinstance(value, int):
            holder[key] = value + rng.choice((-1, 1, 2, 10))
        case _:
            holder[key] = rng.choice(_ODD)
