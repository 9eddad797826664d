"""The embedded model: llama.cpp in a child process, spoken to over a private socket.

Owns which weights a name means, when the child is started (at the first request) and that it is
replaced when it has died. The wire is `http_model`'s, the process `llama_process`'.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from agentls.core.errors import ModelError, NoModel, SettingsError, StreamBroken
from agentls.core.events import BlockStart, Event, Status
from agentls.core.ports import Model
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest, ToolCalling
from agentls.llm import weights
from agentls.llm.catalogue import CATALOGUE
from agentls.llm.constrained import ConstrainedModel
from agentls.llm.gguf import read_facts
from agentls.llm.http_model import HttpModel
from agentls.llm.llama_process import LlamaProcess
from agentls.llm.processors import physical_cores
from agentls.llm.retry import RetryPolicy
from agentls.llm.schemes.openai_chat import OpenAIChat
from agentls.llm.transport import Transport

_PROVIDER = "local"
_SUFFIX = ".gguf"
_IDLE_S = 120.0
"""The engine shows progress every few seconds, so a longer silence is a hang."""
_DEATH_S = 2.0
_UNKNOWN_CONTEXT_TOKENS = 4096
_LARGEST_CONTEXT_TOKENS = 8192
"""Memory and prompt reading grow with it; the user may ask for more."""
_REPLY_TOKENS = 1024
_SMALLEST_CALLER_BYTES = 300_000_000


@dataclass(frozen=True, slots=True)
class LocalSpec:
    """What to load and how; `threads` -1 leaves the number to llama.cpp."""

    weights: Path
    info: ModelInfo
    context_tokens: int
    max_reply_tokens: int = _REPLY_TOKENS
    threads: int = -1


def names_weights(model: str) -> bool:
    """Whether this is the name of an embedded model: one of the catalogue, or a GGUF file."""
    return model in CATALOGUE or model.lower().endswith(_SUFFIX)


def default_weights(folder: Path) -> str | None:
    """The best model whose weights are in the folder; None when there is none."""
    found = weights.installed(folder)
    return found[0].name if found else None


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


def find(
    model: str, folder: Path, *, threads: int | None = None, context_tokens: int | None = None
) -> LocalSpec:
    """What a name means; see `local_model`."""
    name = model or default_weights(folder) or next(iter(CATALOGUE))
    entry = CATALOGUE.get(name)
    if entry is not None:
        path = folder.absolute() / entry.file
        if not path.is_file():
            raise NoModel(
                f"The weights of {name} are not on this machine.",
                hint=f"Run `agentls model pull {name}` ({entry.size_bytes / 1e6:,.0f} MB).",
                provider=_PROVIDER,
            )
        wanted, tool_calling, reply = (
            entry.context_tokens,
            entry.tool_calling,
            entry.max_reply_tokens,
        )
    elif name.lower().endswith(_SUFFIX):
        path = Path(name).expanduser().absolute()
        wanted, tool_calling, reply = _LARGEST_CONTEXT_TOKENS, _likely_calling(path), _REPLY_TOKENS
    else:
        raise SettingsError(
            f"There is no embedded model named {name!r}.",
            hint=f"Known models: {', '.join(CATALOGUE)}; or give the path of a {_SUFFIX} file.",
        )
    trained = read_facts(path).context_tokens or _UNKNOWN_CONTEXT_TOKENS
    window = min(context_tokens or wanted, trained)
    info = ModelInfo(
        provider=_PROVIDER,
        name=name if entry else path.stem,
        capabilities=Capabilities(tool_calling=tool_calling, context_window=window),
    )
    return LocalSpec(
        weights=path,
        info=info,
        context_tokens=window,
        max_reply_tokens=reply,
        threads=threads or physical_cores(),
    )


def _likely_calling(path: Path) -> ToolCalling:
    """Held to a schema any model can call tools; the smallest do so without sense."""
    size = path.stat().st_size if path.is_file() else 0
    return "constrained" if size >= _SMALLEST_CALLER_BYTES else "none"


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
                async with aclosing(engine.model.stream(request)) as events:
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
                        provider=_PROVIDER,
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
            provider=_PROVIDER,
            # A connection is cheap here, and the engine closes idle ones without notice.
            headers={"Connection": "close"},
            uds=process.socket,
            idle_s=_IDLE_S,
            retry=RetryPolicy(attempts=1),
        )
        scheme = OpenAIChat(
            self.info.name,
            provider=_PROVIDER,
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
    return ModelError("The embedded model was shut down.", provider=_PROVIDER)


def _note_failure(task: asyncio.Task[_Engine]) -> None:
    """Whoever asks next will see it; if nobody does, asyncio must not complain at exit."""
    if not task.cancelled():
        task.exception()


async def _end(engine: _Engine) -> None:
    await engine.model.aclose()
    await engine.process.stop()
