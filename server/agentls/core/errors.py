"""The exception tree.

::

    AgentlsError                 message for people + hint (what to do next)
    ├── UsageError               the caller asked for something that cannot be done
    ├── SettingsError            a setting that cannot be used at all
    ├── ModelError               a provider failed: provider, status, retryable, retry_after_s
    │   ├── NoModel              nothing configured, nothing found
    │   ├── Unreachable          no connection, or it broke before an answer
    │   ├── Unauthorized         wrong or missing key
    │   ├── RateLimited          too many requests
    │   ├── BadRequest           the provider refused the request itself
    │   └── StreamBroken         the stream ended or became unreadable midway
    ├── TurnError                the agent loop had to stop
    │   ├── IterationLimit       the turn's budget of model calls is used up; it can be continued
    │   ├── UnknownNode          a node routed to a name that is not registered
    │   ├── NoResponse           the model said nothing at all
    │   └── RepeatedFailure      the same failing call three times in a row
    ├── ToolError                shown to the model as the result of its call
    │   ├── InvalidArguments     the model should call again with better arguments
    │   ├── PathRefused          outside the workspace, protected, or not a regular file
    │   ├── StaleFile            changed since it was read: read it again
    │   ├── EditRefused          the text to replace is missing or ambiguous
    │   └── Denied               a person or a rule said no
    └── SessionError
        ├── UnknownSession
        └── SessionBusy          one run at a time per session

`str(error)` is one or two sentences without a secret; it may be shown to a person as it is.
"""

from __future__ import annotations


class AgentlsError(Exception):
    """Base of every error this package raises on purpose."""

    code = "error"

    def __init__(self, message: str, *, hint: str = "") -> None:
        """`hint` says what to do next, as a sentence."""
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Message and hint."""
        return f"{self.message} {self.hint}".strip()


class UsageError(AgentlsError):
    """The caller asked for something that cannot be done."""

    code = "usage"


class SettingsError(AgentlsError):
    """A setting that cannot be used at all."""

    code = "settings"


class ModelError(AgentlsError):
    """A provider failed. `retryable` says whether the same request may succeed later.

    `retry_after_s` is the provider's advice on when, if it gave any.
    """

    code = "model"
    retryable = False
    retry_after_s: float | None = None

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        provider: str = "",
        status: int | None = None,
        retryable: bool | None = None,
    ) -> None:
        """`status` is the HTTP status, if there was one."""
        super().__init__(message, hint=hint)
        self.provider = provider
        self.status = status
        if retryable is not None:
            self.retryable = retryable


class NoModel(ModelError):
    """No model is configured and none was found."""

    code = "no_model"


class Unreachable(ModelError):
    """No connection to the provider, or it broke before an answer."""

    code = "unreachable"
    retryable = True


class Unauthorized(ModelError):
    """The key is missing or was rejected."""

    code = "unauthorized"


class RateLimited(ModelError):
    """Too many requests; see `retry_after_s`."""

    code = "rate_limited"
    retryable = True


class BadRequest(ModelError):
    """The provider refused the request itself: sending it again will not help."""

    code = "bad_request"


class StreamBroken(ModelError):
    """The stream ended early or became unreadable."""

    code = "stream_broken"
    retryable = True

    @classmethod
    def of(cls, error: ModelError) -> StreamBroken:
        """The failure of a reply of which a part was shown already."""
        if isinstance(error, cls):
            return error
        broken = cls(error.message, hint=error.hint, provider=error.provider, status=error.status)
        broken.retry_after_s = error.retry_after_s
        return broken


class TurnError(AgentlsError):
    """The agent loop had to stop; the history is valid and the turn can be continued."""

    code = "turn"


class IterationLimit(TurnError):
    """The turn's budget of model calls is used up."""

    code = "iteration_limit"


class UnknownNode(TurnError):
    """A node routed to a name that is not registered."""

    code = "unknown_node"


class NoResponse(TurnError):
    """The model returned neither text nor a call."""

    code = "no_response"


class RepeatedFailure(TurnError):
    """The same call failed three times in a row."""

    code = "repeated_failure"


class ToolError(AgentlsError):
    """A tool could not do what was asked; the model sees the text as the call's result."""

    code = "tool"


class InvalidArguments(ToolError):
    """The arguments do not fit the tool's schema."""

    code = "invalid_arguments"


class PathRefused(ToolError):
    """The path is outside the workspace, protected, or not a regular file."""

    code = "path_refused"


class StaleFile(ToolError):
    """The file changed since it was read."""

    code = "stale_file"


class EditRefused(ToolError):
    """The text to replace is missing or ambiguous."""

    code = "edit_refused"


class Denied(ToolError):
    """A person or a rule said no."""

    code = "denied"


class SessionError(AgentlsError):
    """A session cannot serve the request."""

    code = "session"


class UnknownSession(SessionError):
    """No session has this id."""

    code = "unknown_session"


class SessionBusy(SessionError):
    """A turn is already running in this session."""

    code = "session_busy"
