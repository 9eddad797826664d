"""Writes never go over somebody else's change."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agentls.core.errors import StaleFile
from agentls.workspace.documents import Documents
from agentls.workspace.roots import Roots
from support.workspaces import snapshot


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    root.mkdir()
    return root


@pytest.fixture
def files(root: Path) -> Documents:
    return Documents(Roots(root))


async def test_a_file_that_changed_since_is_refused(files: Documents, root: Path) -> None:
    (root / "f").write_text("old\n")
    read = await files.read("f")
    (root / "f").write_text("theirs\n")
    with pytest.raises(StaleFile, match=r"^'f' changed since it was read\. Read it again\.$"):
        await files.write("f", "ours\n", base=read.version)
    assert (root / "f").read_text() == "theirs\n"
    (root / "f").unlink()
    with pytest.raises(StaleFile, match="does not exist any more"):
        await files.write("f", "ours\n", base=read.version)
    assert snapshot(root) == {}


async def test_same_size_and_time_do_not_hide_a_change(files: Documents, root: Path) -> None:
    (root / "f").write_text("old\n")
    before = (root / "f").stat()
    read = await files.read("f")
    (root / "f").write_text("new\n")
    os.utime(root / "f", ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(StaleFile):
        await files.write("f", "our\n", base=read.version)


@pytest.mark.parametrize("how", ["rename", "in place"])
async def test_a_change_during_the_write_is_refused(
    files: Documents, root: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    (root / "f").write_text("old\n")
    read = await files.read("f")
    sync = os.fsync

    def change_meanwhile(descriptor: int) -> None:
        sync(descriptor)
        if how == "rename":
            (root / "theirs").write_text("theirs\n")
            (root / "theirs").rename(root / "f")
        else:
            (root / "f").write_text("theirs\n")

    monkeypatch.setattr(os, "fsync", change_meanwhile)
    with pytest.raises(StaleFile, match="changed while it was being written"):
        await files.write("f", "ours\n", base=read.version)
    assert snapshot(root) == {"f": (0o100644, b"theirs\n")}


async def test_a_new_file_never_takes_the_place_of_another(
    files: Documents, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("theirs")
    with pytest.raises(StaleFile, match=r"^'f' exists already\. Read it first\.$"):
        await files.write("f", "ours", base=None)
    sync = os.fsync

    def create_meanwhile(descriptor: int) -> None:
        sync(descriptor)
        (root / "g").write_text("theirs")

    monkeypatch.setattr(os, "fsync", create_meanwhile)
    with pytest.raises(StaleFile, match="exists already"):
        await files.write("g", "ours", base=None)
    assert snapshot(root) == {"f": (0o100644, b"theirs"), "g": (0o100644, b"theirs")}


async def test_without_hard_links_a_new_file_is_still_exclusive(
    files: Documents, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    await files.write("new", "ours", base=None)
    (root / "f").write_text("theirs")
    with pytest.raises(StaleFile):
        await files.write("f", "ours", base=None)
    assert snapshot(root) == {"f": (0o100644, b"theirs"), "new": (0o100644, b"ours")}


async def test_of_many_writers_from_one_base_one_wins(files: Documents, root: Path) -> None:
    (root / "f").write_text("old")
    read = await files.read("f")
    results = await asyncio.gather(
        *(files.write("f", f"{number}", base=read.version) for number in range(12)),
        return_exceptions=True,
    )
    winners = [result.text for result in results if not isinstance(result, BaseException)]
    assert snapshot(root) == {"f": (0o100644, winners[0].encode())}
    assert sum(isinstance(result, StaleFile) for result in results) == 11


async def test_of_many_creators_one_wins(files: Documents, root: Path) -> None:
    results = await asyncio.gather(
        *(files.write("d/f", f"{number}", base=None) for number in range(12)),
        return_exceptions=True,
    )
    winners = [result.text for result in results if not isinstance(result, BaseException)]
    assert snapshot(root / "d") == {"f": (0o100644, winners[0].encode())}
    assert sum(isinstance(result, StaleFile) for result in results) == 11


async def test_a_cancelled_write_is_whole_or_not_begun(files: Documents, root: Path) -> None:
    (root / "f").write_text("old")
    for number in range(10):
        read = await files.read("f")
        writing = asyncio.create_task(files.write("f", f"new {number}", base=read.version))
        for _ in range(number):
            await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert snapshot(root) in (
            {"f": (0o100644, read.text.encode())},
            {"f": (0o100644, f"new {number}".encode())},
        )
