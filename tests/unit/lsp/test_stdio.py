from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator

import pytest

from agentls.lsp.frames import BadFrame
from agentls.lsp.stdio import Inbox, Outbox


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read_end, write_end = os.pipe()
    yield read_end, write_end
    for fd in (read_end, write_end):
        with contextlib.suppress(OSError):
            os.close(fd)


async def read_all(fd: int, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        data += await asyncio.to_thread(os.read, fd, 1 << 20)
    return bytes(data)


async def test_bytes_arrive_in_order(pipe: tuple[int, int]) -> None:
    outbox = Outbox(pipe[1], on_broken=lambda: None)
    expected = b"".join(b"%d," % no for no in range(5000))
    for no in range(5000):
        outbox.write(b"%d," % no)
    assert await read_all(pipe[0], len(expected)) == expected
    async with asyncio.timeout(5):
        await outbox.drain(0)
    assert outbox.pending_bytes == 0


async def test_a_reader_that_stops_makes_the_writer_wait(pipe: tuple[int, int]) -> None:
    outbox = Outbox(pipe[1], on_broken=lambda: None)
    outbox.write(b"x" * 1_000_000)
    waiting = asyncio.create_task(outbox.drain())
    cancelled = asyncio.create_task(outbox.drain())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await read_all(pipe[0], 1_000_000)
    async with asyncio.timeout(5):
        await waiting


async def test_a_client_that_is_gone_is_noticed_once_and_nobody_waits(
    pipe: tuple[int, int],
) -> None:
    broken: asyncio.Queue[str] = asyncio.Queue()
    outbox = Outbox(pipe[1], on_broken=lambda: broken.put_nowait("broken"))
    os.close(pipe[0])
    outbox.write(b"x" * 1_000_000)
    async with asyncio.timeout(5):
        await outbox.drain(0)
        assert await broken.get() == "broken"
    outbox.write(b"more")
    assert outbox.pending_bytes == 0
    await outbox.drain(0)
    assert broken.empty()


async def test_frames_and_the_end_arrive_on_the_loop(pipe: tuple[int, int]) -> None:
    arrived: asyncio.Queue[object] = asyncio.Queue()
    silent, quiet = os.pipe()
    Inbox(
        pipe[0],
        Outbox(quiet, on_broken=lambda: None),
        on_frame=arrived.put_nowait,
        on_end=lambda: arrived.put_nowait("end"),
    )
    for part in (b"Content-Le", b"ngth: 2\r\n\r\n{", b"}junk\r\nContent-Length: 1\r\n\r\n5"):
        os.write(pipe[1], part)
    os.close(pipe[1])
    async with asyncio.timeout(5):
        got = [await arrived.get() for _ in range(4)]
    assert got == [b"{}", BadFrame("A header line could not be read."), b"5", "end"]
    for fd in (silent, quiet):
        os.close(fd)


async def test_nothing_more_is_read_while_the_replies_are_not(pipe: tuple[int, int]) -> None:
    count = 0
    reply_read, reply_write = os.pipe()
    outbox = Outbox(reply_write, on_broken=lambda: None)

    def reply(_: object) -> None:
        nonlocal count
        count += 1
        outbox.write(b"x" * (1 << 20))

    Inbox(pipe[0], outbox, on_frame=reply, on_end=lambda: None)
    frame = b"Content-Length: 60000\r\n\r\n" + b" " * 60000

    def send() -> None:
        for _ in range(120):
            os.write(pipe[1], frame)

    sending = asyncio.create_task(asyncio.to_thread(send))
    done, _ = await asyncio.wait([sending], timeout=0.5)
    assert not done
    assert outbox.pending_bytes < 60 << 20
    async with asyncio.timeout(20):
        await read_all(reply_read, 120 << 20)
        await sending
    assert count == 120
    for fd in (reply_read, reply_write):
        os.close(fd)
