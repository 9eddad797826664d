from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.llm.wire.sse import Frame, FrameTooLong, SSEDecoder

PING = Frame(b"", None)


def frames(*slices: bytes) -> list[Frame]:
    decoder = SSEDecoder()
    found = [frame for piece in slices for frame in decoder.feed(piece)]
    return found + decoder.close()


def data(*values: bytes) -> list[Frame]:
    return [Frame(b"", value) for value in values]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\n\ndata: b\n\n", data(b"a", b"b")),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", data(b"a", b"b")),
        (b"data: a\r\rdata: b\r\r", data(b"a", b"b")),
        (b"data: a\r\n\rdata: b\n\r\n", data(b"a", b"b")),
        (b"data:a\n\ndata:  b\n\n", data(b"a", b" b")),
        (b"data: a\ndata: b\ndata:\n\n", data(b"a\nb\n")),
        (b"data\n\n", data(b"")),
        (b": ping\n\n:\n\n", [PING, PING]),
        (b"event: error\ndata: x\n\ndata: y\n\n", [Frame(b"error", b"x"), Frame(b"", b"y")]),
        (b"event: lost\n\ndata: y\n\n", data(b"y")),
        (b"id: 1\nretry: 5\nfoo: bar\ndata: x\n\n", data(b"x")),
        (b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", data(b"a")),
        (b"data: \x0c\x0b\x1c\x1d\x1e\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\n\n",
         data(b"\x0c\x0b\x1c\x1d\x1e\xc2\x85\xe2\x80\xa8\xe2\x80\xa9")),
        (b"data: \xff\xfe\n\n", data(b"\xff\xfe")),
        (b"data: [DONE]", data(b"[DONE]")),
        (b"data: a\ndata: b", data(b"a\nb")),
        (b"", []),
        (b"\n\n\n", []),
        (b"\xef\xbb", []),
    ],
)  # fmt: skip
def test_frames(stream: bytes, expected: list[Frame]) -> None:
    assert frames(stream) == expected
    assert frames(*(stream[at : at + 1] for at in range(len(stream)))) == expected


LINES = st.sampled_from(
    [
        b"data: x",
        b"data:y",
        b'data: {"a": "\xc3\xa9"}',
        b"",
        b"",
        b": c",
        b"event: e",
        b"\xef\xbb\xbf",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])


@given(
    st.lists(st.tuples(LINES, ENDS), max_size=12),
    st.lists(st.integers(0, 80), max_size=8),
)
def test_any_slicing_gives_the_same_frames(
    parts: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    stream = b"".join(line + end for line, end in parts)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    slices = [stream[a:b] for a, b in itertools.pairwise(edges)]
    slices.insert(len(slices) // 2, b"")
    assert frames(*slices) == frames(stream)


@given(st.lists(st.tuples(LINES, ENDS), max_size=12))
def test_frames_equal_a_plain_reading_of_the_specification(
    parts: list[tuple[bytes, bytes]],
) -> None:
    stream = b"".join(line + end for line, end in parts) + b"\n\n"
    assert frames(stream) == _by_the_book(stream)


def _by_the_book(stream: bytes) -> list[Frame]:
    text = stream.removeprefix(b"\xef\xbb\xbf").decode()
    found: list[Frame] = []
    event, held = "", ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        name, colon, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if held:
                found.append(Frame(event.encode(), held.removesuffix("\n").encode()))
            event, held = "", ""
        elif colon and not name:
            found.append(PING)
        elif name == "event":
            event = value
        elif name == "data":
            held += value + "\n"
    return found


def test_an_endless_line_is_refused() -> None:
    decoder = SSEDecoder(max_event_bytes=1000)
    with pytest.raises(FrameTooLong):
        for _ in range(300):
            decoder.feed(b"data")


def test_an_endless_event_is_refused() -> None:
    decoder = SSEDecoder(max_event_bytes=1000)
    with pytest.raises(FrameTooLong):
        for _ in range(300):
            decoder.feed(b"data:\n")


def test_a_long_stream_of_short_events_is_not() -> None:
    decoder = SSEDecoder(max_event_bytes=1000)
    found = [frame for _ in range(300) for frame in decoder.feed(b"data: abc\n\n: p\n\ndata: d")]
    assert len(found) == 600
    decoder.feed(b"\n\nda")
    found = [frame for _ in range(300) for frame in decoder.feed(b"ta: abc\n\nda")]
    assert len(found) == 300
