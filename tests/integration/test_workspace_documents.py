"""Reading files and stating facts about them: disk, buffers, links, and what is no real file."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agentls.core.errors import PathRefused, StaleFile, ToolError
from agentls.core.ports import FileText, PathFacts
from agentls.workspace.documents import Documents
from agentls.workspace.roots import Roots
from support.workspaces import EditorBuffers, run_python, shared_folder, snapshot


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    root.mkdir()
    (tmp_path / "outside").write_text("SECRET\n")
    return root


@pytest.fixture
def files(root: Path) -> Documents:
    return Documents(Roots(root))


async def refused(files: Documents, path: str) -> str:
    with pytest.raises(PathRefused) as error:
        await asyncio.wait_for(files.read(path), 5)
    return str(error.value)


async def test_text_comes_as_it_is_without_the_mark(files: Documents, root: Path) -> None:
    (root / "a.txt").write_bytes(b"\xef\xbb\xbfgr\xc3\xbcn\r\nzwei\x0c\rdrei")
    read = await files.read("./a.txt")
    assert read == FileText("a.txt", "grün\r\nzwei\x0c\rdrei", read.version)
    again = await files.read(f"{root}/a.txt")
    assert again == read
    (root / "a.txt").write_bytes(b"gr\xc3\xbcn\r\nzwei\x0c\rdrei")
    assert (await files.read("a.txt")).version != read.version


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a\0b", "'x' cannot be read as text: it is a binary file."),
        (b"\xff\xfe\x00", "'x' cannot be read as text: it is marked as UTF-16 but is damaged."),
        (b"gr\xc3\xbcn \xe9", "it mixes UTF-8 with bytes that are not UTF-8."),
        (b"x" * 10_000_001, "'x' has 10 MB; the limit is 10 MB."),
    ],
)
async def test_what_is_no_text_says_why(
    files: Documents, root: Path, data: bytes, message: str
) -> None:
    (root / "x").write_bytes(data)
    with pytest.raises(ToolError) as error:
        await files.read("x")
    assert message in str(error.value)


async def test_a_huge_sparse_file_is_refused_unread(files: Documents, root: Path) -> None:
    with (root / "x").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ToolError, match="has 1099512 MB"):
        await asyncio.wait_for(files.read("x"), 2)


async def test_missing_files_and_folders(files: Documents, root: Path) -> None:
    (root / "folder").mkdir()
    with pytest.raises(ToolError, match=r"^'no/such' does not exist\.$"):
        await files.read("no/such")
    assert await refused(files, "folder") == "'folder' is a folder, not a file."
    assert await refused(files, ".") == "'.' is a folder, not a file."


async def test_pipes_sockets_and_devices_are_refused_without_blocking(
    files: Documents, root: Path
) -> None:
    os.mkfifo(root / "pipe")
    (root / "link-to-pipe").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(root / "socket"))
        for name in ("pipe", "link-to-pipe", "socket"):
            real = "pipe" if "pipe" in name else name
            assert (
                await refused(files, name) == f"'{real}' is a device, pipe or socket, not a file."
            )
            with pytest.raises(PathRefused):
                await asyncio.wait_for(files.write(name, "x", base="0"), 5)
    (root / "zero").symlink_to("/dev/zero")
    assert "outside the workspace" in await refused(files, "zero")
    try:
        os.mknod(root / "device", 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        return  # only root makes devices; the link above shows the rest
    assert await refused(files, "device") == "'device' is a device, pipe or socket, not a file."


async def test_a_link_inside_is_read_and_its_target_named(files: Documents, root: Path) -> None:
    (root / "real.txt").write_text("x")
    (root / "link.txt").symlink_to("real.txt")
    read = await files.read("link.txt")
    assert (read.path, read.text) == ("real.txt", "x")
    assert await files.facts("link.txt") == PathFacts("link.txt", exists=True, target="real.txt")
    assert await files.facts("real.txt") == PathFacts("real.txt", exists=True)


async def test_facts(files: Documents, root: Path) -> None:
    (root / ".env").write_text("x")
    (root / ".vscode").mkdir()
    (root / "innocent").symlink_to(".env")
    (root / "notes").symlink_to(".vscode")
    (root / "id_rsa").symlink_to("plain")
    (root / "plain").write_text("x")
    (root / "dangling").symlink_to("nowhere")
    asked = [
        ".env",
        "innocent",
        ".vscode/tasks.json",
        "notes/tasks.json",
        "id_rsa",
        "dangling",
        "new/file.py",
        ".git/config",
        ".",
    ]
    assert [await files.facts(path) for path in asked] == [
        PathFacts(".env", exists=True, secret=True),
        PathFacts("innocent", exists=True, secret=True, target=".env"),
        PathFacts(".vscode/tasks.json", exists=False, protected=True),
        PathFacts("notes/tasks.json", exists=False, protected=True, target=".vscode/tasks.json"),
        PathFacts("id_rsa", exists=True, secret=True, target="plain"),
        PathFacts("dangling", exists=False, target="nowhere"),
        PathFacts("new/file.py", exists=False),
        PathFacts(".git/config", exists=False, secret=True, protected=True),
        PathFacts(".", exists=True),
    ]
    with pytest.raises(PathRefused):
        await files.facts("../outside")


async def test_facts_of_a_second_root_are_judged_below_it(root: Path, tmp_path: Path) -> None:
    other = tmp_path / ".ssh"
    other.mkdir()
    (other / "a.py").write_text("x")
    (other / ".env").write_text("x")
    files = Documents(Roots(root, other))
    assert await files.facts(f"{other}/a.py") == PathFacts(f"{other}/a.py", exists=True)
    assert (await files.facts(".env")).secret


# --- buffers ---------------------------------------------------------------------------------


async def test_an_open_buffer_is_what_is_read_and_written(root: Path) -> None:
    (root / "a.txt").write_text("disk\n")
    buffers = EditorBuffers({root / "a.txt": ("one\r\ntwo\r\n", 7)})
    files = Documents(Roots(root), buffers)
    before = snapshot(root)
    read = await files.read("a.txt")
    assert (read.text, read.version[:9]) == ("one\r\ntwo\r\n", "buffer:7:")
    written = await files.write("a.txt", "one\n2\n", base=read.version)
    assert (written.text, written.version[:9]) == ("one\r\n2\r\n", "buffer:8:")
    assert buffers.edits == [(root / "a.txt", "one\r\n2\r\n", 7)]
    assert await files.read("a.txt") == written
    assert snapshot(root) == before


async def test_a_buffer_is_found_through_a_link_to_its_file(root: Path) -> None:
    (root / "a.txt").write_text("disk\n")
    (root / "link").symlink_to("a.txt")
    files = Documents(Roots(root), EditorBuffers({root / "a.txt": ("buffer", 1)}))
    assert (await files.read("link")).text == "buffer"


async def test_a_buffer_that_moved_on_is_stale(root: Path) -> None:
    (root / "a.txt").write_text("disk\n")
    path = root / "a.txt"
    buffers = EditorBuffers({path: ("one", 1)})
    files = Documents(Roots(root), buffers)
    read = await files.read("a.txt")
    moved: list[dict[Path, tuple[str, int]]] = [
        {path: ("typed", 2)},
        {path: ("opened again", 1)},
        {},
    ]
    for texts in moved:
        buffers.texts = texts
        with pytest.raises(StaleFile, match="Read it again"):
            await files.write("a.txt", "new", base=read.version)
    buffers.texts = {}
    on_disk = await files.read("a.txt")
    buffers.texts = {path: ("disk\n", 1)}
    with pytest.raises(StaleFile, match="Read it again"):
        await files.write("a.txt", "new", base=on_disk.version)
    assert (buffers.edits, path.read_text()) == ([], "disk\n")


async def test_an_unsaved_new_buffer_exists(root: Path) -> None:
    buffers = EditorBuffers({root / "new.py": ("", 1)})
    files = Documents(Roots(root), buffers)
    assert await files.facts("new.py") == PathFacts("new.py", exists=True)
    with pytest.raises(StaleFile, match="exists already"):
        await files.write("new.py", "x", base=None)
    read = await files.read("new.py")
    await files.write("new.py", "x", base=read.version)
    assert buffers.texts == {root / "new.py": ("x", 2)}
    assert not (root / "new.py").exists()


async def test_a_write_that_changes_nothing_does_not_touch_the_buffer(root: Path) -> None:
    buffers = EditorBuffers({root / "a": ("x\r\n", 1)})
    files = Documents(Roots(root), buffers)
    read = await files.read("a")
    assert await files.write("a", "x\n", base=read.version) == read
    assert buffers.edits == []


async def test_buffers_are_no_way_around_the_roots(root: Path) -> None:
    outside = root.parent / "outside"
    files = Documents(Roots(root), EditorBuffers({outside: ("x", 1), root / ".git/x": ("x", 1)}))
    with pytest.raises(PathRefused):
        await files.read("../outside")
    read = await files.read(".git/x")
    with pytest.raises(PathRefused, match="belongs to git"):
        await files.write(".git/x", "y", base=read.version)


# --- races -----------------------------------------------------------------------------------


def remove(folder: Path) -> None:
    """Remove a folder in which a write may still be under way, which makes files meanwhile."""
    while folder.exists():
        with suppress(OSError):
            shutil.rmtree(folder)


@contextmanager
def swapping(path: Path, outside: Path, make: Callable[[Path], object]) -> Iterator[None]:
    """Make `path` a link to `outside` and what `make` makes in turn, as fast as possible."""
    stop = threading.Event()
    spare, old = path.parent / "spare", path.parent / "old"

    def swap() -> None:
        while not stop.is_set():
            for build in (lambda at: at.symlink_to(outside), make):
                build(spare)
                path.rename(old)
                spare.rename(path)
                if old.is_symlink() or old.is_file():
                    old.unlink()
                else:
                    remove(old)

    with ThreadPoolExecutor(1) as executor:
        swapped = executor.submit(swap)
        try:
            yield
        finally:
            stop.set()
        swapped.result()


def make_file(path: Path) -> None:
    path.write_text("inside")


def make_folder(path: Path) -> None:
    path.mkdir()
    make_file(path / "x")


@pytest.mark.parametrize("make", [make_file, make_folder])
async def test_a_swap_for_a_link_never_leads_outside(
    root: Path, files: Documents, make: Callable[[Path], object]
) -> None:
    outside = root.parent / "o"
    outside.mkdir()
    (outside / "x").write_text("OUTSIDE")
    folder = make is make_folder
    path, name = (root / "d", "d/x") if folder else (root / "x", "x")
    make(path)
    texts: list[str] = []
    refusals = 0
    with swapping(path, outside if folder else outside / "x", make):
        for number in range(10_000):
            if number >= 300 and texts and refusals:
                break
            try:
                read = await files.read(name)
                texts.append(read.text)
                await files.write(name, f"inside {number}", base=read.version)
            except ToolError:
                refusals += 1
    assert {text.split(" ")[0] for text in texts} == {"inside"}
    assert refusals > 0
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"x": "OUTSIDE"}


async def test_a_swap_after_the_check_is_refused(
    root: Path, files: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, at exactly the moment between resolving and opening."""
    (root / "x").write_text("inside")
    resolve = Roots.resolve

    def swap_after(roots: Roots, path: str) -> object:
        place = resolve(roots, path)
        (root / "x").unlink()
        (root / "x").symlink_to(root.parent / "outside")
        return place

    base = (await files.read("x")).version
    monkeypatch.setattr(Roots, "resolve", swap_after)
    message = "'x' changed into something else while it was being opened."
    assert await refused(files, "x") == message
    (root / "x").unlink()
    (root / "x").write_text("inside")
    with pytest.raises(PathRefused, match="changed into something else"):
        await files.write("x", "new", base=base)
    assert (root.parent / "outside").read_text() == "SECRET\n"


