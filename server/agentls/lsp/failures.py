"""The one place where exceptions become JSON-RPC errors.

What a client may see is an error's own text, written for people and free of secrets; of anything
unforeseen it sees the kind only. Knows no method.
"""

from __future__ import annotations

import asyncio
import logging
import traceback

from agentls.core.errors import (
    AgentlsError,
    Denied,
    ModelError,
    SessionBusy,
    SettingsError,
    UnknownSession,
    UsageError,
)

_log = logging.getLogger(__name__)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SERVER_NOT_INITIALIZED = -32002
REQUEST_FAILED = -32803
REQUEST_CANCELLED = -32800
UNKNOWN_SESSION = -32001
SESSION_BUSY = -32002
"""The same number as `SERVER_NOT_INITIALIZED`: LSP took it first, the session errors are ours."""
MODEL_FAILURE = -32003
DENIED = -32004


class RpcError(Exception):
    """An error with its JSON-RPC code, as it goes to the client or came from it."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        """`data` is JSON, or None for no data."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_json(self) -> dict[str, object]:
        """The `error` member of a response."""
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


def to_rpc(error: BaseException, method: str) -> RpcError:
    """What the client is told about an exception that ended a request."""
    match error:
        case RpcError():
            return error
        case asyncio.CancelledError():
            return RpcError(REQUEST_CANCELLED, "The request was cancelled.")
        case UnknownSession():
            return RpcError(UNKNOWN_SESSION, str(error))
        case SessionBusy():
            return RpcError(SESSION_BUSY, str(error))
        case ModelError():
            data = _model_data(error.provider, error.status, retryable=error.retryable)
            return RpcError(MODEL_FAILURE, str(error), data)
        case SettingsError():
            # No model can be made of what is configured; a client handles it like one that fails.
            return RpcError(MODEL_FAILURE, str(error), _model_data())
        case Denied():
            return RpcError(DENIED, str(error))
        case UsageError():
            return RpcError(INVALID_PARAMS, str(error))
        case AgentlsError():
            return RpcError(REQUEST_FAILED, str(error), {"code": error.code})
        case _:
            log_unforeseen(error, method)
            kind = type(error).__name__
            return RpcError(INTERNAL_ERROR, f"Internal error ({kind}). The server's log says more.")


def _model_data(
    provider: str = "", status: int | None = None, *, retryable: bool = False
) -> dict[str, object]:
    return {"provider": provider, "status": status, "retryable": retryable}


def log_unforeseen(error: BaseException, doing: str) -> None:
    """Log where an exception came from, without its text: that may quote a prompt or a key."""
    frames = "".join(traceback.format_tb(error.__traceback__))
    _log.error("%s failed: %s\n%s", doing, type(error).__name__, frames.rstrip())
