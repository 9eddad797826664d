"""Members of a failover pool that play what a test says, and a clock that only waiting moves."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from random import Random
from typing import Literal

from agentls.core.errors import BadRequest, ModelError, RateLimited, Unauthorized
from agentls.core.events import BlockAbort, BlockDelta, BlockStart, Event, Status, Usage
from agentls.core.messages import Message
from agentls.core.ports import Model
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest
from agentls.llm.failover import PooledModel
from agentls.llm.http.retry import RetryPolicy
from support.reply_events import BROKE_OFF, FINISHED, text

HI = ModelRequest(items=(Message.of("user", "hi"),))
Step = Event | BaseException | asyncio.Event


MIDWAY: list[Event] = [BlockStart(index=0, block="text"), BlockDelta(index=0, text="he")]
ABORTED = [*MIDWAY, BlockAbort(index=0, reason=BROKE_OFF)]
"""The first block of a reply, and how it ends when it breaks off there."""


def good(answer: str = "hello") -> list[Step]:
    return [*text(0, answer), Usage(input_tokens=1, output_tokens=1), FINISHED]


def fails(status: int | None, words: str = "it failed.", **more: bool) -> ModelError:
    kind = {401: Unauthorized, 403: Unauthorized, 429: RateLimited}.get(status or 0, ModelError)
    if status is not None and 400 <= status < 500 and kind is ModelError:
        kind = BadRequest
    retryable = more.get("retryable", status in (429, 500, 503, 529))
    return kind(words, provider="p", status=status, retryable=retryable)


def asking(error: ModelError, seconds: float) -> ModelError:
    error.retry_after_s = seconds
    return error


class Member:
    """Plays one list of steps a request, then the last one again."""

    def __init__(
        self, name: str, *replies: list[Step], provider: str = "", can: Capabilities | None = None
    ) -> None:
        self.info = ModelInfo(
            provider=provider or name, name=f"{name}-1", capabilities=can or Capabilities()
        )
        self._replies = replies
        self.requests: list[ModelRequest] = []
        self.reached = asyncio.Event()
        self.left = 0
        self.closed = 0
        self.close_error: Exception | None = None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        self.requests.append(request)
        try:
            for step in self._replies[min(len(self.requests), len(self._replies)) - 1]:
                if isinstance(step, BaseException):
                    raise step
                if isinstance(step, asyncio.Event):
                    self.reached.set()
                    await step.wait()
                else:
                    yield step
        finally:
            self.left += 1

    async def aclose(self) -> None:
        self.closed += 1
        if self.close_error is not None:
            raise self.close_error


@dataclass
class Time:
    """A clock that only waiting moves."""

    now: float = 1000.0
    waits: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - the same on every run


def pooled(
    *members: Member,
    time: Time | None = None,
    order: Literal["random", "listed"] = "listed",
    seed: int = 0,
) -> PooledModel:
    time = time or Time()
    return PooledModel(
        members,
        order=order,
        random=seeded(seed),
        retry=RetryPolicy(random=lambda: 1.0, sleep=time.sleep),
        clock=lambda: time.now,
    )


async def ask(model: Model, request: ModelRequest = HI) -> tuple[list[Event], ModelError | None]:
    events: list[Event] = []
    try:
        async with contextlib.aclosing(model.stream(request)) as stream:
            async for event in stream:
                events.append(event)
    except ModelError as error:
        return events, error
    return events, None


def switching(message: str) -> Status:
    return Status(state="switching", message=message)


def retrying(message: str) -> Status:
    return Status(state="retrying", message=message)
