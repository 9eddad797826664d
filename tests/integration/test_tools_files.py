"""The file tools over a real workspace: what a call leaves on the disk."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from pydantic import JsonValue

from agentls.core.errors import PathRefused, StaleFile, ToolError
from agentls.core.ports import Prepared, ToolContext, ToolOutput
from agentls.tools.builtin import builtin
from agentls.workspace.documents import Documents
from agentls.workspace.process import Subprocesses
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots


class Bench:
    def __init__(self, folder: Path) -> None:
        roots = Roots(folder)
        self.tools = builtin(Documents(roots), Ripgrep(roots), Subprocesses(roots.folders[0]))
        self.context = ToolContext()

    async def prepare(self, name: str, **arguments: JsonValue) -> Prepared:
        tool = self.tools.get(name)
        assert tool is not None
        return await tool.prepare(arguments, self.context)

    async def call(self, name: str, **arguments: JsonValue) -> ToolOutput:
        return await (await self.prepare(name, **arguments)).run()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    (tmp_path / "w-evil").mkdir()
    (tmp_path / "w-evil" / "x").write_text("outside\n")
    return folder


@pytest.fixture
def bench(folder: Path) -> Bench:
    return Bench(folder)


CRLF_BOM = "\ufeffeins\r\nzwei grün\r\ndrei".encode()
MIXED = b"eins\nzwei gr\xc3\xbcn\r\ndrei\rvier\r\n\x0cf\xc3\xbcnf\xe2\x80\xa8\nsechs"
CP1252 = "eins\r\nzwei grün – “x”\r\ndrei\r\n".encode("cp1252")


@pytest.mark.parametrize("data", [CRLF_BOM, MIXED, CP1252, b"zwei gr\xc3\xbcn"])
async def test_one_word_changed_changes_only_its_bytes(
    bench: Bench, folder: Path, data: bytes
) -> None:
    path = folder / "a.txt"
    path.write_bytes(data)
    path.chmod(0o750)

    read = (await bench.call("read_file", path="a.txt")).content
    line = next(line for line in read.split("\n") if line.startswith("zwei"))
    await bench.call(
        "edit_file", path="a.txt", old_text=line, new_text=line.replace("zwei", "ZWEI")
    )

    assert path.read_bytes() == data.replace(b"zwei", b"ZWEI")
    assert path.stat().st_mode & 0o777 == 0o750


async def test_a_whole_file_written_with_lf_keeps_its_own_line_ends(
    bench: Bench, folder: Path
) -> None:
    (folder / "a.txt").write_bytes(CRLF_BOM)

    await bench.call("write_file", path="a.txt", content="eins\nzwei blau\ndrei")

    assert (folder / "a.txt").read_bytes() == CRLF_BOM.replace("grün".encode(), b"blau")


async def test_an_edit_over_several_lines_of_a_crlf_file(bench: Bench, folder: Path) -> None:
    (folder / "a.txt").write_bytes(b"a\r\nb\r\nc\r\nd\r\n")

    await bench.call("edit_file", path="a.txt", old_text="b\nc\n", new_text="B\nB2\nC\n")

    assert (folder / "a.txt").read_bytes() == b"a\r\nB\r\nB2\r\nC\r\nd\r\n"


async def test_a_file_that_cannot_be_decoded_stays_untouched(bench: Bench, folder: Path) -> None:
    data = b"ok\x00\xff\xfe\x81\x8d\n"
    (folder / "a.bin").write_bytes(data)

    for name, arguments in (
        ("read_file", {}),
        ("write_file", {"content": "x"}),
        ("edit_file", {"old_text": "ok", "new_text": "x"}),
    ):
        with pytest.raises(ToolError):
            await bench.call(name, path="a.bin", **arguments)
    assert (folder / "a.bin").read_bytes() == data


async def test_a_new_file_gets_exactly_its_content_and_its_folders(
    bench: Bench, folder: Path
) -> None:
    await bench.call("write_file", path="new/deep/a.bat", content="a\r\nb\n")

    assert (folder / "new" / "deep" / "a.bat").read_bytes() == b"a\r\nb\n"


@pytest.mark.parametrize(
    "path", ["../w-evil/x", "{parent}/w-evil/x", "/etc/passwd", "a\0b", "sub/../../w-evil/x", "out"]
)
@pytest.mark.parametrize("name", ["read_file", "write_file", "edit_file", "glob", "grep"])
async def test_places_outside_are_refused_by_every_tool(
    bench: Bench, folder: Path, name: str, path: str
) -> None:
    (folder / "sub").mkdir()
    (folder / "out").symlink_to(folder.parent / "w-evil" / "x")
    place = path.replace("{parent}", str(folder.parent))

    with pytest.raises(PathRefused):
        await bench.call(
            name, path=place, content="x", old_text="outside", new_text="x", pattern="outside"
        )
    assert (folder.parent / "w-evil" / "x").read_text() == "outside\n"


async def test_a_link_that_stays_inside_works_and_shows_its_target(
    bench: Bench, folder: Path
) -> None:
    (folder / "real.py").write_text("x = 1\n")
    (folder / "link.py").symlink_to("real.py")

    assert (await bench.call("read_file", path="link.py")).content == "x = 1"
    prepared = await bench.prepare("edit_file", path="link.py", old_text="1", new_text="2")
    await prepared.run()

    assert prepared.title == "Edit link.py → real.py, line 1"
    assert (folder / "link.py").is_symlink()
    assert (folder / "real.py").read_text() == "x = 2\n"


async def test_a_dangling_link_is_no_place_to_write(bench: Bench, folder: Path) -> None:
    (folder / "link").symlink_to("nowhere")

    with pytest.raises(PathRefused):
        await bench.call("write_file", path="link", content="x")
    assert not (folder / "nowhere").exists()


async def test_a_link_swapped_between_check_and_use_is_refused(bench: Bench, folder: Path) -> None:
    (folder / "harmless").write_text("x\n")
    (folder / ".env").write_text("KEY=hunter2\n")
    (folder / "link").symlink_to("harmless")
    reading = await bench.prepare("read_file", path="link")
    writing = await bench.prepare("edit_file", path="link", old_text="x", new_text="y")
    (folder / "link").unlink()
    (folder / "link").symlink_to(".env")

    for prepared in (reading, writing):
        with pytest.raises(StaleFile):
            await prepared.run()
    assert (folder / ".env").read_text() == "KEY=hunter2\n"


async def test_what_is_no_regular_file_is_refused_without_blocking(
    bench: Bench, folder: Path
) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "zero").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(folder)
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        for path in ("fifo", "zero", "socket", "."):
            for name in ("read_file", "write_file"):
                with pytest.raises(ToolError):
                    await bench.call(name, path=path, content="x")


async def test_git_is_not_written(bench: Bench, folder: Path) -> None:
    (folder / ".git").mkdir()

    with pytest.raises(PathRefused):
        await bench.call("write_file", path=".git/hooks/pre-commit", content="x")
    assert list((folder / ".git").iterdir()) == []


async def test_a_file_changed_on_the_disk_meanwhile_is_refused(bench: Bench, folder: Path) -> None:
    (folder / "a").write_text("1\n")
    await bench.call("read_file", path="a")
    (folder / "a").write_text("2\n")

    with pytest.raises(StaleFile, match="Read it again"):
        await bench.prepare("edit_file", path="a", old_text="2", new_text="3")
    await bench.call("read_file", path="a")
    prepared = await bench.prepare("edit_file", path="a", old_text="2", new_text="3")
    (folder / "a").write_text("2\n2\n")
    with pytest.raises(StaleFile):
        await prepared.run()
    assert (folder / "a").read_text() == "2\n2\n"


async def test_two_edits_of_a_file_one_after_the_other(bench: Bench, folder: Path) -> None:
    (folder / "a").write_text("1\n2\n")
    await bench.call("read_file", path="a")
    await bench.call("edit_file", path="a", old_text="1", new_text="one")
    await bench.call("edit_file", path="a", old_text="2", new_text="two")

    assert (folder / "a").read_text() == "one\ntwo\n"


async def test_facts_for_the_policy(bench: Bench, folder: Path) -> None:
    (folder / ".env").write_text("KEY=1\n")
    (folder / "docs").mkdir()
    (folder / "docs" / "rules").symlink_to("../.envrc-target")
    (folder / ".envrc-target").write_text("")

    secret = (await bench.prepare("read_file", path=".env")).access.paths
    protected = (await bench.prepare("write_file", path=".vscode/tasks.json", content="x")).access
    linked = (await bench.prepare("read_file", path="docs/rules")).access.paths

    assert [facts.secret for facts in secret] == [True]
    assert [(facts.protected, facts.exists) for facts in protected.paths] == [(True, False)]
    assert [facts.target for facts in linked] == [".envrc-target"]
