"""Errors as people and programs read them, and the exit codes they end in."""

from __future__ import annotations

import logging

from pydantic import JsonValue

from agentls.cli.streams import Output
from agentls.core.errors import AgentlsError, ModelError, UsageError
from agentls.core.events import Failure
from agentls.core.text import visible

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

_logger = logging.getLogger(__name__)


class InternalError(AgentlsError):
    """A defect of this program."""

    code = "internal"


def internal_error(error: Exception) -> InternalError:
    """A defect as an error for people; the traceback goes to the log."""
    _logger.debug("internal error", exc_info=error)
    what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return InternalError(f"internal error: {what}, please report; run with -v for details")


def classified(error: Exception) -> AgentlsError:
    """The error itself if it was raised on purpose, else a defect."""
    return error if isinstance(error, AgentlsError) else internal_error(error)


def exit_code(error: AgentlsError) -> int:
    """2 for a wrong request, 1 for everything else."""
    return USAGE if isinstance(error, UsageError) else FAILED


def report(error: AgentlsError, stderr: Output) -> None:
    """Say what failed and what to do next."""
    if isinstance(error, InternalError):
        stderr.line(f"agentls: {visible(error.message)}")
        return
    stderr.line(f"agentls: error: {visible(error.message)}")
    if error.hint:
        stderr.line(visible(error.hint))


def as_event(error: AgentlsError) -> Failure:
    """The error as the last event of a turn."""
    model = error if isinstance(error, ModelError) else None
    return Failure(
        message=str(error),
        code=error.code,
        provider=model.provider if model else "",
        status=model.status if model else None,
        retryable=model.retryable if model else False,
    )


def as_json(error: AgentlsError) -> dict[str, JsonValue]:
    """The `error` of a result line."""
    model = error if isinstance(error, ModelError) else None
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "provider": model.provider if model else "",
        "status": model.status if model else None,
        "retryable": model.retryable if model else False,
    }
