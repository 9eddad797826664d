"""The node that asks the model and routes by what it answered."""

from __future__ import annotations

import asyncio
import contextlib

from agentls.agent.reply import Reply
from agentls.agent.state import END, State
from agentls.agent.turn import Turn
from agentls.core.errors import IterationLimit, ModelError, NoResponse, StreamBroken
from agentls.core.events import Status
from agentls.core.messages import Item, Message, ToolCall
from agentls.core.requests import ModelRequest

_CONTINUE = "The connection broke. Go on with your reply exactly where it stopped; repeat nothing."
_CUT_CALL = (
    "Your reply reached the token limit inside a tool call, so no tool was run. "
    "Make the call again with shorter arguments, or in several smaller calls."
)


class LLMNode:
    """Asks the model once: calls route to `tools`, text to the end, neither is an error."""

    def __init__(self, turn: Turn, *, offer_tools: bool = True) -> None:
        """Serves one turn; without `offer_tools` the model is not told of any tool."""
        self._turn = turn
        self._offer_tools = offer_tools

    async def process(self, state: State) -> State:
        """Add the reply to the state's messages.

        Cancelled or failing midway, the text that arrived stays; calls of an incomplete reply are
        dropped, since nothing may run from them.

        Raises:
            IterationLimit: the turn has no model call left.
            NoResponse: the model said nothing.
            ModelError: the provider failed for good.
        """
        limits = self._turn.limits
        iteration = _count(state, "iteration")
        if iteration >= limits.max_iterations:
            raise IterationLimit(
                f"Max iterations {limits.max_iterations} reached: the turn used all of its model "
                "calls.",
                hint="Send another message to go on, or raise turn.max_iterations.",
            )
        state.context["iteration"] = iteration + 1
        reply = await self._ask(state)
        return self._route(state, reply)

    async def _ask(self, state: State) -> Reply:
        turn = self._turn
        shown, stopped = "", 0
        for attempt in range(turn.limits.max_recoveries + 1):
            reply = Reply(turn.next_index, _call_ids(state.messages), shown, stopped)
            items = await turn.memory.window(state.messages)
            if shown:
                items += [Message.of("assistant", shown), Message.of("user", _CONTINUE)]
            try:
                await self._stream(items, reply)
                return reply
            except StreamBroken as error:
                shown, stopped = reply.text, reply.stopped
                # Before anything was shown, the model has tried again by itself already.
                if attempt == turn.limits.max_recoveries or not reply.begun:
                    _keep_text(state, shown)
                    raise
                await turn.emit(Status(state="retrying", message=f"{error.message} Asking again."))
            except (ModelError, asyncio.CancelledError):
                _keep_text(state, reply.text)
                raise
        raise AssertionError("the loop returns or raises")

    async def _stream(self, items: list[Item], reply: Reply) -> None:
        turn = self._turn
        request = ModelRequest(
            system=turn.system,
            items=tuple(items),
            tools=turn.offered() if self._offer_tools else (),
            max_tokens=turn.limits.max_tokens,
            temperature=turn.limits.temperature,
            top_p=turn.limits.top_p,
            seed=turn.limits.seed,
            stop=turn.limits.stop,
            effort=turn.limits.effort,
        )
        stream = turn.model.stream(request)
        # Closing the generator at once, instead of when it is collected, closes the connection.
        async with contextlib.aclosing(stream):
            async for event in stream:
                await turn.emit(*reply.take(event))
        if reply.stop_reason is None:
            raise StreamBroken(
                "The model's reply ended without saying that it is complete.",
                provider=turn.model.info.provider,
            )

    def _route(self, state: State, reply: Reply) -> State:
        cut = reply.stop_reason == "max_tokens"
        calls = [] if cut else reply.calls
        if cut and (reply.aborted_calls or reply.calls):
            return self._cut_call(state, reply)
        state.context["cut_calls"] = 0
        state.context["stop_reason"] = reply.stop_reason
        if calls:
            state.messages.extend(reply.items())
            state.context["last_tool_count"] = len(calls)
            state.context["last_tool_names"] = [call.name for call in calls]
            state.next_node = "tools"
        elif reply.text.strip():
            state.messages.extend(reply.items())
            state.context["has_final_response"] = True
            state.next_node = END
        elif reply.stop_reason in ("refusal", "max_tokens"):
            state.next_node = END
        else:
            raise NoResponse(
                "Model returned no response: neither text nor a tool call.",
                hint="Ask again, or choose another model.",
            )
        return state

    def _cut_call(self, state: State, reply: Reply) -> State:
        _keep_text(state, reply.text)
        cuts = _count(state, "cut_calls") + 1
        state.context["cut_calls"] = cuts
        state.context["stop_reason"] = "max_tokens"
        if cuts > 1:
            state.next_node = END
            return state
        note = Message.of("user", _CUT_CALL).model_copy(update={"ephemeral": True})
        state.messages.append(note)
        state.next_node = "llm"
        return state


def _keep_text(state: State, text: str) -> None:
    if text:
        state.messages.append(Message.of("assistant", text))


def _count(state: State, key: str) -> int:
    value = state.context.get(key, 0)
    return value if isinstance(value, int) else 0


def _call_ids(items: list[Item]) -> frozenset[str]:
    return frozenset(item.call_id for item in items if isinstance(item, ToolCall))
