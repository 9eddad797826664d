from __future__ import annotations

import sys

import pytest

from agentls.workspace.capture import Capture


def test_short_output_is_whole() -> None:
    capture = Capture(30)
    for piece in (b"gr\xc3", b"\xbcn ", b"\xff!"):
        capture.add(piece)
    assert capture.text() == "grün \ufffd!"


@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_of_long_output_head_and_tail_stay(size: int) -> None:
    data = b"".join(b"%05d\n" % number for number in range(1000))
    capture = Capture(90)
    for start in range(0, len(data), size):
        capture.add(data[start : start + size])
    assert capture.total == 6000
    assert capture.text() == (
        f"{data[:60].decode()}\n[… 5910 bytes left out …]\n{data[-30:].decode()}"
    )


def test_cuts_fall_between_characters() -> None:
    capture = Capture(9)
    capture.add("é".encode() * 50)
    assert capture.text() == "ééé\n[… 91 bytes left out …]\né"


def test_memory_does_not_grow_with_the_output() -> None:
    capture = Capture(1000)
    for _ in range(10_000):
        capture.add(b"y\n" * 50)
    held = sum(sys.getsizeof(piece) for piece in capture._tail)
    assert capture.total == 1_000_000
    assert held < 5000
