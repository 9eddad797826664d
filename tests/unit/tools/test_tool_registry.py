"""Which tools there are, and under which names."""

from __future__ import annotations

import json

import pytest

from agentls.core.errors import UsageError
from agentls.tools.registry import BUILT_IN, ToolRegistry
from support.agent_fakes import FakeTool
from support.tool_calls import workbench


async def _nothing(_: object) -> str:
    return ""


def tool(name: str) -> FakeTool:
    return FakeTool(name, _nothing)


def test_definitions_come_in_the_order_the_tools_were_added() -> None:
    registry = ToolRegistry([tool("b"), tool("a")])
    registry.add_foreign(tool("c"))

    assert [definition.name for definition in registry.definitions()] == ["b", "a", "c"]


def test_a_tool_is_found_by_its_exact_name_only() -> None:
    read = tool("read_file")
    registry = ToolRegistry([read])

    assert registry.get("read_file") is read
    assert registry.get("Read_File") is None
    assert registry.get("") is None


def test_a_name_is_taken_once() -> None:
    with pytest.raises(UsageError, match="a tool named 'a' already"):
        ToolRegistry([tool("a"), tool("a")])


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a.b", "1a", "a" * 65, "bаsh", "a\n", "bash\u200b"]
)
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be a tool's name"):
        ToolRegistry([tool(name)])


@pytest.mark.parametrize("name", ["bash", "Bash", "read-file", "READFILE", "grep", "own_tool"])
def test_a_foreign_tool_cannot_take_or_imitate_a_name(name: str) -> None:
    registry = ToolRegistry([tool("own-tool")])

    with pytest.raises(UsageError, match="foreign tool"):
        registry.add_foreign(tool(name))
    assert registry.get(name) is None


def test_the_built_in_tools() -> None:
    registry = workbench().tools

    assert {d.name: d.kind for d in registry.definitions()} == {
        "read_file": "read",
        "write_file": "edit",
        "edit_file": "edit",
        "glob": "search",
        "grep": "search",
        "bash": "execute",
    }
    assert {d.name for d in registry.definitions()} == BUILT_IN
    assert {name for name in BUILT_IN if workbench().tool(name).mutates} == {
        "write_file",
        "edit_file",
        "bash",
    }
    assert {name for name in BUILT_IN if workbench().tool(name).idempotent} == {
        "read_file",
        "glob",
        "grep",
    }
    assert {name: workbench().tool(name).timeout_s for name in sorted(BUILT_IN)} == {
        "bash": 610.0,
        "edit_file": 15.0,
        "glob": 15.0,
        "grep": 15.0,
        "read_file": 15.0,
        "write_file": 15.0,
    }


def test_all_definitions_together_are_small() -> None:
    as_sent = [
        {"type": "function", "function": definition.model_dump(exclude={"kind"})}
        for definition in workbench().tools.definitions()
    ]

    assert len(json.dumps(as_sent, separators=(",", ":")).encode()) < 2_200
