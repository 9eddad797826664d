"""Cuts a history into pieces that may only be kept or dropped whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentls.core.messages import Item, Message, ToolResult


@dataclass(slots=True)
class Group:
    """A message, or an assistant's thinking, text and calls with all of their results."""

    items: list[Item] = field(default_factory=list)

    @property
    def is_system(self) -> bool:
        """Whether this is a system message, which is never dropped."""
        return self._role() == "system"

    @property
    def is_prompt(self) -> bool:
        """Whether this is what a person said."""
        return self._role() == "user"

    @property
    def begins_turn(self) -> bool:
        """Whether a person said this, rather than the loop on the person's behalf."""
        first = self.items[0]
        return self.is_prompt and isinstance(first, Message) and not first.ephemeral

    @property
    def messages(self) -> int:
        """Messages on the wire: one for the assistant's part, one for each result."""
        results = sum(isinstance(item, ToolResult) for item in self.items)
        return results + (len(self.items) > results)

    def _role(self) -> str:
        first = self.items[0]
        return first.role if isinstance(first, Message) else "assistant"


def grouped(items: Iterable[Item]) -> list[Group]:
    """Cut a history into groups, in order."""
    groups: list[Group] = []
    open_assistant = False
    for item in items:
        continues = open_assistant and _continues(item, groups[-1])
        if not continues:
            groups.append(Group())
        groups[-1].items.append(item)
        open_assistant = not (isinstance(item, Message) and item.role != "assistant")
    return groups


def _continues(item: Item, group: Group) -> bool:
    if isinstance(item, Message) and item.role != "assistant":
        return False
    answered = any(isinstance(i, ToolResult) for i in group.items)
    # After results, anything but another result is a new reply.
    return isinstance(item, ToolResult) or not answered


def current_turn(groups: Sequence[Group]) -> int:
    """Index of the group where the current turn begins: the last prompt and those right before it.

    Ephemeral messages in a turn (a request to go on, say) do not begin one.
    """
    start = next((at for at in range(len(groups) - 1, -1, -1) if groups[at].begins_turn), 0)
    while start > 0 and groups[start - 1].is_prompt:
        start -= 1
    return start


def flat(groups: Iterable[Group]) -> list[Item]:
    """The items of groups, in order."""
    return [item for group in groups for item in group.items]
