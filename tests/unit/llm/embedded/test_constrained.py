"""Tool calling by JSON schema: what is asked of the inner model, and what its reply becomes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.errors import StreamBroken
from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Ping,
    Status,
    Usage,
)
from agentls.core.messages import Item, Message, Reasoning, ToolCall, ToolResult
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest, ToolDefinition
from agentls.llm.embedded.constrained import ConstrainedModel
from agentls.llm.embedded.constrained_prompt import MAX_CALLS, reply_schema, rewritten, with_tools
from support.reply_events import FINISHED, text, thinking

INFO = ModelInfo(provider="fake", name="m", capabilities=Capabilities(tool_calling="constrained"))
USAGE = Usage(input_tokens=7, output_tokens=3)
CUT = Status(state="finished", stop_reason="max_tokens")
USE = Status(state="finished", stop_reason="tool_use")

READ = ToolDefinition(
    name="read_file",
    description="Read a file.",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where it is."},
            "start_line": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
            "encoding": {"type": "string"},
        },
        "required": ["path"],
    },
)
GREP = ToolDefinition(
    name="grep",
    description="Search.",
    parameters={
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "path": {"type": "string"}},
        "required": ["pattern"],
    },
)
READ_REPLY = {
    "type": "object",
    "properties": {
        "tool": {"const": "read_file"},
        "arguments": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "start_line": {"type": "integer"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    },
    "required": ["tool", "arguments"],
    "additionalProperties": False,
}
GREP_REPLY = {
    "type": "object",
    "properties": {
        "tool": {"const": "grep"},
        "arguments": {
            "type": "object",
            "properties": {"pattern": {"type": "string"}},
            "required": ["pattern"],
            "additionalProperties": False,
        },
    },
    "required": ["tool", "arguments"],
    "additionalProperties": False,
}
ANSWER_REPLY = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


class Inner:
    """Streams given events and keeps the requests; a raised exception may be among them."""

    info = INFO

    def __init__(self, events: Sequence[Event | Exception]) -> None:
        self.events = events
        self.requests: list[ModelRequest] = []
        self.closed_streams = 0
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        self.requests.append(request)
        try:
            for event in self.events:
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            self.closed_streams += 1

    async def aclose(self) -> None:
        self.closed = True


def asking(*items: Item, tools: tuple[ToolDefinition, ...] = (READ, GREP)) -> ModelRequest:
    return ModelRequest(system="Be brief.", items=items, tools=tools, max_tokens=50)


HI = asking(Message.of("user", "hi"))


def counted() -> Callable[[], str]:
    numbers = iter(range(1, 100))
    return lambda: f"call_{next(numbers)}"


async def stream(events: Sequence[Event | Exception], request: ModelRequest = HI) -> list[Event]:
    model = ConstrainedModel(Inner(events), new_id=counted())
    return [event async for event in model.stream(request)]


def call(name: str, *pieces: str, index: int = 0) -> list[Event]:
    """A whole call as it should come out."""
    item = ToolCall.parse("call_1", name, "".join(pieces))
    return [
        BlockStart(index=index, block="tool_call", call_id="call_1", name=name),
        *(BlockDelta(index=index, text=piece) for piece in pieces),
        BlockStop(index=index, item=item),
    ]


# --- the reply -------------------------------------------------------------------------------


async def test_an_answer_streams_as_text() -> None:
    events = await stream([*text(0, '{"answer"', ': "Hi ', "th\\u00e9", 're."}'), USAGE, FINISHED])
    assert events == [*text(0, "Hi ", "thé", "re."), USAGE, FINISHED]


async def test_a_call_streams_as_a_call() -> None:
    reply = text(0, '{"tool": "read_file", "arg', 'uments": {"path": ', '"a.py"}', "}")
    events = await stream([Ping(), *reply, USAGE, FINISHED])
    assert events == [Ping(), *call("read_file", '{"path": ', '"a.py"}'), USAGE, USE]


async def test_thinking_keeps_its_place() -> None:
    events = await stream([*thinking(0, "hm"), *text(1, '{"answer": "a"}'), USAGE, FINISHED])
    assert events == [*thinking(0, "hm"), *text(1, "a"), USAGE, FINISHED]


async def test_a_server_that_ignores_the_schema_answers_in_plain_text() -> None:
    events = await stream([*text(0, "Just ", "words."), USAGE, FINISHED])
    assert events == [*text(0, "Just ", "words."), USAGE, FINISHED]


@pytest.mark.parametrize(
    "reply",
    [
        '{"tool": "read_file", "arguments": {"path": "a"}}',
        '{"arguments": {"path": "a"}, "tool": "read_file"}',
    ],
)
async def test_without_tools_what_looks_like_a_call_is_text(reply: str) -> None:
    request = asking(Message.of("user", "hi"), tools=())
    events = await stream([*text(0, reply), USAGE, FINISHED], request)
    assert events == [*text(0, reply), USAGE, FINISHED]


async def test_half_characters_in_a_call_are_mended() -> None:
    events = await stream([*text(0, r'{"tool": "\ud800", "arguments": {}}'), USAGE, FINISHED])
    assert events == [*call("\ufffd", "{}"), USAGE, USE]
    reply = r'{"arguments": {"path": "\ud800"}, "tool": "read_file"}'
    events = await stream([*text(0, reply), USAGE, FINISHED])
    assert events == [*call("read_file", '{"path": "\ufffd"}'), USAGE, USE]


async def test_a_call_cut_at_the_token_limit_is_aborted() -> None:
    reply = text(0, '{"tool": "read_file", "arguments": {"path": "a.p')
    events = await stream([*reply, USAGE, CUT])
    assert events == [
        *call("read_file", '{"path": "a.p')[:-1],
        BlockAbort(index=0, reason="the reply ended inside the call"),
        USAGE,
        CUT,
    ]


async def test_a_call_cut_in_its_name_shows_nothing() -> None:
    assert await stream([*text(0, '{"tool": "read_f'), USAGE, CUT]) == [USAGE, CUT]


async def test_an_answer_cut_at_the_token_limit_is_kept() -> None:
    events = await stream([*text(0, '{"answer": "so fa'), USAGE, CUT])
    assert events == [*text(0, "so fa"), USAGE, CUT]


@pytest.mark.parametrize(
    "reply", ['{"answer": "so fa', '{"tool": "grep", "arguments": {"pattern"', '{"too']
)
async def test_a_reply_that_ends_midway_for_no_reason_is_broken(reply: str) -> None:
    with pytest.raises(StreamBroken, match="midway"):
        await stream([*text(0, reply), USAGE, FINISHED])


@pytest.mark.parametrize(
    ("reply", "open_block"),
    [
        ('{"answer": "so fa', text(0, "so fa")[:-1]),
        ('{"tool": "grep", "arguments": {"pa', call("grep", '{"pa')[:-1]),
    ],
)
async def test_a_stream_that_breaks_aborts_what_is_open(
    reply: str, open_block: list[Event]
) -> None:
    got: list[Event] = []
    inner = Inner(
        [*text(0, reply)[:-1], BlockAbort(index=0, reason="gone"), StreamBroken("It broke.")]
    )
    with pytest.raises(StreamBroken, match="It broke"):
        async for event in ConstrainedModel(inner, new_id=counted()).stream(HI):
            got.append(event)
    assert got == [*open_block, BlockAbort(index=0, reason="gone")]


async def test_closing_the_stream_closes_the_inner_one_at_once() -> None:
    inner = Inner([*text(0, '{"answer": "a', "b", 'c"}'), USAGE, FINISHED])
    model = ConstrainedModel(inner)
    events = model.stream(HI)
    await anext(events)
    await events.aclose()
    assert inner.closed_streams == 1
    await model.aclose()
    assert inner.closed


@given(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=40),
    st.lists(st.integers(min_value=1, max_value=9), min_size=1, max_size=30),
)
async def test_an_answer_is_character_true_in_any_slicing(answer: str, sizes: list[int]) -> None:
    rest = json.dumps({"answer": answer})
    pieces = []
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    events = await stream([*text(0, *(p for p in [*pieces, rest] if p)), USAGE, FINISHED])
    deltas = [event.text for event in events if isinstance(event, BlockDelta)]
    assert all(delta.encode("utf-8") for delta in deltas)
    assert "".join(deltas) == answer
    assert events[-3:] == [text(0, answer)[-1], USAGE, FINISHED]


# --- the request -----------------------------------------------------------------------------


async def sent(request: ModelRequest) -> ModelRequest:
    inner = Inner([*text(0, '{"answer": "a"}'), USAGE, FINISHED])
    async for _ in ConstrainedModel(inner).stream(request):
        pass
    return inner.requests[0]


async def test_the_inner_model_gets_words_and_a_schema_instead_of_tools() -> None:
    request = await sent(HI)
    assert request == ModelRequest(
        system=with_tools("Be brief.", (READ, GREP)),
        items=(Message.of("user", "hi"),),
        max_tokens=50,
        response_schema={"oneOf": [READ_REPLY, GREP_REPLY, ANSWER_REPLY]},
    )
    assert request.system.split("\n")[:5] == [
        "Be brief.",
        "",
        "Every reply is one JSON object: either one call",
        '{"tool": "read_file", "arguments": {"path": "..."}} Read a file. Optional: start_line.',
        '{"tool": "grep", "arguments": {"pattern": "..."}} Search.',
    ]
    assert request.system.split("\n")[-4:] == [
        "Examples:",
        'Show main.py {"tool": "read_file", "arguments": {"path": "main.py"}}',
        'Where is the port set? {"tool": "grep", "arguments": {"pattern": "port"}}',
        'Thanks! {"answer": "You are welcome."}',
    ]


async def test_the_history_is_told_in_the_form_of_replies() -> None:
    items = (
        Message.of("user", "Show a.py"),
        Reasoning(text="hm", provider="fake"),
        ToolCall(call_id="1", name="read_file", arguments={"path": "ä.py"}),
        ToolResult(call_id="1", name="read_file", content="x = 1"),
        ToolCall(call_id="2", name="grep", invalid="{"),
        ToolResult(call_id="2", name="grep", content="Error: no JSON", is_error=True),
        Message.of("assistant", "It sets x."),
        Message.of("user", "Thanks"),
    )
    got = [(item.role, item.text) for item in (await sent(asking(*items))).items]  # type: ignore[union-attr]  # all are messages
    assert [role for role, _ in got] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert got[1][1] == '{"tool": "read_file", "arguments": {"path": "ä.py"}}'
    assert got[2][1].startswith("Result of read_file:\nx = 1\n\n")
    assert got[3][1] == '{"tool": "grep", "arguments": {}}'
    assert got[4][1].startswith("Result of grep:\nError: no JSON\n\n")
    assert got[4][1].rpartition("\n")[2] != got[2][1].rpartition("\n")[2]
    assert got[5][1] == '{"answer": "It sets x."}'


async def test_each_round_only_adds_to_what_was_sent() -> None:
    question = Message.of("user", "Show a.py")
    call = ToolCall(call_id="1", name="read_file", arguments={"path": "a.py"})
    result = ToolResult(call_id="1", name="read_file", content="x = 1")
    first = await sent(asking(question))
    second = await sent(asking(question, call, result))
    third = await sent(asking(question, call, result, call, result))
    assert first.system == second.system == third.system
    assert second.items[:1] == first.items
    assert third.items[:3] == second.items


async def test_a_result_that_was_seen_is_not_read_again() -> None:
    call = ToolCall(call_id="1", name="grep", arguments={"pattern": "x"})
    long = ToolResult(call_id="1", name="grep", content="a.py:1: x" * 20)
    short = ToolResult(call_id="1", name="grep", content="No matches.")
    sent_items = (await sent(asking(call, long, call, long, call, short, call, short))).items
    results = [item.text for item in sent_items if isinstance(item, Message) if item.role == "user"]
    assert [long.content in text for text in results] == [True, False, False, False]
    assert "The same as above: nothing has changed." in results[1]
    assert [short.content in text for text in results] == [False, False, True, True]


async def test_without_tools_nothing_is_constrained() -> None:
    items = (
        Message.of("user", "Show a.py"),
        ToolCall(call_id="1", name="read_file", arguments={"path": "a.py"}),
        ToolResult(call_id="1", name="read_file", content="x = 1"),
        Message.of("assistant", "It sets x."),
        Message.of("user", "Sum up."),
    )
    request = await sent(asking(*items, tools=()))
    assert request.system == "Be brief."
    assert request.response_schema is None
    assert request.items[3] == items[3]
    assert all(isinstance(item, Message) for item in request.items)


def rounds(*calls: tuple[str, str]) -> list[Item]:
    items: list[Item] = [Message.of("user", "q")]
    for number, (name, argument) in enumerate(calls):
        arguments = {"path" if name == "read_file" else "pattern": argument}
        items.append(ToolCall(call_id=str(number), name=name, arguments=dict(arguments)))
        items.append(ToolResult(call_id=str(number), name=name, content="r"))
    return items


@pytest.mark.parametrize(
    ("items", "offered"),
    [
        (rounds(("read_file", "a")), [READ_REPLY, GREP_REPLY]),
        (rounds(("read_file", "a"), ("read_file", "b")), [READ_REPLY, GREP_REPLY]),
        (rounds(("read_file", "a"), ("read_file", "a")), []),
        (
            [*rounds(("grep", "a"), ("grep", "a")), Message.of("user", "again")],
            [READ_REPLY, GREP_REPLY],
        ),
        (rounds(*[("grep", str(n)) for n in range(MAX_CALLS)]), []),
    ],
)
def test_what_repeats_itself_is_not_offered_again(items: list[Item], offered: list[object]) -> None:
    assert reply_schema((READ, GREP), items) == {"oneOf": [*offered, ANSWER_REPLY]}


def test_nested_parameters_are_resolved_and_stripped() -> None:
    tool = ToolDefinition(
        name="edit",
        description="Edit.",
        parameters={
            "type": "object",
            "$defs": {
                "Hunk": {
                    "type": "object",
                    "title": "Hunk",
                    "properties": {"old": {"type": "string", "pattern": "x+"}},
                    "required": ["old"],
                }
            },
            "properties": {
                "hunks": {"type": "array", "items": {"$ref": "#/$defs/Hunk"}, "minItems": 1},
                "mode": {"enum": ["a", "b"], "type": "string"},
            },
            "required": ["hunks", "mode"],
        },
    )
    schema = reply_schema((tool,), ())
    hunk = {
        "type": "object",
        "properties": {"old": {"type": "string"}},
        "required": ["old"],
        "additionalProperties": False,
    }
    assert schema["oneOf"][0]["properties"]["arguments"] == {  # type: ignore[index, call-overload]  # JSON of a known shape
        "type": "object",
        "properties": {
            "hunks": {"type": "array", "minItems": 1, "items": hunk},
            "mode": {"type": "string", "enum": ["a", "b"]},
        },
        "required": ["hunks", "mode"],
        "additionalProperties": False,
    }


def test_the_six_tools_take_few_words() -> None:
    names = ("read_file", "write_file", "edit_file", "glob", "grep", "bash")
    tools = [READ.model_copy(update={"name": name}) for name in names]
    assert len(with_tools("", tools)) < 1500


def test_a_result_that_says_the_same_again_points_up() -> None:
    long = "x" * 200
    items: list[Item] = [
        Message.of("user", "q"),
        *(
            item
            for n, content in enumerate((long, long, "r", "r"))
            for item in (
                ToolCall(call_id=str(n), name="read_file"),
                ToolResult(call_id=str(n), name="read_file", content=content),
            )
        ),
    ]
    texts = [m.text for m in rewritten(items, as_json=True) if isinstance(m, Message)]
    results = [text.split("\n")[1] for text in texts if text.startswith("Result of")]
    assert results == [long, "The same as above: nothing has changed.", "r", "r"]
