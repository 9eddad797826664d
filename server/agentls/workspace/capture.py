"""Keeps the start and the end of output of any length, in constant memory."""

from __future__ import annotations

import codecs
from collections import deque


class Capture:
    """Collects bytes; of more than `max_bytes` only the first two thirds and the last third."""

    def __init__(self, max_bytes: int) -> None:
        """Memory use stays below twice `max_bytes`."""
        self._head = bytearray()
        self._head_bytes = max_bytes * 2 // 3
        self._tail: deque[bytes] = deque()
        self._tail_bytes = max_bytes - self._head_bytes
        self._held = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next piece of output."""
        self.total += len(data)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        data = data[-self._tail_bytes :]
        if not data:
            return
        self._tail.append(data)
        self._held += len(data)
        while self._held - len(self._tail[0]) >= self._tail_bytes:
            self._held -= len(self._tail.popleft())

    def text(self) -> str:
        """What was kept, decoded, with a note in place of what was not."""
        tail = b"".join(self._tail)[-self._tail_bytes :]
        left_out = self.total - len(self._head) - len(tail)
        if left_out == 0:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
        start = next((at for at, byte in enumerate(tail[:4]) if byte & 0xC0 != 0x80), 0)
        end = tail[start:].decode("utf-8", "replace")
        return f"{head}\n[… {left_out} bytes left out …]\n{end}"
