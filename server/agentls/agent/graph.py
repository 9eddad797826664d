"""Runs nodes by name until one of them stops routing. Knows nothing of models or tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from agentls.agent.state import END, State
from agentls.core.errors import UnknownNode


class Node(Protocol):
    """One step: reads a state and returns the next one, which may be the same object."""

    async def process(self, state: State) -> State:
        """Do the step and set `next_node`."""


class GraphRunner:
    """A registry of nodes and the loop over it.

    `state` is always the last state a node returned, so that a caller can keep what was reached
    when a node raises or the task is cancelled.
    """

    def __init__(self, nodes: Mapping[str, Node], *, entry: str = "llm") -> None:
        """`entry` is the first node to run."""
        self._nodes = dict(nodes)
        self._entry = entry
        self.state = State()

    def register(self, name: str, node: Node) -> None:
        """Add a node, or replace the one with this name."""
        self._nodes[name] = node

    async def run(self, state: State) -> State:
        """Run from the entry node until a node routes to `END` or nowhere.

        Raises:
            UnknownNode: a name is not registered.
        """
        self.state = state
        name: str | None = self._entry
        while name is not None and name != END:
            node = self._nodes.get(name)
            if node is None:
                known = ", ".join(sorted(self._nodes)) or "none"
                raise UnknownNode(
                    f"The graph has no node named {name!r}.", hint=f"Registered: {known}."
                )
            # A node that forgets to route ends the run instead of spinning.
            self.state.next_node = None
            self.state = await node.process(self.state)
            name = self.state.next_node
        return self.state
