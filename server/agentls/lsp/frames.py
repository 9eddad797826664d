"""The base protocol's frames: a `Content-Length` header, an empty line, a body.

Pure and incremental: bytes in, bodies out, however the bytes were split. Knows nothing of JSON, and
nothing of where the bytes come from.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_BODY_BYTES = 256 * 1024 * 1024
_MAX_LINE_BYTES = 16 * 1024
_LONGEST_PARTIAL_HEADER_BYTES = 128
# Not anchored at the start: after a frame with a wrong length, the next header follows junk.
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*([0-9]{1,18})[ \t]*\Z", re.IGNORECASE)
_OTHER_HEADER = re.compile(rb"[A-Za-z][A-Za-z0-9-]*[ \t]*:")


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Bytes that are no frame; `reason` is a sentence. Reported once per disturbance."""

    reason: str


class FrameReader:
    """Cuts a byte stream into frame bodies and finds its way back after a bad frame."""

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        """Bodies longer than `max_body_bytes` are skipped and reported."""
        self._max_body_bytes = max_body_bytes
        self._buffer = bytearray()
        self._length: int | None = None
        self._body_bytes: int | None = None
        self._skip_bytes = 0
        self._lost = False

    def feed(self, data: bytes) -> list[bytes | BadFrame]:
        """Take more of the stream and give the bodies that are complete now."""
        self._buffer += data
        frames: list[bytes | BadFrame] = []
        while self._step(frames):
            pass
        return frames

    def _step(self, frames: list[bytes | BadFrame]) -> bool:
        """Consume one line, one body or what is there to skip; False when more bytes are needed."""
        if self._skip_bytes:
            skipped = min(self._skip_bytes, len(self._buffer))
            del self._buffer[:skipped]
            self._skip_bytes -= skipped
            return bool(self._buffer)
        if self._body_bytes is not None:
            return self._take_body(frames)
        end = self._buffer.find(b"\n")
        if end < 0:
            self._check_partial_line(frames)
            return False
        line = bytes(self._buffer[:end]).rstrip(b"\r")
        del self._buffer[: end + 1]
        if line:
            self._take_header(line, frames)
        else:
            self._end_headers(frames)
        return True

    def _take_body(self, frames: list[bytes | BadFrame]) -> bool:
        assert self._body_bytes is not None  # noqa: S101 - the caller looked
        if len(self._buffer) < self._body_bytes:
            return False
        frames.append(bytes(self._buffer[: self._body_bytes]))
        del self._buffer[: self._body_bytes]
        self._body_bytes = None
        return True

    def _take_header(self, line: bytes, frames: list[bytes | BadFrame]) -> None:
        if match := _LENGTH.search(line):
            self._length = int(match[1])
            if match.start() > 0:
                self._lose("Bytes between two frames were skipped.", frames)
        elif line.lower().startswith(b"content-length"):
            # The head of another message, whose sender waits for an answer of its own.
            self._length, self._lost = None, False
            self._lose("A Content-Length could not be read.", frames)
        elif not _OTHER_HEADER.match(line):
            self._length = None
            self._lose("A header line could not be read.", frames)

    def _end_headers(self, frames: list[bytes | BadFrame]) -> None:
        length, self._length = self._length, None
        if length is None:
            return
        self._lost = False
        if length > self._max_body_bytes:
            self._skip_bytes = length
            limit = self._max_body_bytes
            frames.append(BadFrame(f"A message of {length} bytes is over the limit of {limit}."))
        else:
            self._body_bytes = length

    def _check_partial_line(self, frames: list[bytes | BadFrame]) -> None:
        if len(self._buffer) > _MAX_LINE_BYTES:
            del self._buffer[:-_LONGEST_PARTIAL_HEADER_BYTES]
            self._lose("A header line is too long.", frames)
        elif self._buffer.startswith((b"{", b"[")):
            # A sender that forgot the header waits for an answer: tell it now.
            self._lose("A message without a Content-Length header was skipped.", frames)

    def _lose(self, reason: str, frames: list[bytes | BadFrame]) -> None:
        if not self._lost:
            self._lost = True
            frames.append(BadFrame(reason))
