"""The product's own tools, listed once. A new tool is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable

from agentls.core.ports import Files, Shell, TextSearch
from agentls.tools.bash import Bash
from agentls.tools.edit_file import EditFile
from agentls.tools.glob import Glob
from agentls.tools.grep import Grep
from agentls.tools.output import ToolLimits
from agentls.tools.read_file import ReadFile
from agentls.tools.registry import ToolRegistry
from agentls.tools.write_file import WriteFile


def builtin(
    files: Files,
    search: TextSearch,
    shell: Shell,
    limits: ToolLimits | None = None,
    *,
    readable: Callable[[str], bool] = lambda _: True,
) -> ToolRegistry:
    """All built-in tools over the given ports.

    `readable` says whether text of a path may be shown without asking; a policy's rules decide.
    """
    limits = limits or ToolLimits()
    return ToolRegistry(
        [
            ReadFile(files, search, limits),
            WriteFile(files, limits),
            EditFile(files, search, limits, readable),
            Glob(files, search, limits),
            Grep(files, search, limits, readable),
            Bash(shell, limits),
        ]
    )
