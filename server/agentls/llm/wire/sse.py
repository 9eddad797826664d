"""Server-sent events out of raw bytes, however they are cut.

Owns the framing of https://html.spec.whatwg.org/multipage/server-sent-events.html and nothing of
what the events mean. Lines end at CRLF, LF or CR only: text decoders also split at form feeds, NEL
and U+2028, which tears JSON apart. Data stays bytes, so a broken character is an error of whoever
decodes it and is never replaced here.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_LF, _COLON = 0x0A, 0x3A


class Frame(NamedTuple):
    """One event, or a comment when `data` is None. `event` is empty unless the server named it."""

    event: bytes
    data: bytes | None


_COMMENT = Frame(b"", None)


class FrameTooLong(ValueError):
    """One event holds more bytes than any reply should: the server is not to be trusted."""


class SSEDecoder:
    """Incremental decoder of one stream; feeding any slicing of it gives the same frames."""

    __slots__ = ("_data", "_event", "_head", "_held", "_max", "_skip_lf", "_tail")

    def __init__(self, *, max_event_bytes: int = 32 * 1024 * 1024) -> None:
        """`max_event_bytes` bounds the memory one event may take."""
        self._max = max_event_bytes
        self._head: bytes | None = b""  # None once a byte order mark can no longer come
        self._skip_lf = False  # the last slice ended with CR: an LF now belongs to it
        self._tail: list[bytes] = []  # pieces of an unfinished line
        self._held = 0  # bytes kept in `_tail` and `_data`
        self._event = b""
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        """Frames that are complete with these bytes.

        Raises:
            FrameTooLong: the decoder cannot be used any further.
        """
        data = self._without_bom(data)
        if self._skip_lf and data:
            self._skip_lf = False
            if data[0] == _LF:
                data = data[1:]
        if not data:
            return []
        if b"\r" in data:
            self._skip_lf = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._held += len(data)
        end = data.rfind(b"\n")
        if end < 0:
            self._tail.append(data)
            self._check()
            return []
        lines = b"".join((*self._tail, data[:end])).split(b"\n")
        rest = data[end + 1 :]
        self._tail = [rest] if rest else []
        frames = self._lines(lines)
        if frames or not self._data:  # what is still held came with these bytes
            self._held = len(rest) + sum(map(len, self._data))
        self._check()
        return frames

    def close(self) -> list[Frame]:
        """Frames left at the end of the stream, although no empty line closed them.

        The specification drops them; servers do end with `data: [DONE]` and no line end at all.
        """
        lines = [b"".join(self._tail), b""]
        self._tail = []
        return self._lines(lines)

    def _without_bom(self, data: bytes) -> bytes:
        if self._head is None:
            return data
        data = self._head + data
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._head = data
            return b""
        self._head = None
        return data.removeprefix(_BOM)

    def _check(self) -> None:
        if self._held > self._max:
            raise FrameTooLong(f"one event is longer than {self._max} bytes")

    def _lines(self, lines: list[bytes]) -> list[Frame]:
        frames: list[Frame] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if data:
                    frames.append(
                        Frame(self._event, data[0] if len(data) == 1 else b"\n".join(data))
                    )
                    data.clear()
                self._event = b""
            elif line[0] == _COLON:
                frames.append(_COMMENT)
            else:
                self._field(line)
        return frames

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"event":
            self._event = value.removeprefix(b" ")
        elif name == b"data":  # a line "data" without a colon
            self._data.append(b"")
