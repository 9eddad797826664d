"""Which paths lead into the workspace, and to what, on a real disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentls.core.errors import PathRefused, UsageError
from agentls.workspace import links
from agentls.workspace.roots import Resolved, Roots
from support.workspaces import run_python, shared_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a\n")
    (root / "src" / "deep" / "b.py").write_text("b\n")
    evil = tmp_path / "p-evil"
    evil.mkdir()
    (evil / "x").write_text("secret\n")
    return root


def names(roots: Roots, *paths: str) -> list[str]:
    return [roots.resolve(path).name for path in paths]


def refusal(roots: Roots, path: str) -> str:
    with pytest.raises(PathRefused) as error:
        roots.resolve(path)
    return str(error.value)


def test_one_place_has_one_name(root: Path) -> None:
    roots = Roots(root)
    assert roots.resolve("src/a.py") == Resolved(
        root=root,
        parts=("src", "a.py"),
        name="src/a.py",
        asked="src/a.py",
        exists=True,
        linked=False,
        dangling=False,
    )
    spellings = [
        "src/a.py",
        "./src//a.py",
        "src/./a.py",
        "src/deep/../a.py",
        f"{root}/src/a.py",
        f"{root}/src/deep/../../src/a.py",
        f"../{root.name}/src/a.py",
    ]
    assert names(roots, *spellings) == ["src/a.py"] * len(spellings)
    assert names(roots, ".", "./", str(root), "src/..") == ["."] * 4
    assert roots.resolve("new/deep/file.py").exists is False


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../p-evil/x",
        "src/../../p-evil/x",
        "src/deep/../../../p-evil/x",
        "{tmp}/p-evil/x",
        "{tmp}/p-evil",
        "{tmp}/p/../p-evil/x",
        "{tmp}",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "/proc/1/environ",
        "/dev/zero",
    ],
)
def test_a_place_outside_is_refused(root: Path, path: str) -> None:
    asked = path.replace("{tmp}", str(root.parent))
    message = refusal(Roots(root), asked)
    assert message == (
        f"'{asked}' is outside the workspace. Give a path relative to the workspace folder."
    )


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "The path is empty."),
        ("  \n", "The path is empty."),
        ("a\0b", r"'a\u{0}b' contains a NUL character."),
        ("~", "'~': '~' is not expanded."),
        ("~/x", "'~/x': '~' is not expanded."),
        ("~root/x", "'~root/x': '~' is not expanded."),
        ("\ud800", r"'\u{d800}' is not valid Unicode."),
        ("x" * 5000, "The path is longer than 4096 characters."),
        ("y" * 300, "is not a usable path: File name too long."),
        ("src/a.py/x", "is not a folder."),
        ("nothing/../src/a.py", "has '..' behind a folder that does not exist."),
    ],
)
def test_a_malformed_path_is_refused(root: Path, path: str, message: str) -> None:
    assert message in refusal(Roots(root), path)


def test_messages_hide_nothing(root: Path) -> None:
    assert refusal(Roots(root), "../a\x1b[2J\nb").startswith(r"'../a\u{1b}[2J\nb' is outside")


def test_odd_names_are_names(root: Path) -> None:
    odd = ["-rf", "~notes", "a b", "new\nline", "quo'te", "ünï", "back\\slash", "...", "a:b"]
    for name in odd:
        (root / name).write_text("x")
    assert names(Roots(root), *odd) == odd


def test_links_that_stay_inside_work(root: Path) -> None:
    (root / "link.py").symlink_to("src/a.py")
    (root / "src" / "up").symlink_to("..")
    (root / "absolute").symlink_to(root / "src")
    (root / "chain").symlink_to("absolute")
    roots = Roots(root)
    assert names(roots, "link.py", "src/up/src/a.py", "absolute/a.py", "chain/deep/b.py") == [
        "src/a.py",
        "src/a.py",
        "src/a.py",
        "src/deep/b.py",
    ]
    place = roots.resolve("chain/new/file.py")
    assert (place.name, place.asked, place.exists, place.linked, place.dangling) == (
        "src/new/file.py",
        "chain/new/file.py",
        False,
        True,
        False,
    )


def test_links_that_lead_outside_are_refused(root: Path) -> None:
    evil = root.parent / "p-evil"
    (root / "file").symlink_to(evil / "x")
    (root / "folder").symlink_to(evil)
    (root / "relative").symlink_to("../p-evil")
    (root / "first").symlink_to("folder")
    (root / "gone").symlink_to(evil / "missing")
    (root / "zero").symlink_to("/dev/zero")
    (root / "proc").symlink_to("/proc/self")
    roots = Roots(root)
    for path in ("file", "folder/x", "relative/x", "first/x", "gone", "zero", "proc/environ"):
        assert "outside the workspace" in refusal(roots, path)
    assert refusal(roots, "folder/../x").startswith("'folder/../x' leads to ")


def test_dangling_links_and_loops(root: Path) -> None:
    (root / "dangling").symlink_to("src/missing.py")
    (root / "dangling-folder").symlink_to("missing")
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    roots = Roots(root)
    assert roots.resolve("dangling").dangling
    assert roots.resolve("dangling-folder/x").dangling
    assert refusal(roots, "one") == "'one' leads through links in a loop."


def test_a_workspace_opened_through_a_link_works(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    roots = Roots(link)
    assert roots.folders == (root,)
    place = roots.resolve(f"{link}/src/a.py")
    assert (place.name, place.asked) == ("src/a.py", "src/a.py")
    assert names(roots, "src/a.py", f"{root}/src/a.py") == ["src/a.py"] * 2
    assert "outside" in refusal(roots, f"{link}-evil/x")


def test_several_roots(root: Path) -> None:
    other = root.parent / "other"
    (other / "src").mkdir(parents=True)
    (other / "src" / "a.py").write_text("other\n")
    (other / "only.py").write_text("other\n")
    (root / "to-other").symlink_to(other)
    roots = Roots(root, other)
    asked = ["src/a.py", "only.py", "new.py", f"{other}/src/a.py", "to-other/only.py"]
    assert names(roots, *asked) == [
        "src/a.py",
        f"{other}/only.py",
        "new.py",
        f"{other}/src/a.py",
        f"{other}/only.py",
    ]
    assert names(roots, f"{other}/only.py") == [f"{other}/only.py"]
    assert "outside" in refusal(roots, f"{root.parent}/p-evil/x")


def test_a_root_inside_the_first_is_named_from_the_first(root: Path) -> None:
    assert names(Roots(root, root / "src"), f"{root}/src/a.py", "deep/b.py") == [
        "src/a.py",
        "src/deep/b.py",
    ]


def test_the_whole_disk_as_workspace_has_no_system_files() -> None:
    roots = Roots(Path("/"))
    for path in ("proc/self/environ", "/sys/kernel", "/dev/zero"):
        assert "part of the system" in refusal(roots, path)


def test_the_librarys_way_agrees(root: Path) -> None:
    """The way for systems without POSIX paths, as far as it can be tried here."""
    (root / "link").symlink_to("src")
    (root / "out").symlink_to("..")
    (root / "dangling").symlink_to("missing")
    paths = ["src/a.py", "link/a.py", "out/p-evil/x", "dangling", "new/x", f"{root}/link", "src/.."]
    for path in paths:
        assert links._by_library(root, path) == links.follow(root, path)


def test_roots_must_be_folders(root: Path) -> None:
    for folders in ((), (root / "src" / "a.py",), (root / "missing",)):
        with pytest.raises(UsageError):
            Roots(*folders)


def test_permission_to_look_is_needed() -> None:
    with shared_folder() as folder:
        (folder / "closed").mkdir(mode=0o000)
        printed = run_python(
            """
import sys
from pathlib import Path
from agentls.core.errors import PathRefused
from agentls.workspace import links
from agentls.workspace.roots import Roots
try:
    Roots(Path(sys.argv[1])).resolve("closed/x")
except PathRefused as error:
    print(error)
""",
            str(folder),
            as_nobody=True,
        )
        assert printed == "'closed/x' cannot be looked at: permission denied.\n"
        (folder / "closed").chmod(0o700)
