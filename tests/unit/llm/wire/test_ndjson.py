from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.llm.wire.ndjson import NDJSONDecoder
from agentls.llm.wire.sse import Frame, FrameTooLong


def lines(*slices: bytes) -> list[bytes | None]:
    decoder = NDJSONDecoder()
    found = [frame for piece in slices for frame in decoder.feed(piece)] + decoder.close()
    assert all(frame.event == b"" for frame in found)
    return [frame.data for frame in found]


def byte_by_byte(stream: bytes) -> list[bytes]:
    return [stream[at : at + 1] for at in range(len(stream))]


FOREIGN = "\u2028\u2029\x85".encode() + b"\x0b\x0c\x1c\x1d\x1e"


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b'{"a":1}\n{"b":2}\n', [b'{"a":1}', b'{"b":2}']),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"a\rb\r", [b"a", b"b"]),
        (b"a\r\n\rb\n\r\nc", [b"a", b"b", b"c"]),
        (b"a\n\n \t \n\r\n\nb", [b"a", b"b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [b"a", b"\xef\xbb\xbfb"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb", [b"\xef\xbb"]),
        (b" a \n", [b" a "]),
        (FOREIGN + b"\n" + FOREIGN, [FOREIGN, FOREIGN]),
        (b"\xff\xfe\n", [b"\xff\xfe"]),
        (b"no end", [b"no end"]),
        (b"", []),
        (b"\n\r\n \n", []),
    ],
)
def test_lines(stream: bytes, expected: list[bytes]) -> None:
    assert lines(stream) == expected
    assert lines(*byte_by_byte(stream)) == expected


PIECES = st.sampled_from(
    [b"x", b'{"a": "\xc3\xa9"}', b"\n", b"\r", b"\r\n", b" ", b"\xef\xbb\xbf", b"\xef", FOREIGN]
)


@given(st.lists(PIECES, max_size=30).map(b"".join), st.lists(st.integers(0, 200), max_size=12))
def test_any_slicing_gives_the_same_lines(stream: bytes, cuts: list[int]) -> None:
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    slices = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert lines(*slices) == lines(stream) == lines(*byte_by_byte(stream))


@given(
    st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none()), max_size=6),
    st.sampled_from(["\n", "\r\n", "\r", "\n\n \n"]),
)
def test_what_was_written_is_read(values: list[dict[str, object]], end: str) -> None:
    stream = "".join(json.dumps(value, ensure_ascii=False) + end for value in values)
    data = stream.encode("utf-8", "surrogatepass")
    found = [line.decode("utf-8", "surrogatepass") for line in lines(data) if line is not None]
    assert [json.loads(line) for line in found] == values


@pytest.mark.parametrize("slices", [[b"x" * 11], [b"x" * 6] * 2, [b"x" * 11 + b"\na\n"]])
def test_a_line_has_a_limit_however_it_comes(slices: list[bytes]) -> None:
    decoder = NDJSONDecoder(max_event_bytes=10)
    with pytest.raises(FrameTooLong, match="one line is longer than 10 bytes"):
        for piece in slices:
            decoder.feed(piece)


def test_the_limit_is_for_one_line_and_not_for_many() -> None:
    decoder = NDJSONDecoder(max_event_bytes=10)
    ten = b"x" * 10
    assert decoder.feed((ten + b"\n") * 5 + b"y" * 4) == [Frame(b"", ten)] * 5
    assert decoder.feed(b"y" * 6) == []
    assert decoder.feed(b"\n") == [Frame(b"", b"y" * 10)]
