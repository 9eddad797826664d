"""The tools of a session, by name, in the order they were added."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentls.core.errors import UsageError
from agentls.core.ports import Tool
from agentls.core.requests import ToolDefinition

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
"""What every provider accepts; it also leaves no room for letters that only look alike."""

BUILT_IN = frozenset({"read_file", "write_file", "edit_file", "glob", "grep", "bash"})
"""Names no foreign tool may take, whether the built-in is there or not: rules count on them."""


class ToolRegistry:
    """Tools with unique names (`core.ports.Tools`)."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        """Starts with the product's own tools.

        Raises:
            UsageError: a name is invalid or taken.
        """
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Add one of the product's own tools.

        Raises:
            UsageError: the name is invalid or taken.
        """
        name = tool.definition.name
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} cannot be a tool's name.",
                hint="Use at most 64 letters, digits, _ and -, beginning with a letter.",
            )
        if name in self._tools:
            raise UsageError(f"there is a tool named {name!r} already.")
        self._tools[name] = tool

    def add_foreign(self, tool: Tool) -> None:
        """Add a tool that comes from outside the product.

        Raises:
            UsageError: the name is invalid, taken, or could be mistaken for a tool that is there.
        """
        name = tool.definition.name
        alike = _alike(name)
        for taken in (*sorted(BUILT_IN), *self._tools):
            if _alike(taken) == alike:
                raise UsageError(f"a foreign tool cannot be named {name!r}: {taken!r} is taken.")
        self.add(tool)

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """All tools, in the order they were added: a stable order keeps prompt caches warm."""
        return tuple(tool.definition for tool in self._tools.values())

    def get(self, name: str) -> Tool | None:
        """A tool by its exact name."""
        return self._tools.get(name)


def _alike(name: str) -> str:
    return name.casefold().replace("-", "").replace("_", "")
