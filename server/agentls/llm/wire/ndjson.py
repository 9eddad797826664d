"""Newline-delimited JSON out of raw bytes, however they are cut.

Owns where a line ends: at LF, CRLF or CR only. Text decoders also split at form feeds, NEL and
U+2028, which JSON may hold unescaped. What a line means is its reader's to say, and its bytes are
never decoded here. A first line with nothing but a bracket begins one document over several lines,
as gateways write their errors.
"""

from __future__ import annotations

from agentls.llm.wire.sse import Frame, FrameTooLong

_BOM = b"\xef\xbb\xbf"


class NDJSONDecoder:
    """Incremental decoder of one stream; a `llm.wire.reading.Framing`. Blank lines are nothing."""

    __slots__ = ("_head", "_held", "_is_document", "_max", "_tail")

    def __init__(self, *, max_event_bytes: int = 32 * 1024 * 1024) -> None:
        """`max_event_bytes` bounds the memory one line may take."""
        self._max = max_event_bytes
        self._head: bytes | None = b""  # None once a byte order mark can no longer come
        self._tail: list[bytes] = []  # pieces of an unfinished line
        self._held = 0  # bytes kept in `_tail`
        self._is_document: bool | None = None  # None until the first line came

    def feed(self, data: bytes) -> list[Frame]:
        """A frame for each line that is complete with these bytes.

        Raises:
            FrameTooLong: the decoder cannot be used any further.
        """
        data = self._without_bom(data)
        if b"\r" in data:  # CRLF becomes a line and a blank one
            data = data.replace(b"\r", b"\n")
        end = data.rfind(b"\n")
        if end < 0 or self._is_document:
            self._keep(data)
            return []
        whole = b"".join((*self._tail, data[:end]))
        self._tail, self._held = [], 0
        lines = whole.split(b"\n")
        if self._is_document is None and (text := whole.lstrip()):
            self._is_document = text.partition(b"\n")[0].strip() in (b"{", b"[")
            if self._is_document:
                self._keep(whole + data[end:])
                return []
        if len(whole) > self._max and max(map(len, lines)) > self._max:
            raise self._too_long()
        self._keep(data[end + 1 :])
        return _frames(lines)

    def close(self) -> list[Frame]:
        """The last line, if no line end closed it."""
        line = b"".join((self._head or b"", *self._tail))
        self._head, self._tail, self._held = None, [], 0
        return _frames([line])

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._tail.append(piece)
            self._held += len(piece)
            if self._held > self._max:
                raise self._too_long()

    def _too_long(self) -> FrameTooLong:
        return FrameTooLong(f"one line is longer than {self._max} bytes")

    def _without_bom(self, data: bytes) -> bytes:
        if self._head is None:
            return data
        data = self._head + data
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._head = data
            return b""
        self._head = None
        return data.removeprefix(_BOM)


def _frames(lines: list[bytes]) -> list[Frame]:
    return [Frame(b"", line) for line in lines if line.strip(b" \t")]
