"""A pool of models that stand in for one another.

Owns who is asked, in which order, and what a failure means for the others. Knows no wire format and
no HTTP: members are models like any other, built to ask once (`RetryPolicy(attempts=1)`), because
the pool does the asking again.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from agentls.core.errors import BadRequest, ModelError, SettingsError, StreamBroken
from agentls.core.events import BlockAbort, BlockStart, BlockStop, Event, Ping, Status
from agentls.core.media import check_media
from agentls.core.messages import Item, Message
from agentls.core.ports import Model
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest, ToolCalling
from agentls.llm import pool_faults as faults
from agentls.llm.http.retry import RetryPolicy
from agentls.llm.wire.blocks import BROKE_OFF

_TRIES = 2
_BROKEN_FOR_S = 60.0
"""How long a member whose reply broke off is last in line, unless it succeeds before."""


@dataclass(slots=True)
class _Line:
    """The members of one request, by number: who is to be asked yet, and why others failed.

    `reasons` is in the order of the failures. `due_s` says when a member may be asked again.
    """

    untried: list[int]
    reasons: dict[int, ModelError]
    fallback: list[int] = field(default_factory=list)
    due_s: dict[int, float] = field(default_factory=dict)
    last: ModelError | None = None

    @property
    def said(self) -> str:
        """The words of the last failure."""
        return "" if self.last is None else self.last.message

    def failed(self, number: int, error: ModelError, *, due_s: float | None) -> None:
        """Note a failure; without `due_s` the member is out."""
        self.reasons.pop(number, None)
        self.reasons[number] = self.last = error
        if due_s is not None:
            self.fallback.append(number)
            self.due_s[number] = due_s


@dataclass(slots=True)
class _Progress:
    """What one try has given so far."""

    shown: bool = False
    finished: bool = False
    open: set[int] = field(default_factory=set)

    def note(self, event: Event) -> None:
        match event:
            case Ping():
                return
            case Status(state=state):
                self.finished = self.finished or state == "finished"
                self.shown = self.shown or self.finished
                return
            case BlockStart(index=index):
                self.open.add(index)
            case BlockStop(index=index) | BlockAbort(index=index):
                self.open.discard(index)
            case _:
                pass
        self.shown = True


class PooledModel:
    """Implements `core.ports.Model` over several; shared by all sessions of a process.

    A request goes to one of the members that were not asked yet. One that fails moves to the
    fallback list, which is asked when no other is left: two tries a member in all. A member that
    broke off in the middle of a reply is last in line for a minute, one whose key or credit failed
    until it succeeds; being last, it is still asked when the others fail.
    """

    def __init__(
        self,
        members: Sequence[Model],
        *,
        order: Literal["random", "listed"] = "random",
        random: Random | None = None,
        retry: RetryPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The members are closed with the pool.

        Args:
            members: built with one attempt each.
            order: pick among those next in line at random, uniformly, or as they are listed.
            random: for that, and for the jitter of a policy that is not given.
            retry: the wait before a member's second try; its number of attempts does not count.
            clock: seconds; the time that others took counts as waited.

        Raises:
            SettingsError: there are no members.
        """
        if not members:
            raise SettingsError(
                "The failover pool is empty.", hint="Name its providers: LLM_POOL=anthropic,openai."
            )
        self._members = tuple(members)
        self._order = order
        self._random = random or Random()  # noqa: S311 - spreads load, keeps no secret
        self._retry = replace(retry or RetryPolicy(random=self._random.random), attempts=_TRIES)
        self._clock = clock
        self._demoted: dict[int, float] = {}
        self._broke_off: tuple[int, Item] | None = None

    @property
    def info(self) -> ModelInfo:
        """The pool as one model: what an agent can rely on, whoever answers.

        The name lists the members. Windows and limits are the smallest that are known; media and
        thinking are what any member has, since requests go to those that can take them. Options are
        refused only if all refuse them: members take out what they cannot take. Prices are the
        members' own.
        """
        infos = [member.info for member in self._members]
        can = [info.capabilities for info in infos]
        providers = [info.provider for info in infos]
        distinct = len(set(providers)) == len(providers)
        return ModelInfo(
            provider="pool",
            name=", ".join(providers if distinct else map(faults.label, infos)),
            capabilities=Capabilities(
                tool_calling=_tool_calling([each.tool_calling for each in can]),
                context_window=_smallest(each.context_window for each in can),
                max_output_tokens=_smallest(each.max_output_tokens for each in can),
                images=any(each.images for each in can),
                audio=any(each.audio for each in can),
                documents=any(each.documents for each in can),
                thinking=any(each.thinking for each in can),
                max_temperature=max(each.max_temperature for each in can),
                refuses=frozenset.intersection(*(each.refuses for each in can)),
            ),
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        """Stream one reply; see `core.ports.Model`.

        A switch to another member is told as `Status(state="switching")`, a second try as
        `Status(state="retrying")`. Once anything but pings and statuses was given nobody else is
        asked: the failure is a broken stream, and going on is the agent's to do.

        Raises:
            BadRequest: no member can take the request, or one refused what all would refuse.
            StreamBroken: the reply broke off.
            ModelError: every member failed; the text says why each did.
        """
        line = self._line(request)
        while line.untried or line.fallback:
            number, is_second = self._take(line)
            if is_second:
                wait_s = max(line.due_s[number] - self._clock(), 0.0)
                yield self._second_try(line, number, wait_s)
                await self._retry.sleep(wait_s)
            elif switch := self._switch(line, number, request):
                yield switch
            progress = _Progress()
            try:
                async with contextlib.aclosing(self._try(number, request, progress)) as events:
                    async for event in events:
                        yield event
                return
            except ModelError as error:
                self._demote(number, error, progress)
                if progress.shown:
                    for index in sorted(progress.open):
                        yield BlockAbort(index=index, reason=BROKE_OFF)
                    self._broke_off = (number, request.items[-1]) if request.items else None
                    broken = StreamBroken.of(error)
                    if broken is error:
                        raise
                    raise broken from error
                if faults.is_everyones(error):
                    raise
                line.failed(number, error, due_s=self._due_s(error, is_second))
        failure = self._all_gone(line)
        raise failure from (None if failure is line.last else line.last)

    async def aclose(self) -> None:
        """Close every member, whatever closing another one raised; the first listed counts."""
        async with contextlib.AsyncExitStack() as stack:
            for member in self._members:
                stack.push_async_callback(member.aclose)

    def _line(self, request: ModelRequest) -> _Line:
        """Those that can take the request, and why others cannot.

        Members without tools are asked only when no member has any.
        """
        reasons: dict[int, ModelError] = {}
        able: list[int] = []
        for number, member in enumerate(self._members):
            try:
                for item in request.items:
                    if isinstance(item, Message):
                        check_media(member.info, item.content)
            except BadRequest as error:
                reasons[number] = error
            else:
                able.append(number)
        if not able:
            raise self._all_gone(_Line([], reasons))
        if request.tools and (with_tools := [n for n in able if self._has_tools(n)]):
            for number in set(able).difference(with_tools):
                info = self._members[number].info
                reasons[number] = BadRequest(
                    f"The model {info.name} cannot call tools.", provider=info.provider
                )
            able = with_tools
        return _Line(able, reasons)

    def _has_tools(self, number: int) -> bool:
        return self._members[number].info.capabilities.tool_calling != "none"

    def _take(self, line: _Line) -> tuple[int, bool]:
        """Who is next, and whether it is asked for the second time."""
        group = line.untried or line.fallback
        now = self._clock()
        favoured = [n for n in group if self._demoted.get(n, -math.inf) <= now]
        candidates = sorted(favoured or group)
        number = candidates[0] if self._order == "listed" else self._random.choice(candidates)
        is_second = group is line.fallback
        group.remove(number)
        return number, is_second

    async def _try(
        self, number: int, request: ModelRequest, progress: _Progress
    ) -> AsyncGenerator[Event, None]:
        async with contextlib.aclosing(self._members[number].stream(request)) as events:
            async for event in events:
                progress.note(event)
                if progress.finished:
                    self._demoted.pop(number, None)
                yield event
        if not progress.finished:
            info = self._members[number].info
            raise StreamBroken(
                f"The reply of {faults.label(info)} ended without saying that it is complete.",
                provider=info.provider,
            )

    def _demote(self, number: int, error: ModelError, progress: _Progress) -> None:
        if faults.is_account(error):
            self._demoted[number] = math.inf
        elif progress.shown:
            until_s = self._clock() + _BROKEN_FOR_S
            self._demoted[number] = max(self._demoted.get(number, until_s), until_s)

    def _due_s(self, error: ModelError, was_second: bool) -> float | None:
        """When to try again; None if trying again is over, or would not help."""
        if was_second or faults.is_account(error):
            return None
        delay_s = self._retry.delay_s(1, error)
        return None if delay_s is None else self._clock() + delay_s

    def _switch(self, line: _Line, number: int, request: ModelRequest) -> Status | None:
        """What to say before a first try, if anything."""
        label = faults.label(self._members[number].info)
        if line.last is not None:
            message = f"{faults.sentence(line.said)} Trying {label}."
            return Status(state="switching", message=message)
        # A request goes on with a broken one if it holds what that one ended with.
        if self._broke_off is None or not _holds(request.items, self._broke_off[1]):
            return None
        before, self._broke_off = self._broke_off[0], None
        if before == number:
            return None
        message = (
            f"The reply of {faults.label(self._members[before].info)} broke off. Trying {label}."
        )
        return Status(state="switching", message=message)

    def _second_try(self, line: _Line, number: int, wait_s: float) -> Status:
        label = faults.label(self._members[number].info)
        return Status(
            state="retrying",
            message=f"{faults.sentence(line.said)} Trying {label} again in {wait_s:.1f} s "
            f"(attempt {_TRIES} of {_TRIES}).",
        )

    def _all_gone(self, line: _Line) -> ModelError:
        """The most telling error: one that may pass, then one with a status, then the last one."""
        telling = max(
            enumerate(line.reasons.values()),
            key=lambda each: (each[1].retryable, each[1].status is not None, each[0]),
        )[1]
        if len(line.reasons) == 1:
            return telling
        reasons = [faults.reason(self._members[n].info, e) for n, e in line.reasons.items()]
        message = f"None of {len(reasons)} models could answer. {' '.join(reasons)}"
        return faults.reworded(telling, message)


def _holds(items: Sequence[Item], wanted: Item) -> bool:
    return any(item is wanted for item in items)


def _smallest(sizes: Iterable[int | None]) -> int | None:
    return min((size for size in sizes if size is not None), default=None)


def _tool_calling(kinds: Sequence[ToolCalling]) -> ToolCalling:
    """The weakest of those that can be used; text counts as native, the member sees to it."""
    usable = {kind for kind in kinds if kind != "none"}
    if not usable:
        return "none"
    return "constrained" if "constrained" in usable else "native"
