"""The scripted model: replies read from a file, one JSON object a line, in order.

Deterministic, for tests of this package and for users who test their rules and hooks with it. The
file format is described in `docs/configuration.md`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path

from pydantic import ConfigDict, Field, JsonValue, ValidationError, field_validator

from agentls.core.errors import BadRequest, ModelError, RateLimited, SettingsError, Unauthorized
from agentls.core.events import (
    BlockDelta,
    BlockKind,
    BlockStart,
    BlockStop,
    Event,
    Status,
    Usage,
)
from agentls.core.messages import Frozen, Item, Message, Reasoning, TextBlock, ToolCall, ToolResult
from agentls.core.nesting import deeper_than
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest

_PROVIDER = "scripted"
_MAX_NESTING = 100


class ScriptedCall(Frozen):
    """A tool call of a scripted reply. Arguments that are a string are sent as raw text."""

    name: str
    arguments: dict[str, JsonValue] | str = Field(default_factory=dict)
    id: str | None = None


class Reply(Frozen):
    """One line of a script."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: str | None = None
    thinking: str | None = None
    tool_calls: tuple[ScriptedCall, ...] = Field(default=(), strict=False)
    error: str | None = None
    status: int | None = None
    delay_s: float = Field(default=0.0, ge=0, strict=False, allow_inf_nan=False)
    chunk: int | None = Field(default=None, ge=1)
    expect: str | None = None

    @field_validator("expect")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"'expect' is no regular expression: {error}") from None
        return value


def load_script(path: Path) -> tuple[Reply, ...]:
    """Read and check a whole script.

    Raises:
        SettingsError: the file cannot be read, or a line is not a reply.
    """
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The script {path} cannot be read: {error}.",
            hint="Set AGENTLS_SCRIPT to a UTF-8 file with one JSON object a line.",
        ) from error
    replies = []
    for line_no, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            replies.append(_reply(line))
        except ValueError as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            raise SettingsError(
                f"{path}, line {line_no}: not a scripted reply: {reason}.",
                hint='A line looks like {"text": "…"} or {"tool_calls": […]}.',
            ) from error
    return tuple(replies)


def _reply(line: str) -> Reply:
    try:
        value = json.loads(line)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone \\ud… escape)") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if deeper_than(value, _MAX_NESTING):
        raise ValueError("it is nested too deeply")
    return Reply.model_validate(value)


class ScriptedModel:
    """Plays a script; each request takes the next line. Shared by every session of a process."""

    def __init__(self, path: Path) -> None:
        """Load the script at once, so that a bad one is reported before any turn."""
        self._path = path
        self._replies = load_script(path)
        self._next = 0
        self._info = ModelInfo(
            provider=_PROVIDER,
            name=path.name,
            capabilities=Capabilities(images=True, audio=True, documents=True),
        )

    @property
    def info(self) -> ModelInfo:
        """A model that can take everything."""
        return self._info

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """Play the next line.

        Raises:
            ModelError: the line says so, its `expect` does not match, or no line is left.
        """
        reply = self._take(request)
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        if reply.error is not None:
            raise _failure(reply.error, reply.status)
        for event in _events(reply, self._next):
            yield event
            if reply.chunk is not None and isinstance(event, BlockDelta):
                # Hand over to other tasks between deltas, as a network stream would.
                await asyncio.sleep(0)
        calls = bool(reply.tool_calls)
        yield _usage(request, reply)
        yield Status(state="finished", stop_reason="tool_use" if calls else "end_turn")

    async def aclose(self) -> None:
        """Nothing to release."""

    def _take(self, request: ModelRequest) -> Reply:
        if self._next >= len(self._replies):
            raise ModelError(
                f"The script {self._path.name} has no reply left after {self._next}.",
                hint="Add a line for each request of the turn.",
                provider=_PROVIDER,
            )
        reply = self._replies[self._next]
        self._next += 1
        if reply.expect is not None:
            last = _last_text(request.items)
            if not re.search(reply.expect, last, re.DOTALL):
                raise ModelError(
                    f"Reply {self._next} of {self._path.name} expected a message matching "
                    f"{reply.expect!r}, but the last one sent was {last[:500]!r}.",
                    provider=_PROVIDER,
                )
        return reply


def _failure(message: str, status: int | None) -> ModelError:
    kind: type[ModelError] = {400: BadRequest, 401: Unauthorized, 403: Unauthorized}.get(
        status or 0, ModelError
    )
    if status == 429:
        kind = RateLimited
    retryable = status is not None and (status == 429 or status >= 500)
    return kind(message, provider=_PROVIDER, status=status, retryable=retryable)


def _last_text(items: tuple[Item, ...]) -> str:
    if not items:
        return ""
    match items[-1]:
        case Message() as message:
            return message.text
        case ToolResult(content=content):
            return content
        case ToolCall(name=name):
            return name
        case Reasoning(text=text):
            return text


def _events(reply: Reply, reply_no: int) -> list[Event]:
    events: list[Event] = []
    index = 0

    def block(kind: BlockKind, text: str, item: Item, call_id: str = "", name: str = "") -> None:
        nonlocal index
        events.append(BlockStart(index=index, block=kind, call_id=call_id, name=name))
        size = reply.chunk or max(len(text), 1)
        events.extend(
            BlockDelta(index=index, text=text[at : at + size]) for at in range(0, len(text), size)
        )
        events.append(BlockStop(index=index, item=item))
        index += 1

    if reply.thinking is not None:
        block("thinking", reply.thinking, Reasoning(text=reply.thinking, provider=_PROVIDER))
    if reply.text is not None:
        message = Message(role="assistant", content=(TextBlock(text=reply.text),))
        block("text", reply.text, message)
    for call_no, call in enumerate(reply.tool_calls):
        call_id = call.id or f"call_{reply_no}_{call_no}"
        raw = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        block("tool_call", raw, ToolCall.parse(call_id, call.name, raw), call_id, call.name)
    return events


def _usage(request: ModelRequest, reply: Reply) -> Usage:
    # Characters stand in for tokens: enough to see totals add up, and the same on every machine.
    sent = len(request.system) + sum(len(_last_text((item,))) for item in request.items)
    said = len(reply.text or "") + len(reply.thinking or "")
    said += sum(len(json.dumps(call.arguments)) for call in reply.tool_calls)
    return Usage(input_tokens=sent, output_tokens=said, reasoning_tokens=len(reply.thinking or ""))
