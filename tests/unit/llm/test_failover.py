"""The failover pool: who is asked, in which order, and what is given of it."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentls.core.errors import (
    BadRequest,
    ModelError,
    SettingsError,
    StreamBroken,
    Unauthorized,
)
from agentls.core.events import BlockDelta, Event, Ping, Status
from agentls.core.messages import Message
from agentls.core.requests import ModelRequest
from agentls.llm.failover import PooledModel
from agentls.llm.http.retry import RetryPolicy
from agentls.llm.wire.failures import Silent, Stalled
from support.pool_members import (
    ABORTED,
    HI,
    MIDWAY,
    Member,
    Step,
    Time,
    ask,
    asking,
    fails,
    good,
    pooled,
    retrying,
    seeded,
    switching,
)
from support.reply_events import FINISHED, text

# --- switching and trying again ------------------------------------------------------------------


async def test_the_first_answer_comes_as_it_is() -> None:
    one, two = Member("a", [Ping(), *good()]), Member("b", good("other"))
    assert await ask(pooled(one, two)) == ([Ping(), *good()], None)
    assert (one.requests, two.requests) == ([HI], [])


async def test_a_failure_switches_to_the_next_member() -> None:
    busy = fails(529, "anthropic answered 529 (overloaded).")
    one = Member("anthropic", [Ping(), Status(state="requesting"), busy])
    two = Member("openai", good())
    events, error = await ask(pooled(one, two))
    assert error is None
    assert events == [
        Ping(),
        Status(state="requesting"),
        switching("anthropic answered 529 (overloaded). Trying openai (openai-1)."),
        *good(),
    ]


async def test_failed_members_are_tried_once_more_when_no_other_is_left() -> None:
    time = Time()
    one = Member("a", [fails(503, "a is busy.")], good())
    two = Member("b", [asking(fails(429, "b is busy."), 7.0)], good("b"))
    events, error = await ask(pooled(one, two, time=time))
    assert error is None
    assert events == [
        switching("a is busy. Trying b (b-1)."),
        retrying("b is busy. Trying a (a-1) again in 0.5 s (attempt 2 of 2)."),
        *good(),
    ]
    assert time.waits == [0.5]


async def test_time_spent_on_others_counts_as_waited() -> None:
    time = Time()
    one = Member("a", [asking(fails(429, "a is busy."), 3.0)])
    two = Member("b", [asking(fails(429, "b is busy."), 7.0)], good())
    events, error = await ask(pooled(one, two, time=time))
    assert error is None
    assert events[-len(good()) - 2 : -len(good())] == [
        retrying("b is busy. Trying a (a-1) again in 3.0 s (attempt 2 of 2)."),
        retrying("a is busy. Trying b (b-1) again in 4.0 s (attempt 2 of 2)."),
    ]
    assert time.waits == [3.0, 4.0]


async def test_two_tries_each_and_no_more() -> None:
    one, two, three = (Member(name, [fails(503)]) for name in "abc")
    _, error = await ask(pooled(one, two, three))
    assert [len(each.requests) for each in (one, two, three)] == [2, 2, 2]
    assert error is not None and error.retryable


async def test_a_member_that_asks_for_too_long_is_out() -> None:
    one = Member("a", [asking(fails(429), 61.0)])
    two = Member("b", [fails(503)], good())
    time = Time()
    _, error = await ask(pooled(one, two, time=time))
    assert (error, len(one.requests), len(two.requests), time.waits) == (None, 1, 2, [0.5])


@pytest.mark.parametrize("kind", [Silent, Stalled])
async def test_silence_is_not_waited_for_twice(kind: type[ModelError]) -> None:
    one, two = Member("a", [kind("silent.")]), Member("b", [fails(503)], good())
    _, error = await ask(pooled(one, two))
    assert (error, len(one.requests), len(two.requests)) == (None, 1, 2)


async def test_a_lone_member_is_tried_twice_and_its_own_error_raised() -> None:
    raised = fails(503, "a is busy.")
    member = Member("a", [raised])
    events, error = await ask(pooled(member))
    assert events == [retrying("a is busy. Trying a (a-1) again in 0.5 s (attempt 2 of 2).")]
    assert error is raised and len(member.requests) == 2


async def test_a_stream_that_broke_before_it_said_anything_is_tried_again() -> None:
    member = Member("a", [Ping(), StreamBroken("it broke.")], good())
    events, error = await ask(pooled(member))
    assert error is None
    assert events[2:] == good()


async def test_a_reply_that_never_says_it_is_complete_counts_as_broken() -> None:
    one, two = Member("a", [Ping()]), Member("b", good())
    events, error = await ask(pooled(one, two))
    assert error is None
    said = "The reply of a (a-1) ended without saying that it is complete. Trying b (b-1)."
    assert events == [Ping(), switching(said), *good()]


def test_a_pool_of_nobody_is_no_pool() -> None:
    with pytest.raises(SettingsError, match="The failover pool is empty"):
        PooledModel([])


# --- midway --------------------------------------------------------------------------------------


async def test_once_something_was_shown_nobody_else_is_asked() -> None:
    broke = StreamBroken("a broke.", provider="a")
    one = Member("a", [*ABORTED, broke])
    two = Member("b", good())
    pool = pooled(one, two)
    assert await ask(pool) == (ABORTED, broke)
    assert two.requests == []


async def test_what_follows_a_broken_reply_is_asked_of_another_and_said() -> None:
    one = Member("a", [*ABORTED, StreamBroken("a broke.")], good("a"))
    two = Member("b", good("llo"), good("other"))
    pool = pooled(one, two)
    await ask(pool)
    stranger = ModelRequest(items=(Message.of("user", "hi"),))
    assert await ask(pool, stranger) == (good("llo"), None)
    going_on = ModelRequest(items=(*HI.items, Message.of("assistant", "he")))
    said = "The reply of a (a-1) broke off. Trying b (b-1)."
    assert await ask(pool, going_on) == ([switching(said), *good("other")], None)
    assert await ask(pool, going_on) == (good("other"), None)


async def test_being_last_in_line_ends_after_a_minute() -> None:
    time = Time()
    one = Member("a", [*ABORTED, StreamBroken("a broke.")], good("a"))
    two = Member("b", good("b"))
    pool = pooled(one, two, time=time)
    await ask(pool)
    time.now += 59.9
    assert (await ask(pool, ModelRequest()))[0] == good("b")
    time.now += 0.1
    assert (await ask(pool, ModelRequest()))[0] == good("a")


async def test_a_success_ends_it_at_once() -> None:
    one = Member("a", [*ABORTED, StreamBroken("a broke.")], good("a"))
    two = Member("b", [fails(503)], good("b"))
    pool = pooled(one, two)
    await ask(pool)
    assert (await ask(pool))[0][-len(good()) :] == good("a")
    assert (await ask(pool))[0] == good("a")


async def test_a_lone_member_stays_reachable_whatever_it_did() -> None:
    member = Member("a", [*ABORTED, StreamBroken("a broke.")], [fails(401)], good())
    pool = pooled(member)
    for wanted in (StreamBroken, Unauthorized):
        assert isinstance((await ask(pool))[1], wanted)
    assert await ask(pool) == (good(), None)


@pytest.mark.parametrize("failure", [fails(529), fails(401), fails(400), fails(None)])
async def test_any_failure_midway_is_a_broken_stream(failure: ModelError) -> None:
    # This member leaves its block open.
    events, error = await ask(pooled(Member("a", [*MIDWAY, failure]), Member("b", good())))
    assert events == ABORTED
    assert isinstance(error, StreamBroken)
    assert (error.message, error.provider, error.status) == ("it failed.", "p", failure.status)
    assert error.__cause__ is failure


# --- order ---------------------------------------------------------------------------------------


async def test_members_are_picked_uniformly() -> None:
    members = [Member(name, good(name)) for name in "abcd"]
    pool = pooled(*members, order="random", seed=5)
    expected = Counter[int]()
    random = seeded(5)
    for _ in range(400):
        await ask(pool)
        expected[random.choice(range(4))] += 1
    assert [len(each.requests) for each in members] == [expected[n] for n in range(4)]
    assert min(expected.values()) > 75


async def test_among_those_that_are_left_too_and_the_same_for_a_seed() -> None:
    async def order(seed: int) -> list[str]:
        members = [Member(name, [fails(503, f"{name}.")]) for name in "abc"]
        events, _ = await ask(pooled(*members, order="random", seed=seed))
        return [e.message for e in events if isinstance(e, Status)]

    def expected(seed: int) -> list[str]:
        random, picked = seeded(seed), []
        for _ in range(2):
            left = ["a", "b", "c"]
            while left:
                picked.append(random.choice(left))
                left.remove(picked[-1])
        firsts = [f"{a}. Trying {b} ({b}-1)." for a, b in itertools.pairwise(picked[:3])]
        waits, waited = [], 0.0
        for a, b in itertools.pairwise(picked[2:]):
            waits.append(f"{a}. Trying {b} ({b}-1) again in {0.5 - waited:.1f} s (attempt 2 of 2).")
            waited = 0.5
        return firsts + waits

    for seed in range(20):
        assert await order(seed) == expected(seed)
    assert len({tuple(expected(seed)) for seed in range(20)}) > 10


async def test_the_jitter_of_an_own_policy_comes_from_the_same_source() -> None:
    events, _ = await ask(PooledModel([Member("a", [fails(503)], good())], random=seeded(3)))
    random = seeded(3)
    random.choice([0])
    assert f"again in {random.random() * 0.5:.1f} s" in str(events[0])


# --- cancelling and closing ----------------------------------------------------------------------


async def test_cancelling_during_the_wait_passes_through() -> None:
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    member = Member("a", [fails(503)])
    task = asyncio.create_task(ask(PooledModel([member], retry=RetryPolicy(sleep=sleep))))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(member.requests) == 1


async def test_cancelling_during_a_reply_closes_it_and_asks_nobody() -> None:
    one, two = Member("a", [*MIDWAY, asyncio.Event()]), Member("b", good())
    task = asyncio.create_task(ask(pooled(one, two)))
    await one.reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (one.left, two.requests) == (1, [])


async def test_leaving_the_stream_closes_the_members() -> None:
    one = Member("a", [*MIDWAY, asyncio.Event()])
    stream = pooled(one).stream(HI)
    assert await anext(stream) == MIDWAY[0]
    await stream.aclose()
    assert one.left == 1


async def test_every_member_is_closed_even_if_closing_one_fails() -> None:
    members = [Member(name, good()) for name in "abc"]
    members[1].close_error = OSError("stuck")
    with pytest.raises(OSError, match="stuck"):
        await pooled(*members).aclose()
    assert [each.closed for each in members] == [1, 1, 1]


# --- any pattern of failures ---------------------------------------------------------------------

Outcome = Literal["ok", "busy", "broke", "long", "key", "bad", "gone", "midway"]
_AGAIN = ("busy", "broke")
_OUTCOMES: tuple[Outcome, ...] = ("ok", "busy", "broke", "long", "key", "bad", "gone", "midway")


def _steps(name: str, outcome: Outcome) -> list[Step]:
    match outcome:
        case "ok":
            return [*text(0, f"the answer of {name}"), FINISHED]
        case "busy":
            return [Ping(), fails(503)]
        case "broke":
            return [StreamBroken("broke")]
        case "long":
            return [asking(fails(429), 1e4)]
        case "key":
            return [fails(401)]
        case "bad":
            return [fails(400)]
        case "gone":
            return [fails(404)]
        case "midway":
            return [*ABORTED, fails(503)]


@given(
    plans=st.lists(
        st.tuples(st.sampled_from(_OUTCOMES), st.sampled_from(_OUTCOMES)), min_size=1, max_size=4
    ),
    order=st.sampled_from(["random", "listed"]),
    seed=st.integers(0, 1000),
)
def test_any_pattern_of_failures(
    plans: Sequence[tuple[Outcome, Outcome]], order: Literal["random", "listed"], seed: int
) -> None:
    trace: list[tuple[int, Outcome]] = []

    class Traced(Member):
        def __init__(self, number: int, plan: tuple[Outcome, Outcome]) -> None:
            name = f"m{number}"
            super().__init__(name, *(_steps(name, outcome) for outcome in plan))
            self._number, self._plan = number, plan

        def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
            trace.append((self._number, self._plan[len(self.requests)]))
            return super().stream(request)

    members = [Traced(number, plan) for number, plan in enumerate(plans)]
    events, error = asyncio.run(ask(pooled(*members, order=order, seed=seed)))

    tries = Counter(number for number, _ in trace)
    assert max(tries.values()) <= 2
    # Nobody is asked again before all were asked, and only those that may succeed.
    assert len({number for number, _ in trace[: len(plans)]}) == min(len(trace), len(plans))
    assert all(plans[number][0] in _AGAIN for number, count in tries.items() if count == 2)
    # Whatever ends a request is the last thing that was tried.
    ends = [outcome for _, outcome in trace if outcome in ("ok", "bad", "midway")]
    assert ends == ([trace[-1][1]] if ends else [])
    assert (error is None) == (ends == ["ok"])
    if not ends:
        due = {n: 2 if plan[0] in _AGAIN else 1 for n, plan in enumerate(plans)}
        assert tries == due
    assert isinstance(error, StreamBroken) or ends != ["midway"]
    assert isinstance(error, BadRequest) or ends != ["bad"]
    # Where nothing ends a request early, it succeeds if and only if a member would.
    if not any({"bad", "midway"} & set(plan) for plan in plans):
        would = any(a == "ok" or (a in _AGAIN and b == "ok") for a, b in plans)
        assert (error is None) == would
    shown = [event for event in events if isinstance(event, BlockDelta)]
    assert len(shown) == (1 if ends in (["ok"], ["midway"]) else 0)
    # Everything between the replies is said: a switch or a second try for each try but the first.
    said = [e.state for e in events if isinstance(e, Status) and e.state != "finished"]
    first_tries = min(len(trace), len(plans))
    assert said == ["switching"] * (first_tries - 1) + ["retrying"] * (len(trace) - first_tries)
