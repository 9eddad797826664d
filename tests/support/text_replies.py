"""Models that write thinking and calls into their text: a fake of one, and its replies in short."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

from hypothesis import strategies as st

from agentls.core.events import BlockAbort, BlockDelta, BlockStart, BlockStop, Event, Status, Usage
from agentls.core.messages import Item, Message, ToolCall
from agentls.core.ports import Model
from agentls.core.requests import (
    Capabilities,
    ModelInfo,
    ModelRequest,
    ToolCalling,
    ToolDefinition,
)
from agentls.llm.text_calls.recovered import RecoveringModel
from agentls.llm.text_calls.reply import ThinkingModel
from agentls.llm.text_calls.tools import TextToolModel
from support.reply_events import text

USAGE = Usage(input_tokens=7, output_tokens=3)
CUT = Status(state="finished", stop_reason="max_tokens")
USE = Status(state="finished", stop_reason="tool_use")
END = Status(state="finished", stop_reason="end_turn")

READ = ToolDefinition(
    name="read_file",
    description="Read a file.",
    parameters={
        "type": "object",
        "title": "Arguments",
        "properties": {
            "path": {"type": "string", "title": "Path"},
            "start_line": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        },
        "required": ["path"],
        "additionalProperties": False,
    },
)
GREP = ToolDefinition(
    name="grep",
    description="Search.",
    parameters={
        "type": "object",
        "properties": {"pattern": {"type": "string"}},
        "required": ["pattern"],
    },
)
CALL = '{"name": "read_file", "arguments": {"path": "a.py"}}'
ARGUMENTS = '{"path": "a.py"}'


class Inner:
    """Streams given events and keeps the requests; a raised exception may be among them."""

    def __init__(
        self, events: Sequence[Event | Exception], tool_calling: ToolCalling = "text"
    ) -> None:
        self.events = events
        self.info = ModelInfo(
            provider="fake", name="m", capabilities=Capabilities(tool_calling=tool_calling)
        )
        self.requests: list[ModelRequest] = []
        self.sent = 0
        self.closed_streams = 0
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        self.requests.append(request)
        try:
            for event in self.events:
                if isinstance(event, Exception):
                    raise event
                self.sent += 1
                yield event
        finally:
            self.closed_streams += 1

    async def aclose(self) -> None:
        self.closed = True


def asking(*items: Item, tools: tuple[ToolDefinition, ...] = (READ, GREP)) -> ModelRequest:
    return ModelRequest(
        system="Be brief.", items=items or (Message.of("user", "hi"),), tools=tools, max_tokens=50
    )


def counted() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"call_{next(numbers)}"


Wrapper = type[ThinkingModel] | type[TextToolModel] | type[RecoveringModel]


async def replies(
    wrapper: Wrapper, events: Sequence[Event | Exception], request: ModelRequest | None = None
) -> list[Event]:
    """The events that a wrapped model makes of those of the inner one."""
    model: Model = wrapper(Inner(events), new_id=counted())
    return [event async for event in model.stream(request or asking())]


def reply(*pieces: str, end: Status = END) -> list[Event]:
    """A whole reply of the inner model, all of it text."""
    return [*text(0, *pieces), USAGE, end]


def texts_of(*pieces: str) -> st.SearchStrategy[str]:
    """Texts made of these pieces, in any order and number."""
    return st.lists(st.sampled_from(pieces), max_size=30).map("".join)


def sliced(whole: str, cuts: Iterable[int]) -> list[str]:
    """A text in pieces."""
    places = sorted({0, len(whole), *(cut % (len(whole) + 1) for cut in cuts)})
    return [whole[one:other] for one, other in itertools.pairwise(places)]


def call(
    index: int, name: str = "read_file", *pieces: str, number: int = 1, item: ToolCall | None = None
) -> list[Event]:
    """A whole call, as it should come out."""
    call_id = f"call_{number}"
    pieces = pieces or (ARGUMENTS,)
    whole = item or ToolCall.parse(call_id, name, "".join(pieces))
    return [
        BlockStart(index=index, block="tool_call", call_id=call_id, name=name),
        *(BlockDelta(index=index, text=piece) for piece in pieces),
        BlockStop(index=index, item=whole),
    ]


def joined(events: Iterable[Event]) -> list[Event]:
    """The same events with the deltas of a block in one, in the order in which blocks begin."""
    blocks: dict[int, list[Event]] = {}
    rest: list[Event] = []
    for event in events:
        match event:
            case BlockStart() | BlockDelta() | BlockStop() | BlockAbort():
                block = blocks.setdefault(event.index, [])
                if isinstance(event, BlockDelta) and isinstance(block[-1], BlockDelta):
                    block[-1] = BlockDelta(index=event.index, text=block[-1].text + event.text)
                else:
                    block.append(event)
            case _:
                rest.append(event)
    return [event for block in blocks.values() for event in block] + rest
