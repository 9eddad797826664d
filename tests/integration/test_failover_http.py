"""The failover pool over real HTTP, and in a turn of the agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from pydantic import JsonValue, SecretStr

from agentls.core.errors import BadRequest, ModelError, StreamBroken
from agentls.core.events import BlockDelta, Event, Status
from agentls.core.messages import Message
from agentls.core.requests import Capabilities, ModelInfo
from agentls.llm.failover import PooledModel
from agentls.llm.http.retry import RetryPolicy
from agentls.llm.http.transport import Transport
from agentls.llm.http_model import HttpModel
from agentls.llm.schemes.openai_chat import OpenAIChat
from support.agent_fakes import FakeTool, rig
from support.openai_rig import HELLO, KEY
from support.openai_server import (
    CUT,
    RESET,
    STALL,
    OpenAIServer,
    Reply,
    called,
    refused,
    said,
    streamed,
)
from support.openai_streams import call, chunk, sse
from support.pool_members import ask
from support.reply_events import cut_text


def report(message: str, **more: JsonValue) -> dict[str, JsonValue]:
    return {"error": {"message": message, **more}}


BUSY = report("Overloaded", type="overloaded_error")


class Pool:
    """Two servers, "one" and "two", asked in this order; waits are noted instead of waited."""

    def __init__(self, one: str, two: str) -> None:
        self._urls = {"one": one, "two": two}
        self.waits: list[float] = []

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    @contextlib.asynccontextmanager
    async def model(self) -> AsyncGenerator[PooledModel, None]:
        retry = RetryPolicy(random=lambda: 1.0, sleep=self._sleep)
        members = [_member(name, url) for name, url in self._urls.items()]
        pool = PooledModel(members, order="listed", retry=retry, clock=lambda: 0.0)
        try:
            yield pool
        finally:
            await pool.aclose()

    async def ask(self) -> tuple[list[Event], ModelError | None]:
        async with self.model() as model:
            return await ask(model)


def _member(name: str, url: str) -> HttpModel:
    transport = Transport(url, provider=name, api_key=SecretStr(KEY), retry=RetryPolicy(attempts=1))
    info = ModelInfo(provider=name, name="m", capabilities=Capabilities())
    return HttpModel(info, OpenAIChat("m", provider=name), transport)


def switching(message: str) -> Status:
    return Status(state="switching", message=message)


BUSY_SAID = "one answered 529 (overloaded): Overloaded."


def _headers(after: str | None) -> dict[str, str]:
    """Retry-After as it is given, or as a date when it is written `+seconds`."""
    if after is not None and after.startswith("+"):
        date = datetime.now(UTC) + timedelta(seconds=int(after))
        after = format_datetime(date, usegmt=True)
    return {} if after is None else {"retry_after": after}


@pytest.mark.parametrize("after", [None, "3", "+3000", "soon", "-1", "nan"])
async def test_an_overloaded_server_is_not_waited_for_while_another_is_there(
    after: str | None,
) -> None:
    async with (
        OpenAIServer(refused(529, BUSY, **_headers(after))) as one,
        OpenAIServer(said("hello world")) as two,
    ):
        pool = Pool(one.url, two.url)
        events, error = await pool.ask()
    assert error is None
    assert events == [switching(f"{BUSY_SAID} Trying two (m)."), *HELLO]
    assert (pool.waits, len(one.exchanges), len(two.exchanges)) == ([], 1, 1)


@pytest.mark.parametrize(
    ("after", "least", "most"),
    [(None, 0.5, 0.5), ("3", 3, 3), ("+40", 10, 40), ("soon", 0.5, 0.5), ("0", 0.5, 0.5)],
)
async def test_a_second_try_waits_as_the_server_asks(
    after: str | None, least: float, most: float
) -> None:
    async with (
        OpenAIServer(refused(529, BUSY, **_headers(after)), said("hello world")) as one,
        OpenAIServer(refused(401)) as two,
    ):
        pool = Pool(one.url, two.url)
        events, error = await pool.ask()
    assert error is None
    assert events[2:] == HELLO
    assert len(pool.waits) == 1 and least <= pool.waits[0] <= most
    assert (len(one.exchanges), len(two.exchanges)) == (2, 1)


async def test_a_server_that_asks_for_an_hour_is_out() -> None:
    async with (
        OpenAIServer(refused(429, retry_after="3600")) as one,
        OpenAIServer(refused(503), said("hello world")) as two,
    ):
        pool = Pool(one.url, two.url)
        events, error = await pool.ask()
    assert (error, events[2:], pool.waits) == (None, HELLO, [0.5])
    assert (len(one.exchanges), len(two.exchanges)) == (1, 2)


@pytest.mark.parametrize("end", [CUT, RESET])
async def test_a_connection_that_ends_before_a_word_switches(end: str) -> None:
    broken = Reply([b": hello\n\n", end])  # type: ignore[list-item]  # one of two literals
    async with OpenAIServer(broken) as one, OpenAIServer(said("hello world")) as two:
        events, error = await Pool(one.url, two.url).ask()
    assert error is None
    told = [e for e in events if isinstance(e, Status) and e.state == "switching"]
    assert len(told) == 1 and told[0].message.endswith("Trying two (m).")
    assert events[-len(HELLO) :] == HELLO


async def test_an_error_under_status_200_switches() -> None:
    inside = Reply([sse(report("Overloaded", code=529), done=False)])
    async with OpenAIServer(inside) as one, OpenAIServer(said("hello world")) as two:
        events, error = await Pool(one.url, two.url).ask()
    assert error is None
    assert events == [switching("one reported an error: Overloaded. Trying two (m)."), *HELLO]


async def test_a_server_that_is_not_there_switches() -> None:
    async with OpenAIServer() as one:
        url = one.url
    async with OpenAIServer(said("hello world")) as two:
        events, error = await Pool(url, two.url).ask()
    assert error is None
    assert events[1:] == HELLO


async def test_a_bad_request_is_sent_to_nobody_else() -> None:
    body = report("messages: at least one message is required")
    async with OpenAIServer(refused(400, body)) as one, OpenAIServer(said("x")) as two:
        events, error = await Pool(one.url, two.url).ask()
    assert (events, two.exchanges) == ([], [])
    assert type(error) is BadRequest


async def test_a_prompt_too_long_for_one_is_sent_to_the_next() -> None:
    body = report("too big", code="context_length_exceeded")
    async with OpenAIServer(refused(400, body)) as one, OpenAIServer(said("hello world")) as two:
        events, error = await Pool(one.url, two.url).ask()
    assert (error, events[1:]) == (None, HELLO)


async def test_both_gone_says_why_without_the_key() -> None:
    body = report(f"Incorrect API key provided: {KEY}")
    async with (
        OpenAIServer(refused(401, body)) as one,
        OpenAIServer(*[refused(503, BUSY)] * 2) as two,
    ):
        pool = Pool(one.url, two.url)
        _, error = await pool.ask()
    assert error is not None
    assert error.message == (
        "None of 2 models could answer. "
        "one (m) answered 401 (unauthorized): Incorrect API key provided: [key]. "
        "two (m) answered 503 (service unavailable): Overloaded."
    )
    assert (type(error), error.status, error.retryable) == (ModelError, 503, True)
    assert (len(one.exchanges), len(two.exchanges)) == (1, 2)


@pytest.mark.parametrize("end", [CUT, RESET])
async def test_a_reset_midway_is_a_broken_stream_and_the_next_request_goes_elsewhere(
    end: str,
) -> None:
    half = Reply([sse(chunk({"content": "hel"}), done=False), end])  # type: ignore[list-item]  # as above
    async with (
        OpenAIServer(half, said("one again")) as one,
        OpenAIServer(said("hello world")) as two,
    ):
        async with Pool(one.url, two.url).model() as model:
            events, error = await ask(model)
            assert (events, type(error)) == (cut_text("hel"), StreamBroken)
            assert two.exchanges == []
            events, error = await ask(model)
        assert error is None
        assert events == [switching("The reply of one (m) broke off. Trying two (m)."), *HELLO]


async def test_cancelling_a_stalled_reply_closes_its_connection() -> None:
    half = Reply([sse(chunk({"content": "hel"}), done=False), STALL])
    async with OpenAIServer(half) as one, OpenAIServer(said("x")) as two:
        async with Pool(one.url, two.url).model() as model:
            task = asyncio.create_task(ask(model))
            exchange = await one.exchange()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(exchange.gone.wait(), 1)
        assert two.exchanges == []


# --- in a turn -------------------------------------------------------------------------------


async def test_a_turn_goes_on_with_another_model_without_saying_anything_twice() -> None:
    half = Reply([sse(chunk({"content": "The answer "}), done=False), RESET])
    async with OpenAIServer(half) as one, OpenAIServer(said("is 42.")) as two:
        async with Pool(one.url, two.url).model() as model:
            agent = rig(model)
            assert await agent.ask("What is it?") == "The answer is 42."
        sent = two.exchanges[0].json["messages"]
    assert [e.text for e in agent.events if isinstance(e, BlockDelta)] == [
        "The answer ",
        "is",
        " 42.",
    ]
    assert [each["role"] for each in sent] == ["system", "user", "assistant", "user"]
    assert sent[2]["content"] == "The answer "
    assert agent.history() == [
        Message.of("user", "What is it?"),
        Message.of("assistant", "The answer is 42."),
    ]
    told = [e for e in agent.events if isinstance(e, Status) and e.state != "finished"]
    assert [e.state for e in told] == ["retrying", "switching"]
    assert told[1].message == "The reply of one (m) broke off. Trying two (m)."


async def test_a_model_that_starts_over_is_not_heard_twice() -> None:
    half = Reply([sse(chunk({"content": "The answer "}), done=False), CUT])
    async with (
        OpenAIServer(half) as one,
        OpenAIServer(said("The answer is 42.")) as two,
        Pool(one.url, two.url).model() as model,
    ):
        agent = rig(model)
        assert await agent.ask("What is it?") == "The answer is 42."
    shown = "".join(e.text for e in agent.events if isinstance(e, BlockDelta))
    assert shown == "The answer is 42."


async def test_a_call_that_broke_off_never_runs_and_the_other_model_makes_its_own() -> None:
    ran: list[object] = []

    async def act(arguments: dict[str, JsonValue]) -> str:
        ran.append(arguments)
        return "done"

    first = call('{"n": 1}', call_id="c", name="act")
    cut = streamed(chunk({"tool_calls": [first]}), done=False)
    async with (
        OpenAIServer(Reply([*cut.steps, RESET])) as one,
        OpenAIServer(called("act", n=2), said("ok")) as two,
        Pool(one.url, two.url).model() as model,
    ):
        agent = rig(model, FakeTool("act", act))
        assert await agent.ask("Do it.") == "ok"
    assert ran == [{"n": 2}]


async def test_a_turn_whose_models_are_all_gone_keeps_a_valid_history() -> None:
    async with (
        OpenAIServer(*[refused(503)] * 2) as one,
        OpenAIServer(*[refused(429)] * 2, said("back")) as two,
        Pool(one.url, two.url).model() as model,
    ):
        agent = rig(model)
        with pytest.raises(ModelError, match="None of 2 models could answer"):
            await agent.ask("Hello?")
        assert agent.history() == [Message.of("user", "Hello?")]
        one.replies.append(refused(503))
        assert await agent.ask("And now?") == "back"
