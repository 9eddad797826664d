"""The head of a GGUF file, whole, damaged and none."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.errors import SettingsError
from agentls.llm.embedded.gguf import Facts, read_facts


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def text_key(name: str, value: str) -> bytes:
    return string(name) + struct.pack("<I", 8) + string(value)


def number_key(name: str, value: int) -> bytes:
    return string(name) + struct.pack("<II", 4, value)


def texts_key(name: str, *values: str) -> bytes:
    head = string(name) + struct.pack("<IIQ", 9, 8, len(values))
    return head + b"".join(map(string, values))


def numbers_key(name: str, count: int) -> bytes:
    return string(name) + struct.pack("<IIQ", 9, 5, count) + bytes(4 * count)


def gguf(*keys: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys)


WHOLE = gguf(
    text_key("general.architecture", "qwen2"),
    texts_key("general.languages", "en", "zh"),
    numbers_key("general.numbers", 3),
    number_key("qwen2.block_count", 28),
    number_key("qwen2.context_length", 32768),
)


def facts(folder: Path, data: bytes) -> Facts:
    path = folder / "m.gguf"
    path.write_bytes(data)
    return read_facts(path)


def test_the_context_a_model_was_trained_for(tmp_path: Path) -> None:
    assert facts(tmp_path, WHOLE) == Facts(context_tokens=32768)


@pytest.mark.parametrize(
    "data",
    [
        b"GGUF",
        WHOLE[:-3],
        gguf(text_key("general.architecture", "x")),
        gguf(numbers_key("tokens", 20_000), number_key("x.context_length", 1)),
        b"GGUF" + b"\xff" * 200,
    ],
)
def test_a_head_that_does_not_say_leaves_it_open(tmp_path: Path, data: bytes) -> None:
    assert facts(tmp_path, data) == Facts(context_tokens=None)


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    assert isinstance(facts(tmp_path_factory.getbasetemp(), b"GGUF" + data), Facts)


@pytest.mark.parametrize("data", [b"", b"GGU", b"<html>", b"PK\3\4"])
def test_another_kind_of_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(SettingsError, match="is not a GGUF file"):
        facts(tmp_path, data)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    for path in (tmp_path / "pipe.gguf", Path(os.devnull), tmp_path):
        with pytest.raises(SettingsError, match="they are no file"):
            read_facts(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"cannot be read: No such file"):
        read_facts(tmp_path / "none.gguf")
    with pytest.raises(SettingsError, match="cannot be read"):
        read_facts(tmp_path)
