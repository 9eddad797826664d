"""What bash makes of the inside of `$'…'`. Pure.

Close to the letter of `ansicstr` in bash's lib/sh/strtrans.c: other languages' escapes look alike
and are not the same, and each difference would hide a command from a deny rule.
"""

from __future__ import annotations

import re

_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x\{(?P<braced>[0-9a-fA-F]*)\}?|x(?P<hex>[0-9a-fA-F]{1,2})"
    r"|[uU](?P<code>(?<=u)[0-9a-fA-F]{1,4}|(?<=U)[0-9a-fA-F]{1,8})"
    r"|c(?P<control>\\\\|.)|(?P<simple>.))",
    re.DOTALL,
)
_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_MAX_CODE = 0x10FFFF


def decode(inside: str) -> str:
    """The text between the quotes as bash passes it on, which ends at the first NUL."""
    made = bytearray()
    at = 0
    for match in _ESCAPE.finditer(inside):
        made += _bytes(inside[at : match.start()])
        piece = _escaped(match)
        if piece == b"\0":
            return _text(made)
        made += piece
        at = match.end()
    return _text(made + _bytes(inside[at:]))


def _escaped(match: re.Match[str]) -> bytes:
    octal, braced, digits, code, control, simple = match.groups()
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if braced is not None:
        return bytes([int(braced[-2:] or "0", 16)])
    if digits is not None:
        return bytes([int(digits, 16)])
    if code is not None:
        return _bytes(chr(min(int(code, 16), _MAX_CODE)))
    if control is not None:
        first, *rest = _bytes(control.removesuffix("\\") or control)
        return bytes([0x7F if control == "?" else first & 0x1F, *rest])
    return _bytes(_SIMPLE.get(simple, match[0]))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(made: bytes | bytearray) -> str:
    return bytes(made).decode("utf-8", "replace")
