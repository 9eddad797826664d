"""The node that runs the calls of a step and gives each exactly one result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from agentls.agent.gate import Gate
from agentls.agent.state import State, failed, unanswered
from agentls.agent.turn import Turn
from agentls.core.errors import AgentlsError, RepeatedFailure
from agentls.core.events import BlockStart, BlockStop
from agentls.core.messages import ToolCall, ToolResult
from agentls.core.ports import Prepared, Tool, ToolContext, ToolOutput

_CANCELLED = "cancelled by the user before it finished; its effects are unknown."
_MAX_IDENTICAL_FAILURES = 3


class ToolNode:
    """Runs calls in parallel, those that change something one at a time in call order."""

    def __init__(self, turn: Turn) -> None:
        """Serves one turn."""
        self._turn = turn
        self._gate = Gate(turn.policy, turn.approvals, turn.approver, lambda: turn.mode)
        self._slots = asyncio.Semaphore(turn.limits.tool_concurrency)
        self._one_at_a_time = asyncio.Lock()

    async def process(self, state: State) -> State:
        """Answer every open call, in call order.

        Cancelled midway, calls that finished keep their results and the others get one that says
        they were cancelled.

        Raises:
            RepeatedFailure: the same call failed three times in a row.
        """
        calls = unanswered(state.messages)
        tasks = [asyncio.create_task(self._answer(call)) for call in calls]
        try:
            results = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            state.messages.extend(
                result if isinstance(result, ToolResult) else failed(call, _CANCELLED)
                for call, result in zip(calls, ended, strict=True)
            )
            raise
        state.messages.extend(results)
        state.context["tool_results"] = [result.content for result in results]
        state.next_node = "llm"
        _guard_repetition(state, calls, results)
        return state

    async def _answer(self, call: ToolCall) -> ToolResult:
        tool = self._turn.tools.get(call.name)
        async with self._slots:
            if tool is not None and tool.mutates:
                async with self._one_at_a_time:
                    return await self._run(call, tool)
            return await self._run(call, tool)

    async def _run(self, call: ToolCall, tool: Tool | None) -> ToolResult:
        index = self._turn.next_index()
        started = BlockStart(index=index, block="tool_result", call_id=call.call_id, name=call.name)
        begun = False
        try:
            prepared = await self._prepare(call, tool)
            assert tool is not None  # noqa: S101 - _prepare refuses an unknown tool
            await self._gate.check(call, tool.definition, prepared)
            begun = True
            await self._turn.emit(started)
            result = _result(call, await self._attempt(tool, prepared))
        except AgentlsError as error:
            result = failed(call, str(error))
        except (OSError, ValueError, RuntimeError, LookupError, TypeError) as error:
            # A tool's own defect must not end the turn: the model and the user see it.
            result = failed(call, f"{call.name} broke: {type(error).__name__}: {error}")
        if not begun:
            await self._turn.emit(started)
        await self._turn.emit(BlockStop(index=index, item=result))
        return result

    async def _prepare(self, call: ToolCall, tool: Tool | None) -> Prepared:
        if call.invalid is not None:
            raise AgentlsError(
                f"the arguments are not a JSON object: {call.invalid[:300]!r}.",
                hint="Call again with valid JSON.",
            )
        if tool is None:
            known = ", ".join(d.name for d in self._turn.tools.definitions())
            raise AgentlsError(f"there is no tool named {call.name!r}.", hint=f"Tools: {known}.")
        context = ToolContext(call_id=call.call_id, seen=self._turn.seen)
        return await tool.prepare(call.arguments, context)

    async def _attempt(self, tool: Tool, prepared: Prepared) -> ToolOutput:
        limits = self._turn.limits
        attempts = limits.tool_attempts if tool.idempotent else 1
        for attempt in range(1, attempts + 1):
            try:
                async with asyncio.timeout(tool.timeout_s):
                    return await prepared.run()
            except TimeoutError:
                if attempt < attempts:
                    await asyncio.sleep(limits.tool_retry_delay_s)
        times = f" in each of {attempts} attempts" if attempts > 1 else ""
        raise AgentlsError(f"timed out after {tool.timeout_s:g} s{times}.")


def _result(call: ToolCall, output: ToolOutput) -> ToolResult:
    return ToolResult(
        call_id=call.call_id,
        name=call.name,
        content=output.content,
        summary=output.summary,
        is_error=output.is_error,
        diff=output.diff,
    )


def _guard_repetition(
    state: State, calls: Sequence[ToolCall], results: Sequence[ToolResult]
) -> None:
    failing = state.context.get("failing")
    last, count = failing if isinstance(failing, tuple) else ("", 0)
    for call, result in zip(calls, results, strict=True):
        key = json.dumps([call.name, call.invalid or call.arguments], sort_keys=True)
        if not result.is_error:
            last, count = "", 0
        else:
            last, count = key, count + 1 if key == last else 1
        if count >= _MAX_IDENTICAL_FAILURES:
            raise RepeatedFailure(
                f"{call.name} failed {count} times in a row with the same arguments. "
                f"The last error: {result.content.removeprefix('Error: ')}",
                hint="Rephrase the request, or fix what the error names.",
            )
    state.context["failing"] = (last, count)
