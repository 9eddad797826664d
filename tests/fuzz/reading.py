"""What every reader and decoder promises about any bytes in any slicing: one input, one verdict.

An input is three bytes and a stream: which target reads it, and the seed of its slicing. Knows
nothing of the fuzzer.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator

from agentls.core.errors import ModelError
from agentls.core.events import Event
from agentls.llm.wire.ndjson import NDJSONDecoder
from agentls.llm.wire.scheme import Reader
from agentls.llm.wire.sse import Frame, FrameTooLong, SSEDecoder
from support.stream_rules import numbered, problems
from support.wires.all_wires import WIRES

HEAD_BYTES = 3
_DECODERS: dict[str, Callable[[], SSEDecoder | NDJSONDecoder]] = {
    "sse": lambda: SSEDecoder(max_event_bytes=4096),
    "ndjson": lambda: NDJSONDecoder(max_event_bytes=4096),
}
_READERS: dict[str, Callable[[], Reader]] = {
    wire.name: functools.partial(wire.scheme().reader, {}) for wire in WIRES
}
TARGETS = sorted(_READERS) + sorted(_DECODERS)


class Finding(AssertionError):
    """A promise was broken."""


def headed(target: str, stream: bytes, seed: int = 0) -> bytes:
    """An input out of its parts."""
    return bytes([TARGETS.index(target)]) + seed.to_bytes(2, "big") + stream


def one_input(data: bytes) -> None:
    """Read one input.

    Raises:
        Finding: a promise was broken.
    """
    if len(data) < HEAD_BYTES:
        return
    target = TARGETS[data[0] % len(TARGETS)]
    seed, stream = int.from_bytes(data[1:HEAD_BYTES], "big"), data[HEAD_BYTES:]
    if target in _DECODERS:
        _judge_decoder(_DECODERS[target], stream, seed)
    else:
        judge_reader(_READERS[target], stream, seed)


def sliced(stream: bytes, seed: int) -> Iterator[bytes]:
    """The stream in slices of mixed sizes."""
    rng = random.Random(seed)  # noqa: S311 - not a secret
    longest = rng.choice((1, 3, 16, 200))
    at = 0
    while at < len(stream):
        size = rng.randint(0, longest) or 1
        yield stream[at : at + size]
        at += size


def judge_reader(make: Callable[[], Reader], stream: bytes, seed: int) -> None:
    """Whole and in slices the same events, which keep the rules; nothing else is raised.

    Raises:
        Finding: a promise was broken.
    """
    whole, broke = _read(make(), [stream])
    found = problems(whole, broke)
    if found:
        raise Finding(f"{found}: {whole}")
    events, error = _read(make(), sliced(stream, seed))
    if numbered(events) != numbered(whole):
        raise Finding(f"slices gave {events}, the whole {whole}")
    if str(error) != str(broke):
        raise Finding(f"slices ended with {error!r}, the whole with {broke!r}")


def _read(
    reader: Reader, slices: Iterator[bytes] | list[bytes]
) -> tuple[list[Event], ModelError | None]:
    events: list[Event] = []
    try:
        for piece in slices:
            for event in reader.feed(piece):
                events.append(event)
        for event in reader.close():
            events.append(event)
    except ModelError as error:
        return events, error
    return events, None


def _judge_decoder(
    make: Callable[[], SSEDecoder | NDJSONDecoder], stream: bytes, seed: int
) -> None:
    whole, too_long = _frames(make(), [stream])
    frames, also = _frames(make(), sliced(stream, seed))
    # What is too long in one piece may have been given in parts before.
    if not (too_long or also) and frames != whole:
        raise Finding(f"slices gave {frames}, the whole {whole}")
    if sum(len(frame.data or b"") for frame in frames) > len(stream):
        raise Finding("frames hold more than the stream")


def _frames(
    decoder: SSEDecoder | NDJSONDecoder, slices: Iterator[bytes] | list[bytes]
) -> tuple[list[Frame], bool]:
    frames: list[Frame] = []
    try:
        for piece in slices:
            frames += decoder.feed(piece)
        frames += decoder.close()
    except FrameTooLong:
        return frames, True
    return frames, False
