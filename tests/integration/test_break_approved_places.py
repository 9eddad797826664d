"""What was approved is one place: a path that leads elsewhere by then is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from agentls.core.errors import StaleFile
from agentls.core.ports import Tool, ToolContext
from agentls.tools.builtin import builtin
from agentls.workspace.documents import Documents
from agentls.workspace.process import Subprocesses
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots

WRITE: dict[str, JsonValue] = {"content": "evil\n"}
EDIT: dict[str, JsonValue] = {"old_text": "same", "new_text": "evil"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("docs", ".vscode", "src/deep"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("docs/old.json", ".vscode/old.json", "src/old.json"):
        (tmp_path / name).write_text("same\n")
    (tmp_path / "out").symlink_to("docs")
    return tmp_path


def tool_of(folder: Path, name: str) -> Tool:
    roots = Roots(folder)
    tools = builtin(Documents(roots), Ripgrep(roots), Subprocesses(folder))
    tool = tools.get(name)
    assert tool is not None
    return tool


def snapshot(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def retarget(folder: Path) -> None:
    (folder / "out").unlink()
    (folder / "out").symlink_to(".vscode")


def put_a_folder_there(folder: Path) -> None:
    (folder / "out").unlink()
    (folder / "out").mkdir()
    (folder / "out" / "old.json").write_text("same\n")


def swap_the_real_folder(folder: Path) -> None:
    (folder / "docs").rename(folder / "moved")
    (folder / "docs").symlink_to(".vscode")


MOVES = [retarget, put_a_folder_there, swap_the_real_folder]


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize(
    ("name", "path", "arguments"),
    [
        ("write_file", "out/new.json", WRITE),
        ("write_file", "out/deep/new.json", WRITE),
        ("write_file", "out/old.json", WRITE),
        ("edit_file", "out/old.json", EDIT),
        ("edit_file", "out/new.json", {"old_text": "", "new_text": "evil\n"}),
    ],
)
async def test_a_link_moved_after_the_approval_is_refused(
    folder: Path,
    move: Callable[[Path], None],
    name: str,
    path: str,
    arguments: dict[str, JsonValue],
) -> None:
    prepared = await tool_of(folder, name).prepare({"path": path, **arguments}, ToolContext())
    assert not any(facts.protected for facts in prepared.access.paths)
    move(folder)
    before = snapshot(folder)

    with pytest.raises(StaleFile, match="leads elsewhere by now"):
        await prepared.run()

    assert snapshot(folder) == before


async def test_a_real_folder_swapped_for_a_link_is_refused(folder: Path) -> None:
    tool = tool_of(folder, "write_file")
    prepared = await tool.prepare({"path": "src/new.json", **WRITE}, ToolContext())
    (folder / "src").rename(folder / "elsewhere")
    (folder / "src").symlink_to(".vscode")

    with pytest.raises(StaleFile):
        await prepared.run()

    assert not (folder / ".vscode" / "new.json").exists()


async def test_a_link_that_stays_works(folder: Path) -> None:
    tool = tool_of(folder, "write_file")
    prepared = await tool.prepare({"path": "out/new.json", **WRITE}, ToolContext())

    await prepared.run()

    assert (folder / "docs" / "new.json").read_text() == "evil\n"
