"""Functions that raise what should stop a program, or what cannot even be said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from agentls.core.errors import ModelError
from agentls.core.events import Event
from agentls.core.messages import Message
from agentls.core.requests import ModelRequest
from agentls.llm.function.model import CallableModel, ModelFunction

HI = ModelRequest(items=(Message.of("user", "hi"),))


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


def interrupted(_: object) -> str:
    raise KeyboardInterrupt


def interrupted_later(_: object) -> Iterator[str]:
    yield "a"
    raise KeyboardInterrupt


def several(_: object) -> str:
    raise BaseExceptionGroup("all of it", [KeyboardInterrupt()])


async def cancelled_inside(_: object) -> str:
    task = asyncio.ensure_future(asyncio.sleep(60))
    task.cancel()
    await task
    return ""


async def cancelled_later(_: object) -> AsyncIterator[str]:
    yield "a"
    raise asyncio.CancelledError


def unspeakable(_: object) -> str:
    raise Unspeakable


@pytest.mark.parametrize(
    "function",
    [interrupted, interrupted_later, several, cancelled_inside, cancelled_later, unspeakable],
)
async def test_whatever_a_function_raises_is_its_failure(function: ModelFunction) -> None:
    with pytest.raises(ModelError, match=f"The function {function.__name__} failed: "):
        async for _ in CallableModel(function).stream(HI):
            pass


async def test_cancelling_the_turn_is_no_failure() -> None:
    begun = asyncio.Event()

    async def waits(_: object) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    async def ask() -> list[Event]:
        return [event async for event in CallableModel(waits).stream(HI)]

    task = asyncio.ensure_future(ask())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
