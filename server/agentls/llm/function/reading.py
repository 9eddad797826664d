"""Reads what a user's function gives without ever blocking the event loop.

Owns the thread that blocking code runs in, and that what was begun is closed. Knows nothing of
replies.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator
from typing import TypeVar, cast

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_END = object()


class WorkerThread:
    """One thread for all blocking steps of one reply, since many things stay in their thread.

    Not the loop's pool: a function that never returns would take a place in it from everyone, and
    hold up the end of the process.
    """

    def __init__(self) -> None:
        """Nothing is started before the first step."""
        self._steps: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = False
        self._busy = False

    async def run(self, step: Callable[[], _T]) -> _T:
        """Run a step to its end. Cancelling leaves it running, with nobody to hear of its end."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

        def deliver(value: object, error: BaseException | None) -> None:
            self._busy = False
            if not future.done():
                future.set_result((value, error))
            elif inspect.iscoroutine(value) or inspect.isgenerator(value):
                value.close()

        def act() -> None:
            value: object = None
            failure: BaseException | None = None
            try:
                value = step()
            except BaseException as error:  # raised where it is awaited
                failure = error
            with contextlib.suppress(RuntimeError):  # the loop is closed, nobody waits any more
                loop.call_soon_threadsafe(deliver, value, failure)

        self._busy = True
        self._put(act)
        value, failure = await future
        if failure is not None and not isinstance(failure, Exception | SystemExit):
            # Raised here it would mean that this task was cancelled, or that the user pressed
            # Ctrl-C, and neither is so.
            raise RuntimeError(f"{type(failure).__name__} in its thread") from failure
        if failure is not None:
            raise failure
        return cast(_T, value)

    async def leave(self, last: Callable[[], object] | None = None) -> None:
        """Run no more steps but `last`, which is waited for unless a step is still running."""
        if last is not None and not self._busy:
            with _unheard():
                await self.run(last)
        elif last is not None:
            self._put(_quietly(last))
        self._steps.put(None)

    def _put(self, step: Callable[[], None]) -> None:
        self._steps.put(step)
        if not self._started:
            self._started = True
            run = contextvars.copy_context().run
            name = "agentls-custom-model"
            threading.Thread(target=run, args=(self._serve,), name=name, daemon=True).start()

    def _serve(self) -> None:
        while (step := self._steps.get()) is not None:
            step()


async def read_async(given: AsyncIterable[object]) -> AsyncGenerator[object, None]:
    """The pieces of an async iterable, which is closed at the end if it can be."""
    iterator = aiter(given)
    try:
        async for piece in iterator:
            yield piece
    finally:
        close = getattr(iterator, "aclose", None)
        if close is not None:
            with _unheard():
                await close()


async def read_blocking(
    given: Iterable[object], worker: WorkerThread
) -> AsyncGenerator[object, None]:
    """The pieces of an iterable that may block. It is closed in its thread if it can be.

    The worker is left with it: cancelled inside a step, it closes the iterator once it is out.
    """
    iterator: Iterator[object] | None = None

    def step() -> object:
        nonlocal iterator
        if iterator is None:
            iterator = iter(given)
        return next(iterator, _END)

    def close() -> None:
        method = getattr(iterator, "close", None)
        if method is not None:
            method()

    try:
        while (piece := await worker.run(step)) is not _END:
            yield piece
    finally:
        await worker.leave(close)


def _quietly(act: Callable[[], object]) -> Callable[[], None]:
    def quiet() -> None:
        with _unheard():
            act()

    return quiet


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """What goes wrong in closing comes after the reply, or beside a worse error."""
    try:
        yield
    except Exception as error:  # a user's code may raise anything
        _log.debug("Closing a custom model's iterator: %s", type(error).__name__)
