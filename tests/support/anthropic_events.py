"""What replies of `/v1/messages` come out as, and a way to read them."""

from __future__ import annotations

from pydantic import JsonValue

from agentls.core.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Status,
    Usage,
)
from agentls.core.messages import Reasoning, ToolCall
from agentls.llm.schemes.anthropic import MessagesReader
from support import anthropic_streams, openai_streams
from support.anthropic_streams import (
    STOP,
    ended,
    sse,
    start,
)
from support.openai_streams import counter

USAGE = Usage(input_tokens=7, output_tokens=3)
TOOL_USE = Status(state="finished", stop_reason="tool_use")


def read(*slices: bytes) -> tuple[list[Event], tuple[str, str] | None]:
    return openai_streams.read(*slices, reader=MessagesReader("fake", counter()))


def reply(*events: anthropic_streams.Event, reason: str = "end_turn") -> list[Event]:
    """The events of a whole reply, usage and start left out."""
    given_, failure = read(sse(start(), *events, ended(reason), STOP))
    assert failure is None
    return given_


def called(
    index: int, call_id: str, name: str, *pieces: str, **arguments: JsonValue
) -> list[Event]:
    """A call; its end comes at the end of the reply."""
    return [
        BlockStart(index=index, block="tool_call", call_id=call_id, name=name),
        *(BlockDelta(index=index, text=piece) for piece in pieces),
        BlockStop(index=index, item=ToolCall(call_id=call_id, name=name, arguments=arguments)),
    ]


def thought(index: int, *pieces: str, **signed: str | None) -> list[Event]:
    item = Reasoning(text="".join(pieces), provider="fake", **signed)
    return [
        BlockStart(index=index, block="thinking"),
        *(BlockDelta(index=index, text=piece) for piece in pieces),
        BlockStop(index=index, item=item),
    ]
