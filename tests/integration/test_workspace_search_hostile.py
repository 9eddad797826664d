"""What no input can make a search do, and how searches end."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import time
from pathlib import Path

import psutil
import pytest

from agentls.core.errors import InvalidArguments, ToolError
from agentls.core.ports import Found, GrepMatch
from agentls.workspace.folders import Folder
from agentls.workspace.rg_process import Searcher, find_ripgrep
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots
from support.workspaces import lines, plant


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    plant(root)
    (tmp_path / "outside.py").write_text("needle outside\n")
    return root


@pytest.fixture
def search(root: Path) -> Ripgrep:
    return Ripgrep(Roots(root))


# --- hostile input ---------------------------------------------------------------------------


@pytest.fixture
def hostile(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that leaves a mark, and everything that could make ripgrep run it."""
    mark = tmp_path / "ran"
    for place in (root / "rg", root / "evil", tmp_path / "bin" / "rg"):
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"#!/bin/sh\ntouch {mark}\n")
        place.chmod(place.stat().st_mode | stat.S_IXUSR)
    config = tmp_path / "ripgreprc"
    config.write_text(f"--pre={root / 'evil'}\n--no-ignore\n--follow\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{root}:/usr/bin:/bin")
    monkeypatch.chdir(root)
    return mark


def assert_untouched(mark: Path) -> None:
    assert not mark.exists()


@pytest.mark.parametrize(
    "pattern",
    ["--pre=./evil", "--pre", "-x", "--files", "--", "-", "-e", "$(touch ran)", "`id`; rm"],
)
async def test_a_pattern_is_only_a_pattern(
    root: Path, search: Ripgrep, hostile: Path, pattern: str
) -> None:
    (root / "text").write_text(f"before\n{pattern}\nafter\n")
    found = await search.grep(pattern, literal=True)
    assert GrepMatch("text", 2, pattern) in found.matches
    if pattern.startswith("--pre="):
        assert found.matches == (GrepMatch("text", 2, pattern),)
    assert_untouched(hostile)


@pytest.mark.parametrize(
    "name", ["-x", "--pre=evil", "--", "-", "a\nb", 'it\'s "x"', "ü ï", "$(x)"]
)
async def test_a_name_is_only_a_name(root: Path, search: Ripgrep, hostile: Path, name: str) -> None:
    (root / name).mkdir()
    (root / name / name).write_text("unique text\n")
    full = f"{name}/{name}"
    assert await search.grep("unique text") == Found(
        matches=(GrepMatch(full, 1, "unique text"),), skipped_secrets=3
    )
    for path in (name, full):
        assert lines(await search.grep("unique", path=path)) == [f"{full}:1:unique text"]
    assert full in (await search.glob("*")).paths
    assert (await search.glob("*", path=name)).paths == (full,)
    assert_untouched(hostile)


@pytest.fixture
def latin_name(root: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9")).write_text("unique text\n")
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")


@pytest.mark.usefixtures("latin_name")
async def test_names_that_are_not_utf8_can_be_shown(search: Ripgrep) -> None:
    assert lines(await search.grep("unique")) == ["caf\ufffd:1:unique text"]
    assert "caf\ufffd" in (await search.glob("*")).paths


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": "(a"}, "The pattern cannot be used: unclosed group."),
        (
            {"pattern": "a\nb"},
            r'The pattern cannot be used: the literal "\n" is not allowed in a regex.',
        ),
        ({"pattern": "(?=a)"}, "The pattern cannot be used: look-around"),
        ({"pattern": ""}, "The pattern is empty."),
        ({"pattern": "a\0"}, "The pattern holds a NUL or is not valid Unicode."),
        ({"pattern": "\ud800"}, "The pattern holds a NUL or is not valid Unicode."),
        ({"pattern": "a" * 10_001}, "The pattern is longer than 10000 characters."),
        ({"pattern": "a", "glob": "[a"}, "The glob '[a' cannot be used: '[' is not closed."),
    ],
)
async def test_bad_patterns_say_why(
    search: Ripgrep, arguments: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidArguments) as error:
        await search.grep(**arguments)  # type: ignore[arg-type]
    assert str(error.value).startswith(message)


async def test_places_that_do_not_exist_say_so(search: Ripgrep) -> None:
    with pytest.raises(ToolError, match=r"^'nowhere' does not exist\.$"):
        await search.grep("x", path="nowhere")
    with pytest.raises(InvalidArguments, match="cannot be used"):
        await search.glob("{a")


