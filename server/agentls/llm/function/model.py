"""A function of the user's as a model.

Owns how it is called and read: what blocks runs in threads, what streams is closed. What it gives
is `reply`'s to make a reply of.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping
from typing import Any, TypeGuard

from pydantic import BaseModel

from agentls.core.errors import ModelError, SettingsError, StreamBroken
from agentls.core.events import Event, Status
from agentls.core.media import check_media
from agentls.core.messages import Message
from agentls.core.redaction import Redactor
from agentls.core.requests import OPTIONS, Capabilities, ModelInfo, ModelRequest, Option
from agentls.core.text import short_line
from agentls.llm.function.reading import WorkerThread, read_async, read_blocking
from agentls.llm.function.reply import CallableReply
from agentls.llm.options import fitted

ModelFunction = Callable[[Any], object]
"""Takes a `ModelRequest`, or the last text of the user if its parameter is annotated `str`; gives
text, items or events, at once or as an iterable, sync or async."""

_REASON_CHARS = 300
_PLACE = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*(?:\.[^\W\d]\w*)*)")

_TEXT_ONLY = Capabilities(tool_calling="none")
_EVERYTHING = Capabilities(images=True, audio=True, documents=True, thinking=True)


class CallableModel:
    """Implements `core.ports.Model` over a function."""

    def __init__(
        self,
        function: ModelFunction,
        *,
        name: str = "custom",
        provider: str = "custom",
        capabilities: Capabilities | None = None,
    ) -> None:
        """Look at how the function is called; it is not called yet.

        Args:
            function: see `ModelFunction`.
            name: the model's name.
            provider: whose thinking its replies hold.
            capabilities: by default all that a request can hold, and only text for a function of a
                `str`.

        Raises:
            SettingsError: it cannot be called with one argument.
        """
        self._function = function
        self._called = _name_of(function)
        self._takes_text = _takes_text(function, self._called)
        default = _TEXT_ONLY if self._takes_text else _EVERYTHING
        self._info = ModelInfo(provider=provider, name=name, capabilities=capabilities or default)
        self._told_notes: set[str] = set()

    @property
    def info(self) -> ModelInfo:
        """Name, provider, capabilities."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """Stream one reply; see `core.ports.Model`.

        Functions and iterators that are not async run in a thread. Cancelling stops reading at
        once and closes the iterator; a thread that is inside the function is not waited for.

        Raises:
            ModelError: the function raised; after a part of the reply, `StreamBroken` if it may
                succeed later.
            StreamBroken: what it gave is no reply.
        """
        for item in request.items:
            if isinstance(item, Message):
                check_media(self._info, item.content)
        carried = frozenset[Option]() if self._takes_text else OPTIONS
        request, notes = fitted(request, self._info, carried)
        for note in notes:
            if note not in self._told_notes:
                self._told_notes.add(note)
                yield Status(state="warning", message=note)
        reply = CallableReply(self._info.provider, self._called)
        try:
            async with contextlib.aclosing(self._pieces(request)) as pieces:
                async for piece in pieces:
                    for event in reply.take(piece):
                        yield event
            for event in reply.close():
                yield event
        except ModelError as error:
            for event in reply.abort():
                yield event
            failure = self._told(error, begun=reply.begun)
            if failure is error:
                raise
            raise failure from error

    async def aclose(self) -> None:
        """Nothing to release."""

    async def _pieces(self, request: ModelRequest) -> AsyncGenerator[object, None]:
        """What the function gives, one by one; its exceptions as `ModelError`."""
        worker = WorkerThread()
        try:
            given = await self._call(_last_text(request) if self._takes_text else request, worker)
            async with contextlib.aclosing(_split(given, worker)) as pieces:
                async for piece in pieces:
                    yield piece
        except ModelError:
            raise
        except asyncio.CancelledError as error:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            # Nobody cancelled this task: the function let out what it met inside.
            raise self._failed(error) from error
        except (Exception, SystemExit) as error:  # whatever a user's function may raise
            raise self._failed(error) from error
        finally:
            await worker.leave()

    async def _call(self, argument: object, worker: WorkerThread) -> object:
        if _is_async(self._function):
            given = self._function(argument)
        else:
            given = await worker.run(lambda: self._function(argument))
        return await given if inspect.isawaitable(given) else given

    def _failed(self, error: BaseException) -> ModelError:
        return ModelError(
            f"The function {self._called} failed: {_said(error)}.",
            provider=self._info.provider,
            retryable=isinstance(error, ConnectionError | TimeoutError),
        )

    def _told(self, error: ModelError, *, begun: bool) -> ModelError:
        """The error without keys, and as a broken stream if a part of the reply was shown."""
        error.message = Redactor()(error.message)
        error.args = (error.message,)
        return StreamBroken.of(error) if begun and error.retryable else error


def load_callable(place: str) -> ModelFunction:
    """The function that `package.module:attribute` names. Importing runs the module.

    Raises:
        SettingsError: there is none, for whatever reason.
    """
    match = _PLACE.fullmatch(place.strip())
    if match is None:
        raise SettingsError(
            f"{short_line(place, 80)!r} does not name a function.",
            hint="It looks like package.module:function.",
        )
    module_name, path = match.groups()
    try:
        found: object = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        raise SettingsError(
            f"The module {module_name} cannot be imported: {_said(error)}.",
            hint="Is it installed where agentls is, or in a folder that PYTHONPATH names?",
        ) from error
    try:
        for name in path.split("."):
            found = getattr(found, name)
    except AttributeError:
        raise SettingsError(
            f"The module {module_name} has no {path}.", hint="Check llm.custom.function."
        ) from None
    except Exception as error:  # modules may load what they hold only when it is asked for
        raise SettingsError(f"{place.strip()} cannot be loaded: {_said(error)}.") from error
    if not callable(found):
        raise SettingsError(
            f"{place.strip()} cannot be called: it is of type {type(found).__name__}."
        )
    return found


def _said(error: BaseException) -> str:
    """Type and first line of an exception, without keys and without a full stop."""
    try:
        first = str(error).strip().partition("\n")[0]
    except Exception:  # it is the user's: even saying what is wrong may fail
        first = ""
    said = short_line(Redactor()(f"{type(error).__name__}: {first}"), _REASON_CHARS)
    return said.rstrip(".: ")


def _name_of(function: object) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return short_line(str(name), 80)


def _takes_text(function: ModelFunction, called: str) -> bool:
    """Whether the one parameter of a function is annotated `str`."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return False  # written in C: it gets the request
    try:
        signature.bind(None)
    except TypeError:
        raise SettingsError(
            f"The function {called} cannot be called with one argument.",
            hint="It takes a ModelRequest, or the user's text as a str.",
        ) from None
    first = next(iter(signature.parameters.values()))
    # As text where the module postpones the evaluation of annotations.
    return first.annotation is str or first.annotation in ("str", "'str'", '"str"')


def _is_async(function: object) -> bool:
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (function, getattr(function, "__call__", None))  # noqa: B004 - of an object
    )


async def _split(given: object, worker: WorkerThread) -> AsyncGenerator[object, None]:
    """The pieces of what a function returned."""
    if isinstance(given, AsyncIterable):
        stream = read_async(given)
    elif _is_iterable(given):
        stream = read_blocking(given, worker)
    else:
        if given is not None:
            yield given
        return
    async with contextlib.aclosing(stream) as pieces:
        async for piece in pieces:
            yield piece


def _is_iterable(given: object) -> TypeGuard[Iterable[object]]:
    """Whether to look inside. Models of pydantic, bytes and mappings are iterable as well."""
    single = (str, bytes, bytearray, Mapping, BaseModel)
    return isinstance(given, Iterable) and not isinstance(given, single)


def _last_text(request: ModelRequest) -> str:
    return next(
        (i.text for i in reversed(request.items) if isinstance(i, Message) and i.role == "user"),
        "",
    )
