"""What servers and proxies put into an event stream that is no event.

An error may come as bare JSON, as a field of its own or as plain text, over several lines. Owns
keeping such lines, which the format has to ignore; what they mean is for a reader to say.
"""

from __future__ import annotations

from agentls.llm.wire.sse import Frame, SSEDecoder

STRAY = b"\0stray"
"""The event of the frame that holds them, which no server can send."""

_FIELDS = (b"data", b"event", b"id", b"retry")
_MAX_BYTES = 64 * 1024


class StrayDecoder(SSEDecoder):
    """Events, and at the end one frame more with the lines that were none."""

    def __init__(self) -> None:
        """No line is kept."""
        super().__init__()
        self._stray = bytearray()

    def close(self) -> list[Frame]:
        """See `SSEDecoder.close`."""
        frames = super().close()
        stray = bytes(self._stray)
        self._stray.clear()
        return [*frames, Frame(STRAY, stray)] if stray else frames

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name in _FIELDS:
            super()._field(line)
        elif len(self._stray) < _MAX_BYTES:
            if name == b"error":  # as llama.cpp once said it
                line = value
            self._stray += line + b"\n"
