"""The one `Event` type, from a provider's stream up to the editor.

A block opens with `BlockStart`, grows by `BlockDelta` and ends with exactly one of `BlockStop`
(complete, with its item) or `BlockAbort` (incomplete: nothing in it may run). `index` identifies
the block among those of one turn.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agentls.core.messages import Frozen, Item

BlockKind = Literal["text", "thinking", "tool_call", "tool_result"]
StopReason = Literal["end_turn", "max_turn_requests", "max_tokens", "refusal", "cancelled"]
"""ACP's stop reasons of a turn (https://agentclientprotocol.com, prompt turn)."""


class Ping(Frozen):
    """The stream is alive and has nothing to say."""

    type: Literal["ping"] = "ping"


class Usage(Frozen):
    """Tokens of one request. `input_tokens` includes those read from and written to the cache.

    `output_tokens` includes `reasoning_tokens`. `cost_usd` is None where the price is not known.
    """

    type: Literal["usage"] = "usage"
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Totals over several requests. One cost that is not known makes the total unknown."""
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            cost_usd=_total_usd(self, other),
        )


def _total_usd(one: Usage, other: Usage) -> float | None:
    counted = [usage for usage in (one, other) if usage != Usage()]
    costs = [usage.cost_usd for usage in counted if usage.cost_usd is not None]
    return sum(costs) if costs and len(costs) == len(counted) else None


class Status(Frozen):
    """Something a person should see: a retry, a switch, a warning, the end of one model reply.

    `state` "switching" means that another provider is asked from here on; "finished" ends every
    complete model stream, and `stop_reason` then says why it ended.
    """

    type: Literal["status"] = "status"
    state: Literal["requesting", "retrying", "switching", "warning", "finished"]
    message: str = ""
    stop_reason: StopReason | Literal["tool_use"] | None = None


class Failure(Frozen):
    """The stream or the turn failed; the text is for people and holds no secret."""

    type: Literal["error"] = "error"
    message: str
    code: str = ""
    provider: str = ""
    status: int | None = None
    retryable: bool = False


class BlockStart(Frozen):
    """A block begins. `call_id` and `name` are set for tool calls and tool results."""

    type: Literal["block_start"] = "block_start"
    index: int
    block: BlockKind
    call_id: str = ""
    name: str = ""


class BlockDelta(Frozen):
    """More of a block: text, or a fragment of a call's JSON arguments."""

    type: Literal["block_delta"] = "block_delta"
    index: int
    text: str


class BlockStop(Frozen):
    """A block is complete; `item` is its whole content."""

    type: Literal["block_stop"] = "block_stop"
    index: int
    item: Item


class BlockAbort(Frozen):
    """A block will never be complete."""

    type: Literal["block_abort"] = "block_abort"
    index: int
    reason: str = ""


Event = Annotated[
    Ping | Usage | Status | Failure | BlockStart | BlockDelta | BlockStop | BlockAbort,
    Field(discriminator="type"),
]
