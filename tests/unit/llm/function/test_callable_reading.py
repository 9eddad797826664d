"""A function that blocks or never ends: nothing freezes, leaving is at once, all is closed."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator

import pytest

from agentls.core.events import BlockStart, Event
from agentls.core.requests import ModelRequest
from agentls.llm.function.model import CallableModel
from support.pool_members import HI, ask
from support.proofs import proving
from support.reply_events import FINISHED, text


async def coroutine(request: ModelRequest) -> str:
    return "hello"


def lines(request: ModelRequest) -> Iterator[str]:
    yield from ("hel", "lo")


async def first_event(model: CallableModel) -> AsyncGenerator[Event, None]:
    stream = model.stream(HI)
    assert await anext(stream) == BlockStart(index=0, block="text")
    return stream


@proving("custom", "cancel", peer="in process")
async def test_leaving_an_async_generator_closes_it() -> None:
    left = asyncio.Event()

    async def function(request: ModelRequest) -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
        finally:
            left.set()

    stream = await first_event(CallableModel(function))
    await stream.aclose()
    assert left.is_set()


async def test_leaving_an_iterator_closes_it_in_its_own_thread() -> None:
    seen: list[int] = []

    def function(request: ModelRequest) -> Iterator[str]:
        seen.append(threading.get_ident())
        try:
            while True:
                seen.append(threading.get_ident())
                yield "x"
        finally:
            seen.append(threading.get_ident())

    stream = await first_event(CallableModel(function))
    await stream.aclose()
    assert len(seen) == 3
    assert set(seen) == {seen[0]} != {threading.get_ident()}


async def test_a_blocked_function_freezes_nothing_and_is_not_waited_for() -> None:
    inside, go, out = threading.Event(), threading.Event(), threading.Event()

    def function(request: ModelRequest) -> str:
        inside.set()
        go.wait(30)
        out.set()
        return "too late"

    task = asyncio.create_task(ask(CallableModel(function), HI))
    await asyncio.to_thread(inside.wait, 30)  # the loop goes on meanwhile
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not out.is_set()
    go.set()
    assert await asyncio.to_thread(out.wait, 30)


async def test_a_blocked_iterator_is_closed_as_soon_as_it_comes_back() -> None:
    inside, go, closed = threading.Event(), threading.Event(), threading.Event()

    def function(request: ModelRequest) -> Generator[str, None, None]:
        try:
            yield "hel"
            inside.set()
            go.wait(30)
            yield "lo"
            raise AssertionError("read on after it was left")
        finally:
            closed.set()

    task = asyncio.create_task(ask(CallableModel(function), HI))
    await asyncio.to_thread(inside.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not closed.is_set()
    go.set()
    assert await asyncio.to_thread(closed.wait, 30)


async def test_a_coroutine_that_comes_too_late_is_closed() -> None:
    # One that is neither awaited nor closed is a warning, and warnings are errors here.
    inside, go = threading.Event(), threading.Event()

    def function(request: ModelRequest) -> object:
        inside.set()
        go.wait(30)
        return coroutine(request)

    before = threading.active_count()
    task = asyncio.create_task(ask(CallableModel(function), HI))
    await asyncio.to_thread(inside.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    threads = [each for each in threading.enumerate() if each.name == "agentls-custom-model"]
    go.set()
    for thread in threads:
        await asyncio.to_thread(thread.join, 30)
    await asyncio.sleep(0)
    assert threading.active_count() <= before + 2  # the pool that this test itself waits in


async def test_no_thread_is_left_behind() -> None:
    await asyncio.gather(*(ask(CallableModel(lines), HI) for _ in range(20)))
    threads = [each for each in threading.enumerate() if each.name == "agentls-custom-model"]
    for thread in threads:
        await asyncio.to_thread(thread.join, 30)
        assert not thread.is_alive()


async def test_an_iterator_that_fails_to_close_spoils_nothing() -> None:
    class Stubborn:
        def __iter__(self) -> Iterator[str]:
            return self

        def __next__(self) -> str:
            return "x"

        def close(self) -> None:
            raise OSError("stuck")

    def function(request: ModelRequest) -> Stubborn:
        return Stubborn()

    stream = await first_event(CallableModel(function))
    await stream.aclose()


async def test_things_that_stay_in_their_thread_can_be_used() -> None:
    def function(request: ModelRequest) -> Iterator[str]:
        # A connection of sqlite3 refuses every other thread than the one that opened it.
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            for number in range(3):
                (value,) = connection.execute("select ?", (str(number),)).fetchone()
                yield value

    events, error = await ask(CallableModel(function))
    assert (events, error) == ([*text(0, "0", "1", "2"), FINISHED], None)
