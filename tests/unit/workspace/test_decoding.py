from __future__ import annotations

import codecs
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.errors import EditRefused
from agentls.workspace.decoding import Decoded, Undecodable, decode, encode

BOM = codecs.BOM_UTF8
LE = codecs.BOM_UTF16_LE
BE = codecs.BOM_UTF16_BE


@pytest.mark.parametrize(
    ("data", "decoded"),
    [
        (b"", Decoded("")),
        (b"plain\x0c\x1b[0m\n", Decoded("plain\x0c\x1b[0m\n")),
        ("grün 🙂".encode(), Decoded("grün 🙂")),
        (BOM + b"x", Decoded("x", "utf-8", BOM)),
        (BOM + BOM + b"x", Decoded("\ufeffx", "utf-8", BOM)),
        (LE + "grün".encode("utf-16-le"), Decoded("grün", "utf-16-le", LE)),
        (BE + "grün".encode("utf-16-be"), Decoded("grün", "utf-16-be", BE)),
        (b"caf\xe9", Decoded("café", "cp1252")),
        ("„Spaß“ – schön".encode("cp1252"), Decoded("„Spaß“ – schön", "cp1252")),
    ],
)
def test_text_is_read_and_given_back_byte_for_byte(data: bytes, decoded: Decoded) -> None:
    assert decode(data) == decoded
    assert encode(decoded.text, decoded) == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a\0b", "it is a binary file"),
        (codecs.BOM_UTF32_LE + "x".encode("utf-32-le"), "it is a binary file"),
        (LE + b"\x00\xd8", "it is marked as UTF-16 but is damaged"),
        (LE + b"x", "it is marked as UTF-16 but is damaged"),
        (BOM + b"\xff", "it is marked as UTF-8 but is damaged"),
        ("grün".encode() + b" \xe9", "it mixes UTF-8 with bytes that are not UTF-8"),
        ("日本語、テキスト。".encode("shift_jis"), "it is neither UTF-8, UTF-16 nor Windows-1252"),
        (b"\xe9\x01\x02", "it is neither UTF-8, UTF-16 nor Windows-1252"),
    ],
)
def test_what_cannot_be_given_back_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(Undecodable) as error:
        decode(data)
    assert str(error.value) == reason


@pytest.mark.parametrize(
    ("text", "like", "reason"),
    [
        ("a\n🙂", decode(b"\xe9"), "which cannot hold U+1F642 (line 2 of the new text)"),
        ("\ud800", decode(b"x"), "which cannot hold U+D800 (line 1"),
        ("Ã©", decode(b"\xe9"), "would be read as something else"),
        ("a\0", decode(b"x"), "it is a binary file then"),
        ("\x01é", decode(b"\xe9"), "nor Windows-1252 then"),
    ],
)
def test_text_that_would_not_come_back_is_refused(text: str, like: Decoded, reason: str) -> None:
    with pytest.raises(EditRefused, match=re.escape(reason)):
        encode(text, like)


def test_a_mark_the_model_repeats_is_written_once() -> None:
    assert encode("\ufeffnew", decode(BOM + b"old")) == BOM + b"new"


@given(st.binary(max_size=60))
def test_any_bytes_come_back_or_are_refused(data: bytes) -> None:
    try:
        decoded = decode(data)
    except Undecodable:
        return
    assert encode(decoded.text, decoded) == data


@given(st.text(alphabet="aä€ß“»\r\n", max_size=40), st.sampled_from(["utf-8", "cp1252"]))
def test_any_text_reads_back_as_written(text: str, encoding: str) -> None:
    like = Decoded("", encoding)
    try:
        data = encode(text, like)
    except EditRefused:
        assert encoding == "cp1252"
        return
    assert decode(data).text == text
