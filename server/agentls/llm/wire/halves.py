r"""Characters that a server cut in half.

Servers that escape JSON as ASCII may send 😀 as `"\ud83d"` in one chunk and `"\ude00"` in the
next. A half that stays alone becomes U+FFFD: no UTF-8 can carry it.
"""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def without_halves(text: str) -> str:
    """The text with U+FFFD for each lone surrogate: no UTF-8 can carry one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Mender:
    """Joins the halves of characters across chunks."""

    def __init__(self) -> None:
        """Nothing is held."""
        self._half = ""

    def feed(self, text: str) -> str:
        """Text to pass on now; a first half at the end waits for the second."""
        if not self._half and (text.isascii() or not _SURROGATE.search(text)):
            return text
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return without_halves(text)

    def close(self) -> str:
        """What is left at the end."""
        half, self._half = self._half, ""
        return "\ufffd" if half else ""
