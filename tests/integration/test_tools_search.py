"""glob, grep and bash over a real workspace, real ripgrep and a real shell."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import JsonValue

from agentls.core.ports import ToolContext
from agentls.permissions.policy import RulePolicy
from agentls.permissions.rules import parse_rules
from agentls.tools.builtin import builtin
from agentls.workspace.documents import Documents
from agentls.workspace.process import Subprocesses
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path.resolve()
    for name, text in {
        "src/a.py": "import os\nneedle\n",
        "src/deep/b.py": "x\nneedle\ny\n",
        "-x": "needle --pre=sh\n",
        ".env": "needle=hunter2\n",
        "secrets/c": "needle hunter3\n",
        "ignored/d.py": "needle\n",
        ".gitignore": "ignored/\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


async def call(folder: Path, name: str, **arguments: JsonValue) -> str:
    roots = Roots(folder)
    rules, problems = parse_rules(tools=["read_file"], deny=["read_file(secrets/**)"])
    assert problems == ()
    tools = builtin(
        Documents(roots),
        Ripgrep(roots),
        Subprocesses(roots.folders[0]),
        readable=RulePolicy(rules).readable,
    )
    tool = tools.get(name)
    assert tool is not None
    prepared = await tool.prepare(arguments, ToolContext())
    return (await prepared.run()).content


async def test_grep_leaves_out_secrets_and_what_rules_keep_from_reading(folder: Path) -> None:
    assert await call(folder, "grep", pattern="needle") == (
        "-x:1: needle --pre=sh\nsrc/a.py:2: needle\nsrc/deep/b.py:2: needle\n"
        "[1 file left out: may hold secrets]\n"
        "[1 match left out: a rule restricts reading them]"
    )


@pytest.mark.parametrize("path", [".env", "secrets", "secrets/c"])
async def test_a_search_of_what_must_not_be_read_shows_nothing(folder: Path, path: str) -> None:
    assert "hunter" not in await call(folder, "grep", pattern="needle", path=path)


async def test_an_expression_that_looks_like_an_option_is_an_expression(folder: Path) -> None:
    assert await call(folder, "grep", pattern="--pre=sh", path="-x") == "-x:1: needle --pre=sh"


async def test_a_hostile_ripgrep_configuration_has_no_effect(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("config")
    script = elsewhere / "run"
    script.write_text(f"#!/bin/sh\ntouch {elsewhere}/ran\n")
    script.chmod(0o755)
    (elsewhere / "rc").write_text(f"--pre={script}\n--hidden\n--no-ignore\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(elsewhere / "rc"))

    content = await call(folder, "grep", pattern="needle", path="src")

    assert content == "src/a.py:2: needle\nsrc/deep/b.py:2: needle"
    assert not (elsewhere / "ran").exists()


async def test_glob(folder: Path) -> None:
    assert await call(folder, "glob", pattern="**/*.py") == "src/a.py\nsrc/deep/b.py"
    assert await call(folder, "glob", pattern="*.py", path="src/deep") == "src/deep/b.py"


async def test_a_command_runs_in_the_workspace_and_tells_its_exit_code(folder: Path) -> None:
    command = "pwd; cat src/deep/b.py >&2; exit 3"

    assert await call(folder, "bash", command=command) == (f"{folder}\nx\nneedle\ny\n[exit code 3]")


async def test_a_command_that_takes_too_long_is_stopped(folder: Path) -> None:
    content = await call(folder, "bash", command="echo begun; sleep 600", timeout_s=0.5)

    assert content == "begun\n[timed out after 0.5 s; the command was stopped]"


async def test_a_command_sees_no_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    assert os.environ["OPENAI_API_KEY"] == "hunter2"

    assert await call(folder, "bash", command="env | grep -c hunter2") == "0\n[exit code 1]"
