"""Small real-behaving stand-ins for the agent's ports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from agentls.agent.pipeline import ReAct
from agentls.agent.session import Agent, Session
from agentls.agent.turn import Limits
from agentls.core.events import Event
from agentls.core.messages import Item, TextBlock, ToolCall
from agentls.core.ports import (
    Access,
    Answer,
    Decision,
    Mode,
    Model,
    Prepared,
    Tool,
    ToolContext,
    ToolOutput,
    Verdict,
)
from agentls.core.requests import Capabilities, ModelInfo, ModelRequest, ToolDefinition
from agentls.llm.scripted import ScriptedModel
from agentls.memory.sliding import SlidingWindow


def script(folder: Path, *replies: dict[str, JsonValue]) -> Path:
    """Write a script for the scripted model."""
    path = folder / "script.jsonl"
    path.write_text("".join(json.dumps(reply) + "\n" for reply in replies), "utf-8")
    return path


@dataclass
class FakeTool:
    """A tool whose behaviour is a function of its arguments."""

    name: str
    act: Callable[[dict[str, JsonValue]], Awaitable[str]]
    mutates: bool = False
    idempotent: bool = False
    timeout_s: float = 15.0

    @property
    def definition(self) -> ToolDefinition:
        return ToolDefinition(name=self.name, description="", parameters={"type": "object"})

    async def prepare(self, arguments: dict[str, JsonValue], context: ToolContext) -> Prepared:
        async def run() -> ToolOutput:
            return ToolOutput(content=await self.act(arguments))

        effect = "write" if self.mutates else "read"
        return Prepared(title=self.name, access=Access(effect=effect), run=run)  # type: ignore[arg-type]  # one of two literals


@dataclass
class FakeTools:
    tools: dict[str, Tool]

    def definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool.definition for tool in self.tools.values())

    def get(self, name: str) -> Tool | None:
        return self.tools.get(name)


@dataclass
class FixedPolicy:
    verdict: Verdict = "allow"

    def decide(self, tool: ToolDefinition, access: Access, mode: Mode) -> Decision:
        return Decision(self.verdict, "a fixed policy")


@dataclass
class FixedApprover:
    answer: Answer | None = "allow_once"
    asked: list[str] = field(default_factory=list)

    async def request(self, call: ToolCall, prepared: Prepared, reason: str) -> Answer | None:
        self.asked.append(call.name)
        return self.answer


class NoApprovals:
    def recall(self, call: ToolCall, access: Access) -> Answer | None:
        return None

    def remember(self, call: ToolCall, access: Access, answer: Answer) -> None:
        return None


class SteppedModel:
    """Plays lists of events; an exception in a list is raised, an `asyncio.Event` is waited for.

    Records every request.
    """

    def __init__(self, *replies: Iterable[Event | Exception | asyncio.Event]) -> None:
        self._replies = [list(reply) for reply in replies]
        self.requests: list[ModelRequest] = []
        self.reached = asyncio.Event()
        self.closed = 0
        self.info = ModelInfo(provider="fake", name="stepped", capabilities=Capabilities())

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Event, None]:
        self.requests.append(request)
        try:
            for step in self._replies[len(self.requests) - 1]:
                if isinstance(step, Exception):
                    raise step
                if isinstance(step, asyncio.Event):
                    self.reached.set()
                    await step.wait()
                else:
                    yield step
        finally:
            self.closed += 1

    async def aclose(self) -> None:
        return None


@dataclass
class Rig:
    """A session with its recorded events."""

    session: Session
    events: list[Event] = field(default_factory=list)
    approver: FixedApprover = field(default_factory=FixedApprover)

    async def sink(self, event: Event) -> None:
        self.events.append(event)

    async def ask(self, text: str) -> str:
        result = await self.session.prompt(
            [TextBlock(text=text)], sink=self.sink, approver=self.approver
        )
        return result.text

    def history(self) -> list[Item]:
        return self.session.history


def rig(
    model: Model,
    *tools: FakeTool,
    verdict: Verdict = "allow",
    limits: Limits | None = None,
    answer: Answer | None = "allow_once",
) -> Rig:
    """A session over a model and tools."""

    async def get() -> Model:
        return model

    agent = Agent(
        model=get,
        tools=lambda info: FakeTools({tool.name: tool for tool in tools}),
        policy=FixedPolicy(verdict),
        memory=lambda info: SlidingWindow(),
        pipeline=lambda info: ReAct(),
        system=lambda info, mode: "system",
        limits=lambda info: limits or Limits(tool_retry_delay_s=0),
    )
    return Rig(Session(agent=agent, approvals=NoApprovals()), approver=FixedApprover(answer))


def scripted_rig(folder: Path, *replies: dict[str, JsonValue]) -> ScriptedModel:
    """A scripted model over replies."""
    return ScriptedModel(script(folder, *replies))
