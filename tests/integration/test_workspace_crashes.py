"""When the system fails a write, or it is killed: the old bytes or the new, and nothing else."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentls.core.errors import ToolError
from agentls.workspace.documents import Documents
from agentls.workspace.roots import Roots
from agentls.workspace.writes import TEMPORARY_PREFIX
from support.workspaces import run_python, shared_folder, snapshot


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    root.mkdir()
    return root


@pytest.fixture
def files(root: Path) -> Documents:
    return Documents(Roots(root))


WRITE = """
import asyncio, pathlib, sys
from agentls.core.errors import ToolError
from agentls.workspace.documents import Documents
from agentls.workspace.roots import Roots

async def main(folder, name, text):
    files = Documents(Roots(pathlib.Path(folder)))
    try:
        base = (await files.read(name)).version
    except ToolError:
        base = None
    try:
        await files.write(name, text, base=base)
        print("written")
    except ToolError as error:
        print(error)

"""


def test_a_full_disk_leaves_the_old_file(root: Path) -> None:
    """A limit on the size of files fails a write midway, as a full disk does."""
    (root / "f").write_text("old\n")
    before = snapshot(root)
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    run = "asyncio.run(main(sys.argv[1], sys.argv[2], 'x' * 200_000))\n"
    for name in ("f", "new/folder/g"):
        assert run_python(WRITE + limited + run, str(root), name) == (
            f"'{name}' was not written: the disk is full. Nothing was changed.\n"
        )
    assert snapshot(root) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "mount"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)]
    if os.geteuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a file system of its own can only be mounted by root")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


async def test_a_really_full_disk_leaves_the_old_file(small_disk: Path) -> None:
    (small_disk / "f").write_text("old\n" * 1000)
    before = snapshot(small_disk)
    files = Documents(Roots(small_disk))
    read = await files.read("f")
    with pytest.raises(ToolError, match=r"the disk is full\. Nothing was changed\."):
        await files.write("f", "x" * 300_000, base=read.version)
    with pytest.raises(ToolError, match="the disk is full"):
        await files.write("d/new", "x" * 300_000, base=None)
    assert snapshot(small_disk) == before


async def test_a_read_only_file_is_refused(files: Documents, root: Path) -> None:
    """By its mode: also for root, whom the system would let write."""
    (root / "f").write_text("old\n")
    (root / "f").chmod(0o444)
    before = snapshot(root)
    read = await files.read("f")
    with pytest.raises(ToolError, match=r"^'f' is read-only\. Nothing was changed\.$"):
        await files.write("f", "new\n", base=read.version)
    assert snapshot(root) == before


def test_without_permission_nothing_changes() -> None:
    run = "asyncio.run(main(sys.argv[1], sys.argv[2], 'new'))\n"
    with shared_folder() as folder:
        (folder / "closed").mkdir()
        (folder / "closed" / "f").write_text("old\n")
        (folder / "closed" / "f").chmod(0o666)
        (folder / "theirs").write_text("old\n")
        (folder / "theirs").chmod(0o644)
        (folder / "closed").chmod(0o555)
        if os.geteuid() != 0:
            (folder / "theirs").chmod(0o444)
        before = snapshot(folder)
        printed = [
            run_python(WRITE + run, str(folder), name, as_nobody=True)
            for name in ("closed/f", "closed/new", "closed/d/new", "theirs")
        ]
        assert printed == [
            "'closed/f' cannot be written: permission denied. Nothing was changed.\n",
            "'closed/new' cannot be written: permission denied. Nothing was changed.\n",
            "'closed/d/new' cannot be written: permission denied. Nothing was changed.\n",
            "'theirs' is read-only. Nothing was changed.\n",
        ]
        assert snapshot(folder) == before
        (folder / "closed").chmod(0o755)


CRASHING = """
import asyncio, pathlib, sys
from agentls.workspace.documents import Documents
from agentls.workspace.roots import Roots

async def main():
    files = Documents(Roots(pathlib.Path(sys.argv[1])))
    print("ready", flush=True)
    number = 0
    while True:
        read = await files.read("f")
        await files.write("f", chr(97 + number % 26) * 300_000, base=read.version)
        await files.write(f"new{number}", "n" * 100_000, base=None)
        number += 1

asyncio.run(main())
"""


def test_kill_9_at_any_moment_leaves_old_or_new_bytes(root: Path) -> None:
    chance = random.Random(1)  # noqa: S311 - the moments are to be the same every time
    path = root / "f"
    server = str(Path(sys.modules["agentls"].__file__ or "").parents[1])
    leftovers = 0
    for attempt in range(100):
        if attempt >= 20 and leftovers:
            break
        path.write_text("0" * 300_000)
        child = subprocess.Popen(
            [sys.executable, "-c", CRASHING, str(root)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": server},
        )
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(chance.uniform(0.0, 0.03))  # the moment to strike, not a synchronisation
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        data = path.read_bytes()
        assert len(data) == 300_000
        assert len(set(data)) == 1
        for new in root.glob("new*"):
            assert new.read_bytes() == b"n" * 100_000
            new.unlink()
        leftovers += sum(entry.name.startswith(TEMPORARY_PREFIX) for entry in root.iterdir())
        asyncio.run(write_once(root))
        assert sorted(entry.name for entry in root.iterdir()) == ["f"]
    assert leftovers > 0, "no crash fell into a write: the test proved nothing"


async def write_once(root: Path) -> None:
    files = Documents(Roots(root))
    read = await files.read("f")
    await files.write("f", "swept", base=read.version)


def test_only_our_abandoned_files_are_swept(files: Documents, root: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    ours = f"{TEMPORARY_PREFIX}{dead.pid}-0123456789ab"
    old = f"{TEMPORARY_PREFIX}{os.getppid()}-0123456789ab"
    kept = [
        f"{TEMPORARY_PREFIX}{os.getppid()}-ba9876543210",
        f"{TEMPORARY_PREFIX}x",
        f"x{ours}",
        ".agentls",
    ]
    for name in (ours, old, *kept):
        (root / name).write_text("x")
    os.utime(root / old, (0, 0))
    folder = root / f"{TEMPORARY_PREFIX}{dead.pid}-aaaaaaaaaaaa"
    folder.mkdir()
    asyncio.run(files.write("new", "x", base=None))
    assert sorted(path.name for path in root.iterdir()) == sorted([*kept, folder.name, "new"])
