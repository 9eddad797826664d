"""Keeps a request inside a model's context window.

The estimate is coarse on purpose (bytes, not a tokenizer): it decides when to shrink, and errs on
the side of shrinking early.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentls.core.messages import Item, Message, Reasoning, ToolCall, ToolResult
from agentls.core.ports import Memory
from agentls.memory.groups import current_turn, flat, grouped

_BYTES_A_TOKEN = 3
_ITEM_OVERHEAD_TOKENS = 8
_MEDIA_TOKENS = 1500


class TokenBudget:
    """Shrinks what another memory chose until it fits.

    Old tool results become their summaries first, oldest first; then whole groups before the
    current turn go. The last result and the prompt stay whole: if they alone are too big, the
    provider's own refusal says so.
    """

    def __init__(self, inner: Memory, max_tokens: int) -> None:
        """`max_tokens` is what is left for the history: without system prompt, tools and reply."""
        self._inner = inner
        self._max = max_tokens

    async def window(self, items: Sequence[Item]) -> list[Item]:
        """The items to send."""
        chosen = await self._inner.window(items)
        total = sum(map(estimate_tokens, chosen))
        last = max((at for at, i in enumerate(chosen) if isinstance(i, ToolResult)), default=-1)
        for at, item in enumerate(chosen):
            if total <= self._max:
                return chosen
            if isinstance(item, ToolResult) and at != last:
                chosen[at] = _shrunk(item)
                total += estimate_tokens(chosen[at]) - estimate_tokens(item)
        groups = grouped(chosen)
        turn_at = current_turn(groups)
        system = [group for group in groups[:turn_at] if group.is_system]
        past = [group for group in groups[:turn_at] if not group.is_system]
        while past and (total > self._max or not past[0].is_prompt):
            total -= sum(map(estimate_tokens, past.pop(0).items))
        return flat([*system, *past, *groups[turn_at:]])


def estimate_tokens(item: Item) -> int:
    """Tokens of an item, roughly and rather too many."""
    match item:
        case Message(content=content):
            media = sum(block.type != "text" for block in content)
            size = len(item.text.encode("utf-8", "replace"))
            return media * _MEDIA_TOKENS + size // _BYTES_A_TOKEN + _ITEM_OVERHEAD_TOKENS
        case ToolCall(arguments=arguments):
            return len(str(arguments)) // _BYTES_A_TOKEN + _ITEM_OVERHEAD_TOKENS
        case ToolResult(content=text) | Reasoning(text=text):
            size = len(text.encode("utf-8", "replace"))
            return size // _BYTES_A_TOKEN + _ITEM_OVERHEAD_TOKENS


def _shrunk(result: ToolResult) -> ToolResult:
    summary = result.summary or f"{result.name}: done"
    note = f"[{summary}; the full output was left out to save space, call again if needed]"
    return (
        result if len(note) >= len(result.content) else result.model_copy(update={"content": note})
    )
