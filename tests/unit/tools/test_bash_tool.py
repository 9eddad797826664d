"""bash, over a shell that answers as told."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from agentls.core.errors import InvalidArguments
from agentls.core.ports import Access, CommandResult, ToolOutput
from support.tool_calls import workbench


@pytest.mark.parametrize(
    ("result", "output"),
    [
        (CommandResult(0, "hello\n"), ToolOutput("hello\n[exit code 0]", "exit code 0")),
        (CommandResult(0, " \n"), ToolOutput("[exit code 0, no output]", "exit code 0")),
        (CommandResult(3, "bad\n"), ToolOutput("bad\n[exit code 3]", "exit code 3")),
        (
            CommandResult(None, ""),
            ToolOutput("[ended without an exit code, no output]", "ended without an exit code"),
        ),
        (
            CommandResult(None, "half", timed_out=True),
            ToolOutput(
                "half\n[timed out after 120 s; the command was stopped]",
                "timed out after 120 s; the command was stopped",
                is_error=True,
            ),
        ),
    ],
)
async def test_how_a_command_ended(result: CommandResult, output: ToolOutput) -> None:
    assert await workbench(result=result).call("bash", command="x") == output


async def test_nothing_runs_while_preparing() -> None:
    bench = workbench()

    prepared = await bench.prepare("bash", command="make test")

    assert (prepared.title, bench.shell.ran) == ("Run make test", [])
    assert prepared.access == Access("execute", command="make test")
    await prepared.run()
    assert bench.shell.ran == [("make test", 120.0)]


@pytest.mark.parametrize(
    ("given", "used"), [(None, 120.0), (5, 5.0), ("7.5", 7.5), (600, 600.0), (120_000, 600.0)]
)
async def test_the_time_limit(given: JsonValue, used: float) -> None:
    bench = workbench()

    await bench.call("bash", command="x", timeout_s=given)

    assert bench.shell.ran == [("x", used)]


@pytest.mark.parametrize("timeout_s", [0, -1, "nan", "soon"])
async def test_a_senseless_time_limit_is_refused(timeout_s: JsonValue) -> None:
    with pytest.raises(InvalidArguments, match="'timeout_s'"):
        await workbench().prepare("bash", command="x", timeout_s=timeout_s)


@pytest.mark.parametrize("command", ["", " \n", "a\0b"])
async def test_a_senseless_command_is_refused(command: str) -> None:
    with pytest.raises(InvalidArguments, match="'command'"):
        await workbench().prepare("bash", command=command)


async def test_the_title_holds_the_whole_command_and_hides_nothing() -> None:
    command = "echo " + "a" * 5_000 + " \u202e\x1b[2K\n" + "rm -rf x"

    prepared = await workbench().prepare("bash", cmd=command)

    assert prepared.title == (
        "Run echo " + "a" * 5_000 + " \\u{202e}\\u{1b}[2K ⏎ rm -rf x"
        " [contains hidden characters, shown as \\u{…}]"
    )
    assert prepared.access.command == command


async def test_endless_output_is_cut_and_says_how_it_ended() -> None:
    bench = workbench(result=CommandResult(1, "x" * 1_000_000))

    content = (await bench.call("bash", command="yes")).content

    assert len(content.encode()) < 10_200
    assert "run it again with head, tail or grep for the rest" in content
    assert content.endswith("\n[exit code 1]")
