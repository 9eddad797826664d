"""Which of the things in a text that look like calls are believed to be some. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agentls.core.requests import ToolDefinition
from agentls.llm.text_calls.body import CallBody
from agentls.llm.text_calls.forms import WrittenCall, fits, malformed, read_calls
from agentls.llm.text_calls.held import HeldFence, HeldJson
from agentls.llm.text_calls.marked import read_marked


class Belief:
    """Judges what was held back; whatever it gives no calls for is text."""

    def __init__(self, tools: Sequence[ToolDefinition], *, lenient: bool) -> None:
        """`lenient` is for models that have no other way to call: even bad calls count."""
        self._tools = tools
        self._names = frozenset(tool.name for tool in tools)
        self._lenient = lenient

    def in_tag(self, body: CallBody) -> list[WrittenCall]:
        """A tag means a call; a model that has a better way has to get it nearly right."""
        calls = body.calls() if body.outcome == "done" else []
        if self._lenient:
            return calls
        may_be_bad = body.was_cut or (body.is_json and body.raw.startswith("<tool_call>"))
        meant = all(call.name in self._names and (call.valid or may_be_bad) for call in calls)
        return calls if meant else []

    def in_fence(self, held: HeldFence) -> list[WrittenCall]:
        """A fence of nothing but calls of tools that there are."""
        calls = read_calls(held.content) or []
        if held.kind == "tool":
            calls = calls or read_marked(held.content, self._tools) or []
        if not self._lenient:
            return self._fitting(calls)
        if held.kind == "tool":
            return calls or [malformed(held.content)]
        return calls if all(call.name in self._names for call in calls) else []

    def in_json(self, held: HeldJson) -> list[WrittenCall]:
        """JSON, or Python, without any mark around it has to fit a tool exactly."""
        if held.outcome != "done":
            return []
        return self._fitting(read_calls(held.raw) or read_marked(held.raw, self._tools) or [])

    def _fitting(self, calls: list[WrittenCall]) -> list[WrittenCall]:
        return calls if all(fits(call, self._tools) for call in calls) else []
