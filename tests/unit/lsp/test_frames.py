from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agentls.lsp.frames import BadFrame, FrameReader


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def read(*chunks: bytes, limit: int = 1000) -> list[bytes | str]:
    reader = FrameReader(max_body_bytes=limit)
    frames = [found for data in chunks for found in reader.feed(data)]
    return [found.reason if isinstance(found, BadFrame) else found for found in frames]


@given(
    bodies=st.lists(st.binary(max_size=40), max_size=6),
    cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=12),
)
def test_frames_come_out_whole_however_the_bytes_are_split(
    bodies: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(map(frame, bodies))
    edges = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    chunks = [stream[a:b] for a, b in itertools.pairwise(edges)]
    assert read(*chunks) == bodies


def test_header_names_ignore_case_and_other_headers_are_skipped() -> None:
    stream = (
        b"content-length:2\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{}"
        b"Content-Type: x\nCONTENT-LENGTH : 4 \n\nnull"
    )
    assert read(stream) == [b"{}", b"null"]


def test_a_length_too_long_is_skipped_and_reported_and_the_next_message_read() -> None:
    stream = b"Content-Length: 1001\r\n\r\n" + b"x" * 1001 + frame(b"{}")
    whole = read(stream)
    assert whole == ["A message of 1001 bytes is over the limit of 1000.", b"{}"]
    assert read(*(stream[at : at + 7] for at in range(0, len(stream), 7))) == whole


def test_wrong_lengths_are_reported_once_and_the_next_message_is_found() -> None:
    for header in (b"Content-Length: -5", b"Content-Length: five", b"Content-Length: 0x10"):
        stream = header + b'\r\n\r\n{"id":1}\n{"id":2}' + frame(b"{}")
        assert read(stream) == ["A Content-Length could not be read.", b"{}"]
    # Shorter than the body: what is left over stands before the next header.
    assert read(b'Content-Length: 2\r\n\r\n{}{"id":1}' + frame(b"null")) == [
        b"{}",
        "Bytes between two frames were skipped.",
        b"null",
    ]


def test_a_message_without_a_header_is_reported_at_once() -> None:
    assert read(b'{"jsonrpc":"2.0","id":1}') == [
        "A message without a Content-Length header was skipped."
    ]


def test_an_endless_header_line_is_dropped_and_costs_no_memory() -> None:
    reader = FrameReader()
    found = [one for _ in range(100) for one in reader.feed(b"x" * 10_000)]
    assert found == [BadFrame("A header line is too long.")]
    assert len(reader._buffer) < 20_000
    assert reader.feed(b"\r\n" + frame(b"{}")) == [b"{}"]


def test_each_disturbance_is_reported() -> None:
    assert read(b"junk\r\n" + frame(b"{}") + b"junk\r\n" + frame(b"[]")) == [
        "A header line could not be read.",
        b"{}",
        "A header line could not be read.",
        b"[]",
    ]
