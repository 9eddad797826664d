"""The sliding window: system messages, the last messages, and the whole current turn."""

from __future__ import annotations

from collections.abc import Sequence

from agentls.core.errors import SettingsError
from agentls.core.messages import Item
from agentls.memory.groups import current_turn, flat, grouped


class SlidingWindow:
    """Keeps at most `max_messages` messages of what was said before the current turn.

    Calls and their results are dropped together, and the window opens with a prompt, since several
    providers refuse a conversation that opens with a reply.
    """

    def __init__(self, max_messages: int = 20) -> None:
        """`max_messages` counts messages on the wire, without system messages."""
        if max_messages < 1:
            raise SettingsError(f"memory.max_messages must be at least 1, not {max_messages}.")
        self._max = max_messages

    async def window(self, items: Sequence[Item]) -> list[Item]:
        """The items to send."""
        groups = grouped(items)
        turn_at = current_turn(groups)
        past = [group for group in groups[:turn_at] if not group.is_system]
        system = [group for group in groups[:turn_at] if group.is_system]
        while past and (sum(g.messages for g in past) > self._max or not past[0].is_prompt):
            del past[0]
        return flat([*system, *past, *groups[turn_at:]])
