"""What one turn carries through its nodes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field

from agentls.core.errors import SettingsError
from agentls.core.events import Event
from agentls.core.ports import Approvals, Approver, Memory, Mode, Model, Policy, Sink, Tools
from agentls.core.requests import Effort, ToolDefinition, ToolKind

_CHANGING: frozenset[ToolKind] = frozenset({"edit", "delete", "move", "execute"})


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one turn, and how its model is to answer (see `core.requests.ModelRequest`).

    `max_iterations` counts model calls; `max_tokens` bounds one reply; `tool_concurrency` is how
    many calls of one step run at once; `max_recoveries` how often a broken reply is asked for
    again.
    """

    max_iterations: int = 25
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    effort: Effort | None = None
    tool_concurrency: int = 5
    tool_attempts: int = 3
    tool_retry_delay_s: float = 0.5
    max_recoveries: int = 3

    def __post_init__(self) -> None:
        """Refuse bounds under which nothing could run."""
        for name in ("max_iterations", "tool_concurrency", "tool_attempts"):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1, not {getattr(self, name)}.")


@dataclass(slots=True)
class Turn:
    """One run of a pipeline: who answers, with what, on whose behalf.

    `seen` and `approvals` belong to the session and outlive the turn.
    """

    model: Model
    tools: Tools
    policy: Policy
    approvals: Approvals
    approver: Approver
    memory: Memory
    sink: Sink
    system: str
    mode: Mode = "ask"
    limits: Limits = field(default_factory=Limits)
    seen: MutableMapping[str, str] = field(default_factory=dict)
    _indices: Iterator[int] = field(default_factory=itertools.count)

    def next_index(self) -> int:
        """A block index not used before in this turn."""
        return next(self._indices)

    def offered(self) -> tuple[ToolDefinition, ...]:
        """The tools the model is told of: in plan mode none that the policy refuses anyway."""
        return tuple(
            definition
            for definition in self.tools.definitions()
            if self.mode != "plan" or definition.kind not in _CHANGING
        )

    async def emit(self, *events: Event) -> None:
        """Send events to whoever watches the turn, in order."""
        for event in events:
            await self.sink(event)
