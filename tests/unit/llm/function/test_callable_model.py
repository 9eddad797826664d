"""A user's function as a model: what it may take and give, and that nothing of it blocks."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agentls.core.errors import (
    BadRequest,
    ModelError,
    NoResponse,
    RateLimited,
    SettingsError,
    StreamBroken,
)
from agentls.core.events import Event, Status, Usage
from agentls.core.messages import ImageBlock, Message, TextBlock, ToolCall, ToolResult
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest, ToolDefinition
from agentls.llm.failover import PooledModel
from agentls.llm.function.model import CallableModel, load_callable
from support.agent_fakes import FakeTool, rig
from support.pool_members import Member, ask
from support.proofs import proving
from support.reply_events import FINISHED, cut_text, text

HI = ModelRequest(
    items=(
        Message.of("user", "first"),
        Message.of("assistant", "yes?"),
        Message.of("user", "hi"),
        ToolResult(call_id="c", name="t", content="a result"),
    )
)
HELLO = [*text(0, "hello"), FINISHED]
TWO = [*text(0, "hel", "lo"), FINISHED]


# --- what a function may be ------------------------------------------------------------------


def plain(request: ModelRequest) -> str:
    assert request == HI
    return "hello"


async def coroutine(request: ModelRequest) -> str:
    assert request == HI
    return "hello"


def of_text(question: str) -> str:
    assert question == "hi"
    return "hello"


def lines(request: ModelRequest) -> Iterator[str]:
    yield from ("hel", "", "lo")


async def lines_async(request: ModelRequest) -> AsyncIterator[str]:
    for piece in ("hel", "", "lo"):
        yield piece


def returns_coroutine(request: ModelRequest) -> object:
    return coroutine(request)


def returns_stream(request: ModelRequest) -> object:
    return lines_async(request)


async def awaits_stream(request: ModelRequest) -> object:
    return lines(request)


class Recorder:
    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, question: str) -> str:
        self.asked.append(question)
        return "hello"

    async def method(self, question: str) -> str:
        return self(question)


def extra(prefix: str, request: ModelRequest, limit: int = 5) -> list[str]:
    return [prefix, "lo"]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plain, HELLO),
        (coroutine, HELLO),
        (of_text, HELLO),
        (lines, TWO),
        (lines_async, TWO),
        (returns_coroutine, HELLO),
        (returns_stream, TWO),
        (awaits_stream, TWO),
        (Recorder(), HELLO),
        (Recorder().method, HELLO),
        (functools.partial(extra, "hel"), TWO),
        (lambda request: ("hel", "lo"), TWO),
        (lambda request: map(str, ["hel", "lo"]), TWO),
    ],
)
async def test_every_kind_of_function_streams_one_block(
    function: Callable[[Any], object], expected: list[Event]
) -> None:
    assert await ask(CallableModel(function), HI) == (expected, None)


@pytest.mark.parametrize("nothing", [None, "", [], (), iter(())])
async def test_nothing_at_all_is_a_reply_without_blocks(nothing: object) -> None:
    assert await ask(CallableModel(lambda request: nothing), HI) == ([FINISHED], None)


async def test_no_text_of_a_user_is_an_empty_question() -> None:
    function = Recorder()
    await ask(CallableModel(function), ModelRequest())
    assert function.asked == [""]


def two_needed(request: ModelRequest, more: int) -> str:
    return ""


def none_taken() -> str:
    return ""


@pytest.mark.parametrize("function", [two_needed, none_taken])
def test_a_function_that_cannot_be_called_with_a_request(function: Callable[..., object]) -> None:
    with pytest.raises(SettingsError) as caught:
        CallableModel(function)
    assert str(caught.value) == (
        f"The function {function.__name__} cannot be called with one argument. "
        "It takes a ModelRequest, or the user's text as a str."
    )


def test_what_it_says_of_itself() -> None:
    everything = Capabilities(images=True, audio=True, documents=True, thinking=True)
    assert CallableModel(plain).info == ModelInfo(
        provider="custom", name="custom", capabilities=everything
    )
    assert CallableModel(of_text).info.capabilities == Capabilities(tool_calling="none")
    can = Capabilities(images=True)
    model = CallableModel(of_text, name="n", provider="p", capabilities=can)
    assert model.info == ModelInfo(provider="p", name="n", capabilities=can)


async def test_media_it_cannot_take_are_refused_before_it_is_called() -> None:
    image = ImageBlock(mime_type="image/png", data="aGk=")
    message = Message(role="user", content=(TextBlock(text="hi"), image))
    request = ModelRequest(items=(message,))
    function = Recorder()
    blind = CallableModel(function, capabilities=Capabilities())
    events, error = await ask(blind, request)
    assert (events, function.asked) == ([], [])
    assert isinstance(error, BadRequest)


@proving("custom", "images", "usage", "cache", peer="in process")
async def test_a_function_sees_images_and_says_what_it_used() -> None:
    image = ImageBlock(mime_type="image/png", data="aGk=")
    request = ModelRequest(items=(Message(role="user", content=(image,)),))
    usage = Usage(input_tokens=9, output_tokens=2, cache_read_tokens=4)

    def function(asked: ModelRequest) -> Iterator[object]:
        assert asked == request
        yield usage
        yield "a "
        yield "hi"

    assert await ask(CallableModel(function), request) == (
        [usage, *text(0, "a ", "hi"), FINISHED],
        None,
    )


async def test_what_a_function_of_text_does_not_see_is_said_once() -> None:
    tool = ToolDefinition(name="t", description="", parameters={"type": "object"})
    request = HI.model_copy(update={"tools": (tool,), "temperature": 0.5})
    model = CallableModel(of_text)
    note = Status(state="warning", message="custom does not take temperature, tools: left out.")
    assert await ask(model, request) == ([note, *HELLO], None)
    assert await ask(model, request) == (HELLO, None)


# --- exceptions ------------------------------------------------------------------------------


def raising(error: BaseException) -> Callable[[ModelRequest], object]:
    def failing(request: ModelRequest) -> object:
        raise error

    return failing


def raising_later(error: BaseException) -> Callable[[ModelRequest], object]:
    def failing(request: ModelRequest) -> Iterator[str]:
        yield "hel"
        raise error

    return failing


def raising_later_async(error: BaseException) -> Callable[[ModelRequest], object]:
    async def failing(request: ModelRequest) -> AsyncIterator[str]:
        yield "hel"
        raise error

    return failing


KEY = "sk-" + "a1b2c3d4" * 4
NAME = "{}.<locals>.failing"


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("bad thing.\nsecond line"), "ValueError: bad thing"),
        (KeyError(), "KeyError"),
        (RuntimeError(f"refused {KEY}"), "RuntimeError: refused [key]"),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration(), "RuntimeError: coroutine raised StopIteration"),
        (asyncio.CancelledError(), "RuntimeError: CancelledError in its thread"),
        (OSError("a\x1b[31m"), "OSError: a\\u{1b}[31m"),
    ],
)
async def test_an_exception_is_a_failure_that_names_the_function(
    raised: BaseException, said: str
) -> None:
    events, error = await ask(CallableModel(raising(raised), provider="p"), HI)
    assert events == []
    assert type(error) is ModelError
    assert str(error) == f"The function {NAME.format('raising')} failed: {said}."
    assert (error.provider, error.retryable) == ("p", False)


@pytest.mark.parametrize("make", [raising_later, raising_later_async])
async def test_an_exception_midway_ends_the_block(
    make: Callable[[BaseException], Callable[[ModelRequest], object]],
) -> None:
    events, error = await ask(CallableModel(make(ValueError("bad"))), HI)
    assert events == cut_text("hel")
    assert type(error) is ModelError
    assert str(error) == f"The function {NAME.format(make.__name__)} failed: ValueError: bad."


@pytest.mark.parametrize("raised", [ConnectionResetError("gone"), TimeoutError("slow")])
async def test_a_connection_that_broke_may_work_later(raised: Exception) -> None:
    _, error = await ask(CallableModel(raising(raised)), HI)
    assert type(error) is ModelError and error.retryable
    events, error = await ask(CallableModel(raising_later(raised)), HI)
    assert events == cut_text("hel")
    assert type(error) is StreamBroken and error.retryable


async def test_an_error_that_is_classified_stays_so() -> None:
    raised = RateLimited(f"slow down, {KEY}", provider="theirs", status=429)
    events, error = await ask(CallableModel(raising(raised)), HI)
    assert (events, error) == ([], raised)
    assert str(raised) == "slow down, [key]"
    _, error = await ask(CallableModel(raising_later(raised)), HI)
    assert type(error) is StreamBroken and (error.status, error.provider) == (429, "theirs")


# --- with the rest ---------------------------------------------------------------------------


@proving("custom", "text", "tools", peer="in process")
async def test_in_a_turn_its_calls_run_and_its_text_answers() -> None:
    async def act(arguments: dict[str, JsonValue]) -> str:
        return f"did {arguments['n']}"

    def function(request: ModelRequest) -> object:
        last = request.items[-1]
        if isinstance(last, ToolResult):
            return f"It says: {last.content}."
        return ToolCall(call_id="c", name="act", arguments={"n": 1})

    agent = rig(CallableModel(function), FakeTool("act", act))
    assert await agent.ask("Do it.") == "It says: did 1."


@proving("custom", "resume", peer="in process")
async def test_in_a_turn_a_reply_that_broke_off_is_gone_on_with() -> None:
    asked: list[ModelRequest] = []

    def function(request: ModelRequest) -> Iterator[str]:
        asked.append(request)
        if len(asked) == 1:
            yield "one, "
            raise ConnectionError("gone")
        yield "two"

    agent = rig(CallableModel(function))
    assert await agent.ask("Count.") == "one, two"
    assert Message.of("assistant", "one, ") in asked[1].items


async def test_in_a_turn_nothing_at_all_is_no_response() -> None:
    with pytest.raises(NoResponse):
        await rig(CallableModel(lambda request: None)).ask("Hello?")


async def test_in_a_pool_another_model_stands_in_for_it() -> None:
    pool = PooledModel(
        [CallableModel(raising(ValueError("bad"))), Member("b", [*HELLO])], order="listed"
    )
    said = "The function raising.<locals>.failing failed: ValueError: bad. Trying b (b-1)."
    assert await ask(pool, HI) == ([Status(state="switching", message=said), *HELLO], None)


# --- finding it ------------------------------------------------------------------------------


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], str]:
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, source: str) -> str:
        (tmp_path / f"{name}.py").write_text(source, "utf-8")
        return name

    return write


async def test_a_function_is_found_by_its_place(module: Callable[[str, str], str]) -> None:
    name = module(
        "found_here",
        "from __future__ import annotations\n"
        "def answer(question: str) -> str:\n    return question.upper()\n"
        "class Models:\n    answer = staticmethod(answer)\n",
    )
    for place in (f"{name}:answer", f" {name}:Models.answer\n"):
        assert (await ask(CallableModel(load_callable(place)), HI))[0] == [
            *text(0, "HI"),
            FINISHED,
        ]


@pytest.mark.parametrize(
    "place",
    ["", "json", "json:", ":loads", "json.loads", "a b:c", "json:loads:x", "../x:y", ".a:b"],
)
def test_a_place_that_is_none(place: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_callable(place)
    assert str(caught.value) == (
        f"{place!r} does not name a function. It looks like package.module:function."
    )


@pytest.mark.parametrize(
    ("source", "place", "said"),
    [
        ("", "nowhere_at_all:f", "The module nowhere_at_all cannot be imported: "
         "ModuleNotFoundError: No module named 'nowhere_at_all'. "
         "Is it installed where agentls is, or in a folder that PYTHONPATH names?"),
        ("1/0\n", "{}:f", "The module {} cannot be imported: "
         "ZeroDivisionError: division by zero. "
         "Is it installed where agentls is, or in a folder that PYTHONPATH names?"),
        ("raise SystemExit(1)\n", "{}:f", "The module {} cannot be imported: "
         "SystemExit: 1. Is it installed where agentls is, or in a folder that PYTHONPATH names?"),
        ("x = 1\n", "{}:f.g", "The module {} has no f.g. Check llm.custom.function."),
        ("x = 1\n", "{}:x", "{}:x cannot be called: it is of type int."),
        ("def __getattr__(name):\n    raise ImportError('no torch')\n", "{}:f",
         "{}:f cannot be loaded: ImportError: no torch."),
    ],
)  # fmt: skip
def test_a_function_that_cannot_be_had(
    source: str, place: str, said: str, module: Callable[[str, str], str]
) -> None:
    name = module(f"broken_{abs(hash((source, place)))}", source)
    with pytest.raises(SettingsError) as caught:
        load_callable(place.format(name))
    assert str(caught.value) == said.format(name)


def test_a_module_with_half_a_sentence(module: Callable[[str, str], str]) -> None:
    module("half_a_sentence", "def f(:\n")
    with pytest.raises(SettingsError, match="cannot be imported: SyntaxError"):
        load_callable("half_a_sentence:f")
