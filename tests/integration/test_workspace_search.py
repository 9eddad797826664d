"""Real ripgrep over real trees: what is found, and what never is."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from agentls.core.errors import PathRefused, ToolError
from agentls.core.ports import Found, GrepMatch
from agentls.workspace.documents import Documents
from agentls.workspace.globs import compile_glob
from agentls.workspace.rg_process import find_ripgrep
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots
from support.workspaces import TREE, lines, plant


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    plant(root)
    (tmp_path / "outside.py").write_text("needle outside\n")
    return root


@pytest.fixture
def search(root: Path) -> Ripgrep:
    return Ripgrep(Roots(root))


# --- glob ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", ".", [".hidden/d.py", "src/a.py", "src/deep/b.py"]),
        ("src/**/*.py", ".", ["src/a.py", "src/deep/b.py"]),
        ("**/*.py", "src", ["src/a.py", "src/deep/b.py"]),
        ("*.py", "src/deep", ["src/deep/b.py"]),
        ("deep/*", "src", ["src/deep/b.py", "src/deep/c.txt"]),
        ("src/deep/*", "src", ["src/deep/b.py", "src/deep/c.txt"]),
        ("/*.md", ".", ["README.md"]),
        ("src", ".", ["src/a.py", "src/deep/b.py", "src/deep/c.txt"]),
        ("!*.py", "src", ["src/deep/c.txt"]),
        ("*.{md,txt}", ".", ["README.md", "src/deep/c.txt"]),
        ("*.py", "src/a.py", ["src/a.py"]),
        ("*.rs", ".", []),
    ],
)
async def test_glob(search: Ripgrep, pattern: str, path: str, expected: list[str]) -> None:
    assert await search.glob(pattern, path=path) == Found(paths=tuple(expected))


async def test_everything_but_ignored_files_git_and_secrets(search: Ripgrep) -> None:
    found = await search.glob("*")
    assert found.paths == (
        ".gitignore",
        ".hidden/d.py",
        "README.md",
        "src/a.py",
        "src/deep/b.py",
        "src/deep/c.txt",
        "sub/.gitignore",
    )
    assert found.skipped_secrets == 3


async def test_the_first_files_by_name_are_kept(root: Path, search: Ripgrep) -> None:
    assert await search.glob("*.py", limit=2) == Found(
        paths=(".hidden/d.py", "src/a.py"), truncated=True
    )
    many = root / "many"
    many.mkdir()
    for number in range(300):
        (many / f"{number:03}").write_text("")
    found = await search.glob("many/*", limit=5)
    assert found == Found(paths=tuple(f"many/{n:03}" for n in range(5)), truncated=True)


async def test_a_million_names_are_not_held(
    root: Path, search: Ripgrep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentls.workspace.rg_search._MAX_KEPT", 10)
    for number in range(200):
        (root / f"n{number:03}").write_text("")
    found = await search.glob("n*", limit=3)
    assert found == Found(paths=("n000", "n001", "n002"), truncated=True)


def listed(root: Path, *arguments: str) -> list[str]:
    command = [str(find_ripgrep()), "--no-config", "--files", "--hidden", "--no-ignore", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return sorted(done.stdout.split("\n")[:-1])


def test_globs_agree_with_ripgreps_own(root: Path) -> None:
    """Where a glob is matched by ripgrep itself, it picks the same files."""
    names = listed(root)
    assert len(names) == len(TREE)
    patterns = ["*.py", "src/**/*.py", "**/deep/*", "/src/*", "src/deep/?.py", "*.{py,md}"]
    patterns += ["[a-c].*", "[!a].py", "**/*d*/**", "{src,keys}/**", "*_*", "s*/**/*"]
    for pattern in patterns:
        assert list(filter(compile_glob(pattern), names)) == listed(root, "-g", pattern), pattern


# --- grep ------------------------------------------------------------------------------------


async def test_grep_gives_lines_by_path_and_line(search: Ripgrep) -> None:
    found = await search.grep("needle")
    assert lines(found) == [
        ".hidden/d.py:1:needle",
        "README.md:1:# needle in the readme",
        "src/a.py:1:def needle():",
        "src/deep/b.py:2:needle()",
    ]
    assert (found.truncated, found.skipped_secrets) == (False, 3)


async def test_options(search: Ripgrep) -> None:
    assert lines(await search.grep("needle", path="src", ignore_case=True)) == [
        "src/a.py:1:def needle():",
        "src/deep/b.py:2:needle()",
        "src/deep/c.txt:1:NEEDLE",
    ]
    assert lines(await search.grep("needle()", literal=True, glob="*.py")) == [
        "src/a.py:1:def needle():",
        "src/deep/b.py:2:needle()",
    ]
    assert lines(await search.grep(r"^needle\(\)$", context_lines=1)) == [
        "src/deep/b.py:1-x = 1",
        "src/deep/b.py:2:needle()",
        "src/deep/b.py:3-y = 2",
    ]
    assert lines(await search.grep("needle", path="src/a.py")) == ["src/a.py:1:def needle():"]
    assert (await search.grep("no such text")).matches == ()


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("*.md", ["README.md"]),
        ("src/**", ["src/a.py", "src/deep/b.py"]),
        ("deep/*", ["src/deep/b.py"]),
        ("!src/**", [".hidden/d.py", "README.md"]),
        ("*", [".hidden/d.py", "README.md", "src/a.py", "src/deep/b.py"]),
        ("*.log", []),
        ("out.py", []),
    ],
)
async def test_a_glob_narrows_and_never_brings_ignored_files_back(
    search: Ripgrep, glob: str, paths: list[str]
) -> None:
    path = "src" if glob == "deep/*" else "."
    found = await search.grep("needle", glob=glob, path=path)
    assert [match.path for match in found.matches] == paths


async def test_the_limit_stops_the_search(root: Path, search: Ripgrep) -> None:
    (root / "zzz.txt").write_text("many\n" * 100_000)
    found = await search.grep("many", limit=3)
    assert found.matches == tuple(GrepMatch("zzz.txt", number, "many") for number in (1, 2, 3))
    assert found.truncated
    assert not (await search.grep("needle", limit=4)).truncated


async def test_of_too_many_the_first_by_path_are_given(root: Path, search: Ripgrep) -> None:
    (root / "many").mkdir()
    for number in range(400):
        (root / "many" / f"{number:03}").write_text("many\nmany\n")
    for _ in range(3):
        assert lines(await search.grep("many", limit=3)) == [
            "many/000:1:many",
            "many/000:2:many",
            "many/001:1:many",
        ]
    assert len((await search.grep("many", limit=800)).matches) == 800


async def test_ignore_files_above_the_workspace_do_not_count(root: Path, search: Ripgrep) -> None:
    (root.parent / ".gitignore").write_text("*\n")
    shutil.rmtree(root / ".git")
    assert len((await search.grep("needle")).matches) == 4
    assert len((await search.grep("needle", path="src")).matches) == 2
    (root / ".gitignore").write_text("build/\n*.txt\n")
    assert (await search.glob("*", path="src/deep")).paths == ("src/deep/b.py",)


async def test_ignore_files_of_the_repository_around_the_workspace_count(root: Path) -> None:
    (root / ".gitignore").write_text("b.py\n")
    search = Ripgrep(Roots(root / "src"))
    assert (await search.glob("*")).paths == ("a.py", "deep/c.txt")


# --- secrets and links -----------------------------------------------------------------------


async def test_secrets_are_counted_and_never_searched(root: Path, search: Ripgrep) -> None:
    for path in (".", "keys", "keys/id_custom", ".env"):
        found = await search.grep("needle", path=path, glob="*")
        assert not any("id_custom" in line or ".env" in line for line in lines(found))
    assert await search.grep("needle", path=".env") == Found(skipped_secrets=1)
    assert await search.grep("needle", path="keys") == Found(skipped_secrets=2)
    assert await search.grep("needle", path=".git") == Found(skipped_secrets=1)


async def test_the_count_of_secrets_tells_nothing_of_what_they_hold(search: Ripgrep) -> None:
    hit = await search.grep("KEY=needle")
    miss = await search.grep("KEY=other")
    assert hit == miss == Found(skipped_secrets=3)


async def test_links_are_not_followed(root: Path, search: Ripgrep) -> None:
    (root / "out.py").symlink_to("../outside.py")
    (root / "out").symlink_to("..")
    (root / "loop").symlink_to(".")
    (root / "inside.py").symlink_to("src/a.py")
    (root / "zero").symlink_to("/dev/zero")
    os.mkfifo(root / "pipe")
    found = await asyncio.wait_for(search.grep("needle"), 10)
    assert len(found.matches) == 4
    assert (await search.glob("*.py")).paths == (".hidden/d.py", "src/a.py", "src/deep/b.py")
    for path in ("out.py", "out", "../outside.py", "zero", "/etc"):
        with pytest.raises(PathRefused):
            await search.grep("needle", path=path)
        with pytest.raises(PathRefused):
            await search.glob("*", path=path)
    assert lines(await search.grep("needle", path="inside.py")) == ["src/a.py:1:def needle():"]
    assert lines(await search.grep("needle", path="loop/src/a.py")) == ["src/a.py:1:def needle():"]
    with pytest.raises(PathRefused, match="device, pipe or socket"):
        await asyncio.wait_for(search.grep("needle", path="pipe"), 5)


@pytest.mark.parametrize("folder", [True, False])
async def test_a_swap_after_the_check_is_not_searched(
    root: Path, search: Ripgrep, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    other = root.parent / "other"
    other.mkdir()
    (other / "a.py").write_text("needle outside\n")
    resolve = Roots.resolve

    def swap_after(roots: Roots, path: str) -> object:
        place = resolve(roots, path)
        if folder:
            (root / "src").rename(root / "moved")
            (root / "src").symlink_to(other)
        else:
            (root / "src" / "a.py").unlink()
            (root / "src" / "a.py").symlink_to(other / "a.py")
        return place

    monkeypatch.setattr(Roots, "resolve", swap_after)
    with pytest.raises(ToolError):
        await search.grep("needle", path="src" if folder else "src/a.py")


# --- several roots ---------------------------------------------------------------------------


async def test_several_roots(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.py").write_text("needle\n")
    roots = Roots(root, other)
    search = Ripgrep(roots)
    found = await search.grep("needle", glob="*.py")
    assert sorted(match.path for match in found.matches) == sorted(
        [".hidden/d.py", "src/a.py", "src/deep/b.py", f"{other}/o.py"]
    )
    assert (await search.glob("*.py", path=str(other))).paths == (f"{other}/o.py",)
    limited = await search.grep("needle", limit=4)
    assert (len(limited.matches), limited.truncated) == (4, True)
    read = await Documents(roots).read(f"{other}/o.py")
    assert read.path == f"{other}/o.py"


async def test_roots_within_roots_are_searched_once(root: Path) -> None:
    for folders in ((root, root / "src"), (root / "src", root)):
        search = Ripgrep(Roots(*folders))
        assert len((await search.glob("*.py")).paths) == 3
        assert len((await search.grep("needle")).matches) == 4
