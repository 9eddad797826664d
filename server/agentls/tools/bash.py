"""bash: a shell command in the workspace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from pydantic import JsonValue

from agentls.core.errors import InvalidArguments
from agentls.core.ports import Access, CommandResult, Prepared, Shell, ToolContext, ToolOutput
from agentls.core.requests import ToolDefinition
from agentls.tools.arguments import Also, Arguments, define, parse
from agentls.tools.output import ToolLimits, cap, one_line

_GRACE_S = 10.0
"""Time for the shell to end a command that ran out of its own time."""


class BashArguments(Arguments):
    """A command line, and how long it may take."""

    command: Annotated[str, Also("cmd", "script", "shell_command")]
    timeout_s: Annotated[float | None, Also("timeout")] = None


def _definition() -> ToolDefinition:
    return define("bash", "Run a shell command in the workspace.", BashArguments, "execute")


@dataclass(frozen=True)
class Bash:
    """Runs commands; a command that fails is an answer, not an error."""

    shell: Shell
    limits: ToolLimits
    definition: ToolDefinition = field(default_factory=_definition, init=False)
    mutates: bool = field(default=True, init=False)
    idempotent: bool = field(default=False, init=False)

    @property
    def timeout_s(self) -> float:
        """Above any time limit a call can ask for: the shell itself ends the command."""
        return self.limits.max_command_timeout_s + _GRACE_S

    async def prepare(
        self,
        arguments: dict[str, JsonValue],
        context: ToolContext,  # noqa: ARG002 - part of the port
    ) -> Prepared:
        """Check the arguments; the title holds the whole command, as that is what is approved."""
        wanted = parse("bash", BashArguments, arguments)
        if not wanted.command.strip():
            raise InvalidArguments("bash: 'command' is empty.")
        if "\0" in wanted.command:
            raise InvalidArguments("bash: 'command' holds a NUL character.")
        timeout_s = self._timeout(wanted.timeout_s)

        async def run() -> ToolOutput:
            result = await self.shell.run(wanted.command, timeout_s=timeout_s)
            return _answer(result, timeout_s, self.limits)

        access = Access("execute", command=wanted.command)
        return Prepared(f"Run {one_line(wanted.command)}", access, run)

    def _timeout(self, wanted_s: float | None) -> float:
        if wanted_s is None:
            return self.limits.command_timeout_s
        if not wanted_s > 0:
            raise InvalidArguments("bash: 'timeout_s' must be above 0.")
        return min(wanted_s, self.limits.max_command_timeout_s)


def _answer(result: CommandResult, timeout_s: float, limits: ToolLimits) -> ToolOutput:
    if result.timed_out:
        status = f"timed out after {timeout_s:g} s; the command was stopped"
    elif result.exit_code is None:
        status = "ended without an exit code"
    else:
        status = f"exit code {result.exit_code}"
    output = cap(result.output, limits, "run it again with head, tail or grep for the rest")
    content = f"{output.rstrip()}\n[{status}]" if output.strip() else f"[{status}, no output]"
    return ToolOutput(content, summary=status, is_error=result.timed_out)