async def test_bytes_of_all_kinds(root: Path, search: Ripgrep) -> None:
    (root / "bin").write_bytes(b"early match\n" + b"x" * 200_000 + b"\0match\n")
    (root / "latin1").write_bytes(b"caf\xe9 match\r\n")
    (root / "utf16").write_bytes("\ufeffgrün match\n".encode("utf-16-le"))
    (root / "minified.js").write_text("a;" * 2_500_000 + "match" + "b;" * 10)
    (root / "huge").write_bytes(b"match\n" + b"x\n" * 6_000_000)
    found = await search.grep("match$|match", glob="*")
    by_path = {match.path: match.text for match in found.matches}
    assert sorted(by_path) == ["latin1", "minified.js", "utf16"]
    assert by_path["latin1"] == "café match"
    assert by_path["utf16"] == "grün match"
    assert by_path["minified.js"].endswith("a;a;matchb;b;b;b;b;b;b;b;b;b;")
    assert len(by_path["minified.js"]) < 600


async def test_temporary_files_of_writes_are_never_found(root: Path, search: Ripgrep) -> None:
    (root / ".agentls-tmp-1-abcdef").write_text("needle\n")
    assert len((await search.grep("needle")).matches) == 4
    assert (await search.glob(".agentls*")).paths == ()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc to start in an open folder")
def test_a_folder_swapped_after_it_was_opened_is_not_entered(root: Path) -> None:
    searcher = Searcher(find_ripgrep())
    with Folder.open(root, ("src",)) as folder:
        (root / "src").rename(root / "moved")
        (root / "src").symlink_to(root.parent)
        with searcher.run(folder, ["--files", "--null", "--", "."]) as output:
            found = sorted(output.records(b"\0"))
    assert found == [b"./a.py", b"./deep/b.py", b"./deep/c.txt"]


# --- time ------------------------------------------------------------------------------------


def running_ripgreps() -> list[int]:
    return [child.pid for child in psutil.Process().children() if child.name() == "rg"]


@pytest.fixture
def endless(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search that never ends by itself."""
    stubborn = root.parent / "rg"
    stubborn.write_text("#!/bin/sh\nprintf 'src/a.py\\0'\nexec sleep 1000\n")
    stubborn.chmod(0o755)
    monkeypatch.setattr("agentls.workspace.ripgrep.find_ripgrep", lambda: stubborn)
    return stubborn


def sleepers() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.name() == "sleep"]


def wait_for_sleepers() -> None:
    while not sleepers():
        time.sleep(0.01)


async def test_cancelling_kills_ripgrep(search: Ripgrep, endless: Path) -> None:
    searching = asyncio.create_task(search.grep("needle"))
    await asyncio.to_thread(wait_for_sleepers)
    start = time.perf_counter()
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert time.perf_counter() - start < 1.0
    assert sleepers() == []


async def test_a_search_cancelled_before_it_starts_starts_nothing(
    root: Path, search: Ripgrep, endless: Path
) -> None:
    searching = asyncio.create_task(search.grep("needle"))
    await asyncio.sleep(0)
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert sleepers() == []
    searcher = Searcher(endless)
    searcher.stop()
    with Folder.open(root) as folder, searcher.run(folder, []) as output:
        assert list(output.records(b"\n")) == []


async def test_at_the_time_limit_the_search_gives_what_it_has(root: Path, endless: Path) -> None:
    search = Ripgrep(Roots(root), time_limit_s=0.3)
    assert await search.glob("*") == Found(paths=("src/a.py",), truncated=True)
    with pytest.raises(ToolError, match=r"took longer than 0\.3 s"):
        await search.grep("needle")
    assert sleepers() == []


async def test_no_process_or_descriptor_is_left(search: Ripgrep) -> None:
    await search.grep("needle")
    before = descriptors()
    for _ in range(5):
        await search.grep("needle", limit=1)
        await search.glob("*")
        with pytest.raises(InvalidArguments):
            await search.grep("(")
    assert running_ripgreps() == []
    assert descriptors() == before


def descriptors() -> int:
    return psutil.Process().num_fds()


async def test_ripgrep_is_the_one_that_was_installed(hostile: Path) -> None:
    assert find_ripgrep().parent == Path(sys.executable).parent
