"""A conversation: its history, and one turn at a time over it."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass, field

from agentls.agent.pipeline import Pipeline
from agentls.agent.state import State, answer_all
from agentls.agent.turn import Limits, Turn
from agentls.core.errors import IterationLimit, SessionBusy
from agentls.core.events import Event, StopReason, Usage
from agentls.core.media import check_media
from agentls.core.messages import ContentBlock, Item, Message, ToolResult
from agentls.core.ports import Approvals, Approver, Memory, Mode, Model, Policy, Sink, Tools
from agentls.core.requests import ModelInfo


@dataclass(frozen=True, slots=True)
class Agent:
    """What many sessions share: immutable, no conversation of its own.

    `model` gives the model to use for the next turn, choosing it on first use. The rest depends on
    what that model can do: how much it can read, whether and how it calls tools.
    """

    model: Callable[[], Awaitable[Model]]
    tools: Callable[[ModelInfo], Tools]
    policy: Policy
    memory: Callable[[ModelInfo], Memory]
    pipeline: Callable[[ModelInfo], Pipeline]
    system: Callable[[ModelInfo, Mode], str]
    limits: Callable[[ModelInfo], Limits]


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended. `items` is what it added to the history, the prompt included.

    `notice` is for people; it is set when the turn stopped short of an answer.
    """

    stop_reason: StopReason
    usage: Usage
    text: str
    notice: str
    items: tuple[Item, ...]


@dataclass(slots=True)
class Session:
    """A history and the right to add to it, one turn at a time."""

    agent: Agent
    approvals: Approvals
    mode: Mode = "ask"
    title: str = ""
    session_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    history: list[Item] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    seen: MutableMapping[str, str] = field(default_factory=dict)
    _running: bool = False
    _current: Turn | None = None

    @property
    def busy(self) -> bool:
        """Whether a turn is running."""
        return self._running

    def set_mode(self, mode: Mode) -> None:
        """Change the mode, also of the turn that runs: its next call is judged by the new one."""
        self.mode = mode
        if self._current is not None:
            self._current.mode = mode

    async def prompt(
        self, content: Sequence[ContentBlock], *, sink: Sink, approver: Approver
    ) -> TurnResult:
        """Run one turn.

        Whatever happens once a model took the prompt, the history afterwards holds the prompt, what
        was said, and exactly one result for every call: it can be sent to any provider, and the
        conversation goes on.

        Raises:
            SessionBusy: a turn is already running.
            ModelError: the provider failed.
            TurnError: the loop had to stop, other than by its iteration limit.
            asyncio.CancelledError: the task was cancelled.
        """
        if self._running:
            raise SessionBusy(
                "A turn is already running in this session.", hint="Cancel it, or wait for its end."
            )
        self._running = True
        try:
            return await self._run(tuple(content), sink, approver)
        finally:
            self._running, self._current = False, None

    async def _run(
        self, content: tuple[ContentBlock, ...], sink: Sink, approver: Approver
    ) -> TurnResult:
        question = Message(role="user", content=content)
        usage = Usage()

        async def counting(event: Event) -> None:
            nonlocal usage
            if isinstance(event, Usage):
                usage = usage + event
            await sink(event)

        model = await self.agent.model()
        check_media(model.info, content)
        before = len(self.history)
        self.history.append(question)
        state = State(messages=list(self.history))
        turn = self._current = self._turn(model, counting, approver)
        notice = ""
        try:
            state = await self.agent.pipeline(model.info).run(turn, state)
        except IterationLimit as error:
            notice = str(error)
        finally:
            self._keep(state)
            self.usage = self.usage + usage
        items = tuple(self.history[before:])
        return TurnResult(
            stop_reason="max_turn_requests" if notice else _stop_reason(state),
            usage=usage,
            text=_last_text(items),
            notice=notice,
            items=items,
        )

    def _turn(self, model: Model, sink: Sink, approver: Approver) -> Turn:
        return Turn(
            model=model,
            tools=self.agent.tools(model.info),
            memory=self.agent.memory(model.info),
            policy=self.agent.policy,
            approvals=self.approvals,
            approver=approver,
            sink=sink,
            system=self.agent.system(model.info, self.mode),
            mode=self.mode,
            limits=self.agent.limits(model.info),
            seen=self.seen,
        )

    def _keep(self, state: State) -> None:
        """Move what the turn added into the history, every call answered."""
        known = {id(item) for item in self.history}
        added = [
            item
            for item in state.messages
            if id(item) not in known and not (isinstance(item, Message) and item.ephemeral)
        ]
        self.history.extend(answer_all(added, "the turn ended before this call ran."))


def _stop_reason(state: State) -> StopReason:
    match state.context.get("stop_reason"):
        case "max_tokens":
            return "max_tokens"
        case "refusal":
            return "refusal"
        case _:
            return "end_turn"


def _last_text(items: Sequence[Item]) -> str:
    """The text after the last tool result: the answer, as opposed to remarks on the way."""
    answer = ""
    for item in items:
        if isinstance(item, ToolResult):
            answer = ""
        elif isinstance(item, Message) and item.role == "assistant":
            answer += item.text
    return answer
