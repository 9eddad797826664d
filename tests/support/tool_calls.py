"""Calls built-in tools over in-memory ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import JsonValue

from agentls.core.ports import CommandResult, Prepared, Tool, ToolContext, ToolOutput
from agentls.tools.builtin import builtin
from agentls.tools.output import ToolLimits
from agentls.tools.registry import ToolRegistry
from support.fake_ports import FixedShell, MemoryFiles, MemorySearch


@dataclass
class Workbench:
    """The built-in tools of one session."""

    files: MemoryFiles
    search: MemorySearch
    shell: FixedShell
    tools: ToolRegistry
    context: ToolContext = field(default_factory=ToolContext)

    def tool(self, name: str) -> Tool:
        tool = self.tools.get(name)
        assert tool is not None
        return tool

    async def prepare(self, name: str, **arguments: JsonValue) -> Prepared:
        return await self.tool(name).prepare(arguments, self.context)

    async def call(self, name: str, **arguments: JsonValue) -> ToolOutput:
        return await (await self.prepare(name, **arguments)).run()


def workbench(
    texts: dict[str, str] | None = None,
    *,
    secrets: set[str] | None = None,
    links: dict[str, str] | None = None,
    result: CommandResult | None = None,
    limits: ToolLimits | None = None,
    readable: Callable[[str], bool] = lambda _: True,
) -> Workbench:
    """Tools over a workspace that holds `texts`."""
    files = MemoryFiles(texts=dict(texts or {}), secrets=secrets or set(), links=links or {})
    search = MemorySearch(files)
    shell = FixedShell(result or CommandResult(0, ""))
    tools = builtin(files, search, shell, limits, readable=readable)
    return Workbench(files, search, shell, tools)
