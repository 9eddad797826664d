"""Real folders to work in, an editor that holds buffers, and a way to be an ordinary user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import agentls
from agentls.core.errors import StaleFile
from agentls.core.ports import Found

NOBODY = 65534


@dataclass
class EditorBuffers:
    """`core.ports.Buffers` in memory; `texts` maps an absolute path to text and version."""

    texts: dict[Path, tuple[str, int]] = field(default_factory=dict)
    edits: list[tuple[Path, str, int]] = field(default_factory=list)

    def open_text(self, path: Path) -> tuple[str, int] | None:
        return self.texts.get(path)

    async def replace(self, path: Path, new_text: str, *, base: int) -> int:
        if self.texts[path][1] != base:
            raise StaleFile("The buffer has moved.")
        self.edits.append((path, new_text, base))
        self.texts[path] = (new_text, base + 1)
        return base + 1


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A temporary folder that every user may enter and change, unlike pytest's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(os.path.realpath(name))
        folder.chmod(0o777)
        yield folder


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content (or the target of a link) of everything below a folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = b""
        if path.is_symlink():
            content = os.fsencode(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        found[path.relative_to(folder).as_posix()] = (mode, content)
    return found


def run_python(code: str, *arguments: str, as_nobody: bool = False) -> str:
    """What a program prints; `as_nobody` takes root's rights away from it first.

    Errors of the program are errors here.
    """
    setup = f"import os, sys; sys.path.insert(0, {str(Path(agentls.__file__).parents[1])!r})\n"
    if as_nobody and os.geteuid() == 0:
        # Everything must be imported before: a home of root's may be closed to others.
        setup += "import asyncio, concurrent.futures.thread, pathlib\n"
        setup += "import agentls.workspace.documents\n"
        setup += f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
    done = subprocess.run(
        [sys.executable, "-c", setup + code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


TREE = {
    "README.md": "# needle in the readme\n",
    "src/a.py": "def needle():\n    return 1\n",
    "src/deep/b.py": "x = 1\nneedle()\ny = 2\n",
    "src/deep/c.txt": "NEEDLE\n",
    ".hidden/d.py": "needle\n",
    "build/out.py": "needle\n",
    "sub/ignored.log": "needle\n",
    ".gitignore": "build/\n",
    "sub/.gitignore": "*.log\n",
    ".git/config": "needle\n",
    ".env": "KEY=needle\n",
    "keys/id_custom": "needle\n",
    "keys/server.pem": "needle\n",
}
"""A workspace to search: `needle` is in every file, also where it must not be found."""


def plant(root: Path) -> None:
    """Make the files of `TREE`."""
    for name, text in TREE.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def lines(found: Found) -> list[str]:
    """Matches as grep would print them."""
    return [
        f"{match.path}:{match.line_no}{':' if match.is_match else '-'}{match.text}"
        for match in found.matches
    ]
