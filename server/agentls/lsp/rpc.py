"""JSON-RPC over LSP frames on top of pygls: exactly one response to every request.

pygls registers the handlers and runs them as tasks. This module owns what passes between it and the
wire, because there pygls leaves malformed requests unanswered, coerces types, and shows tracebacks
to the client. Knows no method's meaning, except that `initialize` comes first and `exit` last.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import json
import logging
import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, NoReturn, TypeGuard, cast

import cattrs
from lsprotocol import types
from pygls.protocol import LanguageServerProtocol, default_converter

from agentls.lsp import failures, methods
from agentls.lsp.failures import RpcError
from agentls.lsp.frames import BadFrame
from agentls.lsp.phase import Phase

_log = logging.getLogger(__name__)

MsgId = str | int
Json = dict[str, Any]

_WITHOUT_PARAMS = {types.SHUTDOWN, types.EXIT}
_ANY_PHASE = {types.EXIT}
_REQUESTS_ONLY = {
    types.INITIALIZE,
    types.SHUTDOWN,
    *(name for name in methods.FROM_CLIENT if name != methods.SESSION_CANCEL),
}
"""Without an id nobody could be told what became of them."""
_RAW = {types.INITIALIZE}
"""Its handler reads most of it itself; see `lsp/client.py`."""


def strict_converter() -> cattrs.Converter:
    """The converter of pygls, without turning null into "None" and 5 into "5"."""
    converter: cattrs.Converter = default_converter()  # type: ignore[no-untyped-call]
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, partial(_exactly, kind))
    return converter


def _exactly(kind: type, value: object, _: type) -> object:
    if type(value) is not kind:
        raise ValueError(f"expected {kind.__name__}")
    return value


class AgentProtocol(LanguageServerProtocol):
    """The connection to one client."""

    def __init__(self, server: Any, converter: cattrs.Converter) -> None:
        """Called by pygls.

        Whoever opens the connection sets `send`; `on_malformed` hears of notifications that could
        not be read, with their raw parameters.
        """
        super().__init__(server, converter)
        self.phase = Phase()
        self.send: Callable[[bytes], None] = _nowhere
        self.on_malformed: Callable[[str, object], None] = _unnoticed
        self._unanswered: dict[MsgId, str] = {}
        self._asked: dict[str, asyncio.Future[object]] = {}
        self._numbers = itertools.count(1)

    def _register_builtin_features(self) -> None:
        """None of pygls's own: `features/` has all that is served, and nothing else is."""

    # --- from the client ---------------------------------------------------------------------

    def receive(self, frame: bytes | BadFrame) -> None:
        """Take one frame. Never raises: whatever it holds, the server lives on."""
        try:
            if isinstance(frame, BadFrame):
                raise RpcError(failures.PARSE_ERROR, frame.reason)
            self._dispatch(_parse(frame))
        except RpcError as error:
            self._send({"id": None, "error": error.to_json()})

    def _dispatch(self, message: object) -> None:
        if not isinstance(message, dict):
            raise RpcError(failures.INVALID_REQUEST, "A message has to be a JSON object.")
        if "method" not in message:
            self._take_response(message)
            return
        msg_id, method = message.get("id"), message["method"]
        if "id" in message and not _is_id(msg_id):
            raise RpcError(failures.INVALID_REQUEST, "An id has to be a string or an integer.")
        if not _is_id(msg_id):
            self._take_notification(message, method)
            return
        if msg_id in self._unanswered:
            raise RpcError(failures.INVALID_REQUEST, "A request with this id is still running.")
        self._unanswered[msg_id] = method if isinstance(method, str) else "?"
        try:
            self._take_request(message, msg_id, method)
        except RpcError as error:
            self._answer(msg_id, error=error)

    def _take_request(self, message: Json, msg_id: MsgId, method: object) -> None:
        if message.get("jsonrpc") != self.VERSION or not isinstance(method, str):
            raise RpcError(failures.INVALID_REQUEST, "This is not a JSON-RPC 2.0 request.")
        if refusal := self.phase.refusal(method):
            raise refusal
        if method not in self.fm.features:
            raise RpcError(failures.METHOD_NOT_FOUND, f"Method not found: {_short(method)}.")
        params = self._structure(message, method)
        # A context of its own keeps what a handler sets from leaking into the next one.
        context = contextvars.copy_context()
        context.run(self._handle_request, msg_id, method, params)

    def _take_notification(self, message: Json, method: object) -> None:
        if message.get("jsonrpc") != self.VERSION or not isinstance(method, str):
            raise RpcError(failures.INVALID_REQUEST, "This is not a JSON-RPC 2.0 notification.")
        if self.phase.name != "running" and method not in _ANY_PHASE:
            _log.warning("a notification outside the session was ignored: %s", _short(method))
        elif method in _REQUESTS_ONLY:
            _log.warning("a request without an id was ignored: %s", method)
        elif method == types.CANCEL_REQUEST:
            self._cancel(message.get("params"))
        elif method in self.fm.features:
            try:
                params = self._structure(message, method)
            except RpcError as error:
                _log.warning("a malformed notification was ignored: %s", error)
                self.on_malformed(method, message.get("params"))
            else:
                context = contextvars.copy_context()
                context.run(self._handle_notification, method, params)
        elif not method.startswith("$/"):
            _log.info("a notification nobody handles was ignored: %s", _short(method))

    def _take_response(self, message: Json) -> None:
        msg_id = message.get("id")
        future = self._asked.pop(msg_id, None) if isinstance(msg_id, str) else None
        if future is None or future.done():
            if "result" not in message and "error" not in message:
                self._refuse_incomplete(msg_id)
                return
            # The answer to a question that was withdrawn meanwhile.
            _log.debug("a late or unknown response was ignored")
        elif "error" in message:
            error = message["error"] if isinstance(message["error"], dict) else {}
            code, text = error.get("code"), error.get("message")
            future.set_exception(
                RpcError(code if type(code) is int else 0, text if isinstance(text, str) else "")
            )
        else:
            future.set_result(message.get("result"))

    def _refuse_incomplete(self, msg_id: object) -> None:
        """Answer by its id, if it has one, whoever forgot the method: they may wait for that."""
        error = RpcError(failures.INVALID_REQUEST, "A message needs a method or a result.")
        known = msg_id if _is_id(msg_id) and msg_id not in self._unanswered else None
        self._send({"id": known, "error": error.to_json()})

    def _cancel(self, params: object) -> None:
        msg_id = params.get("id") if isinstance(params, dict) else None
        future = self._request_futures.get(msg_id) if _is_id(msg_id) else None
        if future is not None:
            _cancel_once_begun(future)

    def _structure(self, message: Json, method: str) -> object:
        """The parameters: LSP's own as lsprotocol's types, others as a plain dict.

        Raises:
            RpcError: they do not fit.
        """
        if method in _WITHOUT_PARAMS:
            return None
        params = message.get("params")
        if params is None or params == []:
            # Languages whose tables are lists too, such as Lua, write an empty object so.
            params = {}
        if not isinstance(params, dict):
            raise RpcError(failures.INVALID_PARAMS, f"{method}: params have to be an object.")
        if method in _RAW or method.startswith(methods.PREFIX):
            return params
        return self.typed(method, params)

    def typed(self, method: str, params: Json) -> Any:
        """Parameters of one of LSP's own methods as lsprotocol's type.

        Raises:
            RpcError: they do not fit; the text names the places and quotes no value.
        """
        message = {"id": 0, "jsonrpc": self.VERSION, "method": method, "params": params}
        kind: Any = self.get_message_type(method)
        try:
            return self._converter.structure(message, kind).params
        except Exception as error:  # cattrs lets through whatever a constructor raises
            places = "; ".join(cattrs.transform_error(error)[:3])
            readable = re.sub(r"_([a-z])", lambda match: match[1].upper(), places)
            raise RpcError(failures.INVALID_PARAMS, f"{method}: {readable}.") from None

    # --- what handlers give back (called by pygls) -------------------------------------------

    def _send_handler_result(self, future: Future[Any], *, msg_id: MsgId) -> None:
        self._request_futures.pop(msg_id, None)
        try:
            result = future.result()
        except (Exception, asyncio.CancelledError) as error:
            method = self._unanswered.get(msg_id, "")
            self._answer(msg_id, error=failures.to_rpc(error, method))
        else:
            self._answer(msg_id, result=result)

    def _check_handler_result(self, future: Future[Any]) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            told = failures.to_rpc(error, "a notification's handler")
            _log.warning("a notification was not carried out: %s", told.message)

    # --- to the client -----------------------------------------------------------------------

    def notify(self, method: str, params: object = None) -> None:
        """Send a notification."""
        self._send({"method": method, "params": params})

    async def ask(self, method: str, params: object, *, timeout_s: float) -> object:
        """Send a request to the client and wait for its result.

        When the time is up, or the waiting task is cancelled, the request is withdrawn and a late
        response is ignored.

        Raises:
            RpcError: the client answered with an error.
            TimeoutError: it did not answer in time.
        """
        msg_id = f"agentls-{next(self._numbers)}"
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._asked[msg_id] = answer
        self._send({"id": msg_id, "method": method, "params": params})
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        finally:
            if self._asked.pop(msg_id, None) is not None:
                self.notify(types.CANCEL_REQUEST, {"id": msg_id})

    def cancel_all(self) -> None:
        """Cancel every request that is being served, except the one this is called from."""
        for msg_id, future in list(self._request_futures.items()):
            if msg_id != self.msg_id:
                _cancel_once_begun(future)

    async def stop(self) -> None:
        """Cancel every request that is being served, and return when each has its response."""
        self.cancel_all()
        if served := [asyncio.wrap_future(future) for future in self._request_futures.values()]:
            await asyncio.wait(served)

    def _answer(
        self, msg_id: MsgId, *, result: object = None, error: RpcError | None = None
    ) -> None:
        if self._unanswered.pop(msg_id, None) is None:
            return
        if error is None:
            try:
                self._send({"id": msg_id, "result": result})
                return
            except (TypeError, ValueError) as unserializable:
                error = failures.to_rpc(unserializable, "sending a result")
        self._send({"id": msg_id, "error": error.to_json()})

    def _send(self, message: Json) -> None:
        body = json.dumps(
            {"jsonrpc": self.VERSION, **message},
            default=self._converter.unstructure,
            separators=(",", ":"),
            allow_nan=False,
        ).encode("ascii")
        self.send(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


def _unnoticed(_method: str, _params: object) -> None:
    return


def _nowhere(_: bytes) -> NoReturn:
    raise RuntimeError("the connection is not open yet")


def _cancel_once_begun(future: Future[Any]) -> None:
    """Let a handler that has not taken its first step take it, so that it can answer for itself."""
    asyncio.get_running_loop().call_soon(cancel_once, future)


def cancel_once(future: Future[Any] | asyncio.Task[Any]) -> None:
    """Cancel what is not being cancelled yet: a second time would interrupt its cleaning up."""
    if not (isinstance(future, asyncio.Task) and future.cancelling()):
        future.cancel()


def _parse(body: bytes) -> object:
    try:
        return json.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise RpcError(failures.PARSE_ERROR, "The message is not valid JSON.") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _is_id(value: object) -> TypeGuard[MsgId]:
    return type(value) in (str, int)


def _short(method: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in method[:80])


def as_object(value: object) -> Mapping[str, Any]:
    """A JSON object, or an empty one in place of anything else."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
