"""A model over HTTP for tests, whose waits between attempts are noted instead of waited."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from pydantic import SecretStr

from agentls.core.errors import ModelError
from agentls.core.events import Event, Status, Usage
from agentls.core.messages import Message
from agentls.core.requests import ModelInfo, ModelRequest
from agentls.llm.http.retry import RetryPolicy
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.schemes.openai_chat import OpenAIChat
from agentls.llm.wire.scheme import Scheme
from support.reply_events import FINISHED, text

KEY = "not-a-pattern-42"
HI = ModelRequest(items=(Message.of("user", "hi"),))
USAGE = Usage(input_tokens=7, output_tokens=3)
HELLO = [*text(0, "hello", " world"), USAGE, FINISHED]
"""What `said("hello world")` comes out as."""


@dataclass
class Rig:
    """A model of the provider "fake" at a base URL; by default it speaks chat completions."""

    url: str
    scheme: Scheme = field(default_factory=lambda: OpenAIChat("m", provider="fake"))
    idle_s: float = 30.0
    waits: list[float] = field(default_factory=list)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    @contextlib.asynccontextmanager
    async def model(self) -> AsyncGenerator[HttpModel, None]:
        """The model; it is closed twice, which has to do no harm."""
        transport = Transport(
            self.url,
            provider="fake",
            api_key=SecretStr(KEY),
            retry=RetryPolicy(random=lambda: 1.0, sleep=self._sleep),
            idle_s=self.idle_s,
        )
        info = ModelInfo(provider="fake", name="m")
        model = HttpModel(info, self.scheme, transport)
        try:
            yield model
        finally:
            await model.aclose()
            await model.aclose()

    async def ask(self, request: ModelRequest = HI) -> tuple[list[Event], ModelError | None]:
        """All events of one request, and the error it ended with."""
        events: list[Event] = []
        async with self.model() as model:
            try:
                async for event in model.stream(request):
                    events.append(event)
            except ModelError as error:
                return events, error
        return events, None


def retrying(events: list[Event]) -> list[str]:
    """What was said about attempts that failed."""
    return [e.message for e in events if isinstance(e, Status) and e.state == "retrying"]
