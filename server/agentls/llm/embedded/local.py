"""The embedded model: llama.cpp in a child process, spoken to over a private socket.

Owns when the child is started (at the first request) and that it is replaced when it has died.
What a name means is `local_spec`'s, the wire `http_model`'s, the process `llama_process`'.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from agentls.core.errors import ModelError, StreamBroken
from agentls.core.events import BlockStart, Event, Status
from agentls.core.ports import Model
from agentls.core.requests import ModelInfo, ModelRequest
from agentls.llm.embedded.constrained import ConstrainedModel
from agentls.llm.embedded.llama_process import LlamaProcess
from agentls.llm.embedded.local_spec import PROVIDER, LocalSpec, find
from agentls.llm.embedded.repetition import without_loops
from agentls.llm.http.retry import RetryPolicy
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.schemes.openai_chat import OpenAIChat

_IDLE_S = 120.0
"""The engine shows progress every few seconds, so a longer silence is a hang."""
_DEATH_S = 2.0


def local_model(
    model: str,
    folder: Path,
    *,
    threads: int | None = None,
    context_tokens: int | None = None,
) -> Model:
    """The embedded model of a name or a GGUF file; nothing is loaded before its first request.

    `folder` holds downloaded weights; an empty name means the best of them.

    Raises:
        NoModel: its weights are not there.
        SettingsError: there is no such model or file, or the file is not GGUF.
    """
    spec = find(model, folder, threads=threads, context_tokens=context_tokens)
    inner = LocalModel(spec)
    if spec.info.capabilities.tool_calling == "constrained":
        return ConstrainedModel(inner)
    return inner


@dataclass(slots=True)
class _Engine:
    process: LlamaProcess
    model: HttpModel


class LocalModel:
    """Implements `core.ports.Model`; deterministic unless a request says otherwise."""

    def __init__(
        self,
        spec: LocalSpec,
        *,
        start: Callable[[], Awaitable[LlamaProcess]] | None = None,
    ) -> None:
        """Nothing is started. `start` loads the model; tests put their own in."""
        self._spec = spec
        self._start = start or self._start_process
        self._starting: asyncio.Task[_Engine] | None = None
        self._closed = False

    @property
    def info(self) -> ModelInfo:
        """Name, provider, capabilities."""
        return self._spec.info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """Stream one reply; see `core.ports.Model`.

        The first request loads the model, announced by a `Status`. Requests at the same time are
        answered one after another. A child that has died is replaced; one that dies during a reply
        breaks that reply alone.

        Raises:
            NoModel: the engine is not installed.
            ModelError: the model cannot be loaded, or what `HttpModel.stream` raises.
        """
        request = self._settled(request)
        for again in (True, False):
            if not self._is_up():
                yield Status(state="requesting", message=f"loading {self.info.name}…")
            engine = await self._engine()
            shown = False
            try:
                async with aclosing(without_loops(engine.model.stream(request))) as events:
                    async for event in events:
                        shown = shown or isinstance(event, BlockStart)
                        yield event
                return
            except ModelError as error:
                if not error.retryable:
                    raise
                death = await engine.process.death(_DEATH_S)
                if death is None:
                    raise
                if shown or self._closed or not again:
                    raise StreamBroken(
                        f"The embedded model {self.info.name} stopped: {death}",
                        hint="The next request starts it again.",
                        provider=PROVIDER,
                    ) from error

    async def aclose(self) -> None:
        """End the child. Replies that are under way break; closing again does nothing."""
        self._closed = True
        starting, self._starting = self._starting, None
        if starting is None:
            return
        starting.cancel()
        await asyncio.wait({starting})
        if not starting.cancelled() and starting.exception() is None:
            await _end(starting.result())

    def _settled(self, request: ModelRequest) -> ModelRequest:
        """The request with what it leaves open decided, so that equal requests answer equally."""
        return request.model_copy(
            update={
                "temperature": 0.0 if request.temperature is None else request.temperature,
                "seed": 0 if request.seed is None else request.seed,
                # Small models run into loops; nothing else would end them.
                "max_tokens": min(
                    request.max_tokens or self._spec.max_reply_tokens, self._spec.context_tokens
                ),
            }
        )

    def _is_up(self) -> bool:
        starting = self._starting
        if starting is None or not starting.done():
            return False
        if starting.cancelled() or starting.exception() is not None:
            return False
        return starting.result().process.running

    async def _engine(self) -> _Engine:
        """The running engine, started at need by the first who asks.

        Cancelling one who waits does not stop the loading: the next request will want it.
        """
        if self._closed:
            raise _shut_down()
        if self._starting is None or (self._starting.done() and not self._is_up()):
            self._starting = asyncio.create_task(self._replace(self._starting))
            self._starting.add_done_callback(_note_failure)
        starting = self._starting
        await asyncio.wait({starting})
        if starting.cancelled():
            raise _shut_down()
        return starting.result()

    async def _replace(self, old: asyncio.Task[_Engine] | None) -> _Engine:
        if old is not None and not old.cancelled() and old.exception() is None:
            await _end(old.result())
        process = await self._start()
        transport = Transport(
            "http://local/v1",
            provider=PROVIDER,
            # A connection is cheap here, and the engine closes idle ones without notice.
            headers={"Connection": "close"},
            uds=process.socket,
            idle_s=_IDLE_S,
            retry=RetryPolicy(attempts=1),
        )
        scheme = OpenAIChat(
            self.info.name,
            provider=PROVIDER,
            # Progress while the prompt is read tells a slow engine from a dead one.
            extra_body={"return_progress": True, "cache_prompt": True},
        )
        return _Engine(process, HttpModel(self.info, scheme, transport))

    async def _start_process(self) -> LlamaProcess:
        return await LlamaProcess.start(
            self._spec.weights,
            model=self.info.name,
            context_tokens=self._spec.context_tokens,
            threads=self._spec.threads,
        )


def _shut_down() -> ModelError:
    return ModelError("The embedded model was shut down.", provider=PROVIDER)


def _note_failure(task: asyncio.Task[_Engine]) -> None:
    """Whoever asks next will see it; if nobody does, asyncio must not complain at exit."""
    if not task.cancelled():
        task.exception()


async def _end(engine: _Engine) -> None:
    try:
        await engine.model.aclose()
    finally:  # whatever keeps the connections from closing, the child must not stay
        await engine.process.stop()
