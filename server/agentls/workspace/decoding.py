"""Bytes of a text file to text and back, without changing a byte that was not edited.

The rule: UTF-16 when the file starts with its byte order mark; else UTF-8, with or without mark;
else Windows-1252, unless the bytes look like damaged UTF-8 or like no text at all. Whatever does
not fit is refused. Every form accepted here gives exactly the same bytes back. Knows nothing of
files.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from agentls.core.errors import EditRefused

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ASCII = bytes(range(0x80))
_MULTIBYTE = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_CONTROL = re.compile("[\x00-\x08\x0e-\x19\x1b-\x1f\x7f-\x9f]")
"""Never found in Windows-1252 text; tab, line ends, form feed and the old end mark ^Z are."""

_NAMES = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": "Windows-1252",
}


class Undecodable(ValueError):
    """The bytes are not text in a form that can be given back exactly; the message says why."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text, without byte order mark, and what is needed to write text like it."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""


def decode(data: bytes) -> Decoded:
    """Decode a whole file.

    Raises:
        Undecodable: it is binary, damaged, or in another encoding.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _marked(data, mark, encoding)
    if b"\0" in data:
        raise Undecodable("it is a binary file")
    try:
        return Decoded(data.decode("utf-8"))
    except UnicodeDecodeError:
        return _legacy(data)


def encode(text: str, like: Decoded) -> bytes:
    """Encode text the way `like` was encoded.

    Raises:
        EditRefused: the encoding lacks a character, or the result would be read as something else.
    """
    if like.mark and not like.text.startswith("\ufeff"):
        text = text.removeprefix("\ufeff")
    name = _NAMES[like.encoding]
    try:
        data = like.mark + text.encode(like.encoding)
    except UnicodeEncodeError as error:
        line_no = text.count("\n", 0, error.start) + 1
        raise EditRefused(
            f"The file is in {name}, which cannot hold U+{ord(text[error.start]):04X} "
            f"(line {line_no} of the new text).",
            hint=f"Use characters that {name} has.",
        ) from None
    try:
        again = decode(data).text
    except Undecodable as error:
        raise EditRefused(f"The new text cannot be written as {name}: {error} then.") from None
    if again != (text if like.mark else text.removeprefix("\ufeff")):
        raise EditRefused(f"The new text written as {name} would be read as something else.")
    return data


def _marked(data: bytes, mark: bytes, encoding: str) -> Decoded:
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        raise Undecodable(f"it is marked as {_NAMES[encoding]} but is damaged") from None
    if "\0" in text:
        raise Undecodable("it is a binary file")
    return Decoded(text, encoding, mark)


def _legacy(data: bytes) -> Decoded:
    """Windows-1252, if that is what the bytes look like.

    Text in it may hold a pair that happens to be valid UTF-8 (a German sharp s before a closing
    quote). Where such sequences are not outnumbered, the file is UTF-8 with something wrong in
    it, and writing Windows-1252 into it would make it worse.
    """
    sequences = _MULTIBYTE.findall(data)
    stray = len(data.translate(None, _ASCII)) - sum(map(len, sequences))
    if len(sequences) >= stray:
        raise Undecodable("it mixes UTF-8 with bytes that are not UTF-8")
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        text = "\0"
    if _CONTROL.search(text):
        raise Undecodable("it is neither UTF-8, UTF-16 nor Windows-1252")
    return Decoded(text, "cp1252")