async def test_without_descriptors_of_folders_links_are_refused_too(
    root: Path, files: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows, where each step checks the path."""
    monkeypatch.setattr("agentls.workspace.folders._BY_DESCRIPTOR", False)
    await files.write("new/folder/f", "one\ntwo\n", base=None)
    read = await files.read("new/folder/f")
    await files.write("new/folder/f", "one\n2\n", base=read.version)
    assert (root / "new/folder/f").read_text() == "one\n2\n"
    assert list(snapshot(root)) == ["new", "new/folder", "new/folder/f"]
    os.mkfifo(root / "pipe")
    assert "device, pipe or socket" in await refused(files, "pipe")
    place = Roots(root).resolve("new/folder/f")
    monkeypatch.setattr(Roots, "resolve", lambda _self, _path: place)
    (root / "new/folder").rename(root / "moved")
    (root / "new/folder").symlink_to(root / "moved")
    assert "changed into something else" in await refused(files, "new/folder/f")
    (root / "new/folder").unlink()
    (root / "new/folder").mkdir()
    (root / "new/folder/f").symlink_to(root / "moved/f")
    assert "changed into something else" in await refused(files, "new/folder/f")


async def test_a_file_nobody_may_read_says_so() -> None:
    with shared_folder() as folder:
        (folder / "closed").write_text("x")
        (folder / "closed").chmod(0)
        printed = run_python(
            """
import asyncio, pathlib, sys
from agentls.core.errors import ToolError
from agentls.workspace.documents import Documents
from agentls.workspace.roots import Roots
try:
    asyncio.run(Documents(Roots(pathlib.Path(sys.argv[1]))).read("closed"))
except ToolError as error:
    print(error)
""",
            str(folder),
            as_nobody=True,
        )
        assert printed == "'closed' cannot be read: permission denied.\n"


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


async def test_no_descriptor_is_left_open(files: Documents, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "x").write_text("x")
    os.mkfifo(root / "d" / "pipe")
    await files.read("d/x")
    before = open_descriptors()
    for number in range(20):
        read = await files.read("d/x")
        await files.write("d/x", f"{number}", base=read.version)
        for path in ("d/pipe", "d", "d/missing", "d/x/y"):
            with pytest.raises(ToolError):
                await files.read(path)
    assert open_descriptors() == before
