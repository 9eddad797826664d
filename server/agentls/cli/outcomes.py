"""How turns end, and what is worth keeping of their events on the way."""

from __future__ import annotations

from dataclasses import dataclass

from agentls.agent.session import TurnResult
from agentls.cli.failures import DONE, FAILED, INTERRUPTED, exit_code
from agentls.core.errors import AgentlsError
from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event, Usage
from agentls.core.messages import ToolResult


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended, with what was seen of it even when it broke.

    Exactly one of `result`, `error` and `cancelled` tells the end. `files` are the paths that were
    changed, in order.
    """

    session_id: str
    text: str
    usage: Usage
    files: tuple[str, ...]
    result: TurnResult | None = None
    error: AgentlsError | None = None
    cancelled: bool = False

    @classmethod
    def failed(cls, error: AgentlsError) -> Outcome:
        """A turn that failed before there was a session."""
        return cls(session_id="", text="", usage=Usage(), files=(), error=error)

    @property
    def notice(self) -> str:
        """Why a turn that did not fail ended without a complete answer; empty when it has one."""
        if self.cancelled:
            return "cancelled"
        if self.result is None:
            return ""
        reasons = {
            "max_tokens": "The answer was cut off at the token limit.",
            "refusal": "The model refused to answer.",
            "max_turn_requests": "The turn used all of its model calls.",
        }
        return self.result.notice or reasons.get(self.result.stop_reason, "")

    @property
    def exit_code(self) -> int:
        """0 only for a complete answer."""
        if self.cancelled:
            return INTERRUPTED
        if self.error is not None:
            return exit_code(self.error)
        complete = self.result is not None and self.result.stop_reason == "end_turn"
        return DONE if complete else FAILED


class Record:
    """What is worth keeping of the events of a turn.

    `text` is the answer as the session defines it: what the model said after its last tool call.
    """

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.text = ""
        self.usage = Usage()
        self.files: dict[str, None] = {}
        self._text_blocks: set[int] = set()

    def take(self, event: Event) -> None:
        """Note one event."""
        match event:
            case BlockStart(block="text", index=index):
                self._text_blocks.add(index)
            case BlockDelta(index=index, text=text) if index in self._text_blocks:
                self.text += text
            case BlockStop(item=ToolResult() as result):
                self.text = ""
                if not result.is_error:
                    self.files.update(dict.fromkeys(diff.path for diff in result.diff))
            case Usage():
                self.usage = self.usage + event
            case _:
                pass
