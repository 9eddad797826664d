"""Writing files on a real disk, byte for byte, in the right place."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentls.core.errors import EditRefused, PathRefused, StaleFile, ToolError
from agentls.core.text import split_lines
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


def lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


async def edit(files: Documents, path: str, old: str, new: str) -> None:
    """What a tool does: it sees LF line ends, and hands them back."""
    read = await files.read(path)
    text = lf(read.text)
    assert text.count(old) == 1
    written = await files.write(path, text.replace(old, new), base=read.version)
    assert await files.read(path) == written


# --- bytes -----------------------------------------------------------------------------------

CASES = {
    "crlf, mark, accents, no final newline": (
        b"\xef\xbb\xbfcaf\xc3\xa9\r\nword\r\n\r\nend",
        b"\xef\xbb\xbfcaf\xc3\xa9\r\nchanged\r\n\r\nend",
    ),
    "windows-1252": (b"caf\xe9 \x80\r\nword\r\n", b"caf\xe9 \x80\r\nchanged\r\n"),
    "utf-16": (
        b"\xff\xfe" + "é\r\nword\n".encode("utf-16-le"),
        b"\xff\xfe" + "é\r\nchanged\n".encode("utf-16-le"),
    ),
    "mixed line ends": (b"a\nb\r\nword\rc\r\n\nd", b"a\nb\r\nchanged\rc\r\n\nd"),
    "odd separators": (
        b"a\x0cb\x0bc\xc2\x85d\xe2\x80\xa8e\nword\r\nf\x1c",
        b"a\x0cb\x0bc\xc2\x85d\xe2\x80\xa8e\nchanged\r\nf\x1c",
    ),
    "no line end at all": (b"one word", b"one changed"),
    "blank lines at the end": (b"word\n\n\n\n", b"changed\n\n\n\n"),
}


@pytest.mark.parametrize("case", CASES)
async def test_one_word_changes_only_its_bytes(files: Documents, root: Path, case: str) -> None:
    old, new = CASES[case]
    (root / "f").write_bytes(old)
    await edit(files, "f", "word", "changed")
    assert (root / "f").read_bytes() == new


async def test_the_final_newline_is_the_edits_affair(files: Documents, root: Path) -> None:
    (root / "f").write_bytes(b"a\r\nlast")
    await edit(files, "f", "last", "last\n")
    assert (root / "f").read_bytes() == b"a\r\nlast\r\n"
    read = await files.read("f")
    await files.write("f", "a\nlast", base=read.version)
    assert (root / "f").read_bytes() == b"a\r\nlast"


LINES = [b"caf\xe9", b"gr\xc3\xbcn", b"", b"a"]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.binary(max_size=6), st.sampled_from(LINES)),
            st.sampled_from([b"\n", b"\r\n", b"\r"]),
        ),
        min_size=1,
        max_size=8,
    ),
    st.booleans(),
    st.integers(0, 7),
)
def test_any_bytes_any_line(
    tmp_path: Path, parts: list[tuple[bytes, bytes]], final: bool, index: int
) -> None:
    """Replace any line of any file: every other byte stays, or all do."""
    data = b"".join(body + end for body, end in parts)
    if not final:
        data = data[: len(data) - len(parts[-1][1])]
    path = tmp_path / "any"
    path.write_bytes(data)
    files = Documents(Roots(tmp_path))

    async def replace_line() -> None:
        read = await files.read("any")
        lines = split_lines(read.text)
        if not lines:
            return
        at = index % len(lines)
        seen = lf(read.text).split("\n")
        seen[at] = "NEW"
        await files.write("any", "\n".join(seen), base=read.version)

    try:
        asyncio.run(replace_line())
    except ToolError:
        assert path.read_bytes() == data
        return
    assert path.read_bytes() == with_line_replaced(data, index)


def with_line_replaced(data: bytes, index: int) -> bytes:
    """Works on bytes (or two-byte units), knowing nothing of encodings but their marks."""
    marks = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\xef\xbb\xbf": "latin-1"}
    mark = next((mark for mark in marks if data.startswith(mark)), b"")
    units = marks.get(mark, "latin-1")
    lines = split_lines(data[len(mark) :].decode(units))
    if lines:
        at = index % len(lines)
        lines[at] = "NEW" + lines[at][len(lines[at].rstrip("\r\n")) :]
    return mark + "".join(lines).encode(units)


async def test_text_the_encoding_lacks_is_refused(files: Documents, root: Path) -> None:
    (root / "f").write_bytes(b"caf\xe9 word\r\n")
    before = snapshot(root)
    with pytest.raises(EditRefused, match=r"Windows-1252, which cannot hold U\+1F642 \(line 1"):
        await edit(files, "f", "word", "🙂")
    assert snapshot(root) == before


async def test_a_file_that_cannot_be_decoded_is_refused_untouched(
    files: Documents, root: Path
) -> None:
    for number, data in enumerate([b"a\0b", b"gr\xc3\xbcn\xe9", b"\x81\x8d\xff"]):
        (root / f"{number}").write_bytes(data)
    before = snapshot(root)
    for name in ("0", "1", "2"):
        with pytest.raises(ToolError, match="cannot be read as text"):
            await files.write(name, "x", base="whatever")
        with pytest.raises(StaleFile, match="exists already"):
            await files.write(name, "x", base=None)
    assert snapshot(root) == before


# --- places ----------------------------------------------------------------------------------


async def test_new_files_and_their_folders(files: Documents, root: Path) -> None:
    written = await files.write("a/b/new.py", "x = 'ü'\r\n", base=None)
    assert (root / "a" / "b" / "new.py").read_bytes() == "x = 'ü'\r\n".encode()
    assert await files.read("a/b/new.py") == written
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((root / "a/b/new.py").stat().st_mode) == 0o666 & ~umask
    assert list(snapshot(root / "a/b")) == ["new.py"]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".git/config", "belongs to git"),
        (".git/hooks/pre-commit", "belongs to git"),
        (".GIT/config", "belongs to git"),
        ("sub/.git", "belongs to git"),
        (".git", "belongs to git"),
        ("to-git/pre-commit", "belongs to git"),
        ("../outside", "outside the workspace"),
        ("out", "outside the workspace"),
        ("out-folder/x", "outside the workspace"),
        ("dangling", "a link to something that does not exist"),
        ("dangling-folder/x", "a link to something that does not exist"),
        (".", "is a folder"),
        ("folder", "is a folder"),
        ("new/", "is a folder"),
        ("file/x", "is not a folder"),
    ],
)
async def test_refused_places_stay_as_they_are(
    files: Documents, root: Path, path: str, reason: str
) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("old")
    (root / "sub").mkdir()
    (root / "folder").mkdir()
    (root / "file").write_text("x")
    (root.parent / "outside").write_text("x")
    (root / "to-git").symlink_to(".git/hooks")
    (root / "out").symlink_to("../outside")
    (root / "out-folder").symlink_to("..")
    (root / "dangling").symlink_to("missing")
    (root / "dangling-folder").symlink_to("missing-folder")
    before = snapshot(root.parent)
    for base in (None, "0123"):
        with pytest.raises(ToolError) as error:
            await files.write(path, "new", base=base)
        if not (path == "folder" and base is None):
            assert isinstance(error.value, PathRefused)
            assert reason in str(error.value)
    assert snapshot(root.parent) == before


async def test_through_a_link_the_target_is_written_and_the_link_stays(
    files: Documents, root: Path
) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "real").write_text("old\n")
    (root / "link").symlink_to("sub/real")
    (root / "folder").symlink_to("sub")
    await edit(files, "link", "old", "new")
    assert (root / "link").readlink() == Path("sub/real")
    assert (root / "sub" / "real").read_text() == "new\n"
    await files.write("folder/added", "x", base=None)
    assert (root / "sub" / "added").read_text() == "x"
    assert (root / "folder").is_symlink()


async def test_a_second_hard_link_is_not_written_through(files: Documents, root: Path) -> None:
    (root.parent / "outside").write_text("old\n")
    os.link(root.parent / "outside", root / "inside")
    await edit(files, "inside", "old", "new")
    assert (root.parent / "outside").read_text() == "old\n"


@pytest.mark.parametrize("mode", [0o755, 0o640, 0o600, 0o4755])
async def test_the_mode_is_kept(files: Documents, root: Path, mode: int) -> None:
    (root / "f").write_text("old\n")
    (root / "f").chmod(mode)
    await edit(files, "f", "old", "new")
    assert stat.S_IMODE((root / "f").stat().st_mode) == mode


async def test_owner_and_attributes_are_kept(files: Documents, root: Path) -> None:
    (root / "f").write_text("old\n")
    try:
        os.setxattr(root / "f", "user.note", b"kept")
        kept = True
    except OSError:
        kept = False  # this file system has no extended attributes
    if os.geteuid() == 0:
        os.chown(root / "f", 1234, 4321)
        (root / "f").chmod(0o6755)
    before = (root / "f").stat()
    await edit(files, "f", "old", "new")
    after = (root / "f").stat()
    assert (after.st_uid, after.st_gid, after.st_mode) == (
        before.st_uid,
        before.st_gid,
        before.st_mode,
    )
    assert after.st_ino != before.st_ino
    assert not kept or os.getxattr(root / "f", "user.note") == b"kept"


async def test_a_write_that_changes_nothing_does_not_touch_the_file(
    files: Documents, root: Path
) -> None:
    (root / "f").write_bytes(b"a\r\nb")
    before = (root / "f").stat()
    read = await files.read("f")
    assert await files.write("f", "a\nb", base=read.version) == read
    assert (root / "f").stat() == before
