from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from agentls.core.errors import (
    BadRequest,
    ModelError,
    RateLimited,
    SettingsError,
    Unauthorized,
)
from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event, Status, Usage
from agentls.core.messages import Message, Reasoning, ToolCall, ToolResult
from agentls.core.requests import ModelRequest
from agentls.llm.scripted import ScriptedModel
from support.agent_fakes import script

ASK = ModelRequest(system="s", items=(Message.of("user", "question"),))


async def events(folder: Path, *replies: dict[str, JsonValue]) -> list[Event]:
    model = ScriptedModel(script(folder, *replies))
    return [event async for event in model.stream(ASK)]


async def test_thinking_text_and_calls_in_chunks(tmp_path: Path) -> None:
    call: JsonValue = {"name": "read_file", "arguments": {"path": "a"}}
    got = await events(
        tmp_path, {"thinking": "hmm", "text": "on it", "tool_calls": [call], "chunk": 4}
    )
    parsed = ToolCall(call_id="call_1_0", name="read_file", arguments={"path": "a"})
    assert got == [
        BlockStart(index=0, block="thinking"),
        BlockDelta(index=0, text="hmm"),
        BlockStop(index=0, item=Reasoning(text="hmm", provider="scripted")),
        BlockStart(index=1, block="text"),
        BlockDelta(index=1, text="on i"),
        BlockDelta(index=1, text="t"),
        BlockStop(index=1, item=Message.of("assistant", "on it")),
        BlockStart(index=2, block="tool_call", call_id="call_1_0", name="read_file"),
        BlockDelta(index=2, text='{"pa'),
        BlockDelta(index=2, text='th":'),
        BlockDelta(index=2, text=' "a"'),
        BlockDelta(index=2, text="}"),
        BlockStop(index=2, item=parsed),
        Usage(input_tokens=9, output_tokens=21, reasoning_tokens=3),
        Status(state="finished", stop_reason="tool_use"),
    ]


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, BadRequest, False),
        (401, Unauthorized, False),
        (429, RateLimited, True),
        (529, ModelError, True),
        (None, ModelError, False),
    ],
)
async def test_errors_are_classified(
    tmp_path: Path, status: int | None, kind: type[ModelError], retryable: bool
) -> None:
    with pytest.raises(kind) as caught:
        await events(tmp_path, {"error": "no", "status": status})
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.retryable) == (status, retryable)


async def test_running_out_of_lines_is_an_error(tmp_path: Path) -> None:
    model = ScriptedModel(script(tmp_path, {"text": "one"}))
    assert [e async for e in model.stream(ASK)]
    with pytest.raises(ModelError, match="has no reply left after 1"):
        [e async for e in model.stream(ASK)]


async def test_what_was_sent_is_checked(tmp_path: Path) -> None:
    assert await events(tmp_path, {"text": "ok", "expect": "quest"})
    with pytest.raises(ModelError, match="expected a message matching 'answer'"):
        await events(tmp_path, {"text": "ok", "expect": "answer"})
    result = ToolResult(call_id="1", name="t", content="Error: gone")
    request = ModelRequest(items=(Message.of("user", "q"), ToolCall(call_id="1", name="t"), result))
    model = ScriptedModel(script(tmp_path, {"text": "ok", "expect": "^Error: gone$"}))
    assert [e async for e in model.stream(request)]


@pytest.mark.parametrize(
    "line", ["nonsense", "[]", '{"texts": "x"}', '{"text": 5}', '{"text": "x", "chunk": 0}']
)
def test_a_line_that_is_no_reply_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"text": "ok"}}\n\n{line}\n', "utf-8")
    with pytest.raises(SettingsError, match=r"s\.jsonl, line 3: not a scripted reply"):
        ScriptedModel(path)


def test_a_missing_script_is_an_error_for_people(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        ScriptedModel(tmp_path / "none.jsonl")


HARMFUL = {
    "an expression that does not compile": '{"text": "x", "expect": "("}',
    "nested without end": "[" * 100_000,
    "nested deeply": '{"text": ' + "[" * 200 + "]" * 200 + "}",
    "half a character": r'{"text": "\ud800"}',
    "half a character in a name": r'{"tool_calls": [{"name": "f\udc00"}]}',
    "a wait without end": '{"text": "x", "delay_s": 1e999}',
}


@pytest.mark.parametrize("line", HARMFUL.values(), ids=list(HARMFUL))
def test_a_line_that_could_not_be_played_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text('{"text": "x"}\n' + line + "\n", "utf-8")
    with pytest.raises(SettingsError, match="line 2: not a scripted reply"):
        ScriptedModel(path)


def test_a_byte_order_mark_is_no_part_of_the_script(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"text": "x"}\r\n')
    ScriptedModel(path)
