"""Processes of a user who is not root, for what root may do anyway: root runs them as `nobody`."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

USER = "nobody"


@dataclass(frozen=True)
class OrdinaryUser:
    """A user with a home and an interpreter that this user can run."""

    home: Path
    python: str
    environment: dict[str, str]
    identity: dict[str, Any]

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start Python with pipes."""
        options: dict[str, Any] = {
            **self.identity,
            **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE),
        }
        return subprocess.Popen(
            [self.python, *arguments],
            cwd=self.home,
            env=self.environment | environment,
            bufsize=0,
            **options,
        )

    def run(self, *arguments: str, stdin: bytes = b"", **environment: str) -> str:
        """Run Python to its good end; gives what it printed."""
        with self.start(*arguments, **environment) as process:
            out, err = process.communicate(stdin, 30)
        assert process.returncode == 0, (out + err).decode()
        return out.decode()

    def write(self, name: str, text: str) -> Path:
        """Put a file into the home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        for each in (path, *path.parents[: len(path.relative_to(self.home).parts) - 1]):
            self._own(each)
        return path

    def _own(self, path: Path) -> None:
        if self.identity:
            os.chown(path, self.identity["user"], self.identity["group"])


@contextmanager
def ordinary_user() -> Iterator[OrdinaryUser]:
    """This user, or `nobody` when this is root; skips where nobody can run no Python."""
    identity: dict[str, Any] = {}
    if os.geteuid() == 0:
        account = pwd.getpwnam(USER)
        identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    home = Path(tempfile.mkdtemp(prefix="agentls-user-"))
    try:
        # What is installed, and the checkout; the interpreter knows its own library.
        packages = [path for path in sys.path if path and not path.startswith(sys.base_prefix)]
        user = OrdinaryUser(
            home,
            _python(home, identity),
            {
                "HOME": str(home),
                "PATH": os.defpath,
                "LANG": "C.UTF-8",
                "PYTHONPATH": os.pathsep.join(packages),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            identity,
        )
        user._own(home)
        yield user
    finally:
        shutil.rmtree(home)


def _python(home: Path, identity: dict[str, Any]) -> str:
    """An environment in the home like the one that runs the tests, which may be root's alone."""
    base = _base(identity)
    programs = home / "env" / "bin"
    programs.mkdir(parents=True)
    (home / "env" / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    python = programs / "python"
    python.symlink_to(base)
    shutil.copy(Path(sysconfig.get_path("scripts"), "rg"), programs)
    return str(python)


def _base(identity: dict[str, Any]) -> Path:
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    places = (Path(sys.base_prefix, "bin"), Path("/usr/local/bin"), Path("/usr/bin"))
    for python in (place / name for place in places):
        try:
            subprocess.run([python, "-c", ""], check=True, cwd="/", env={}, **identity)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python
    pytest.skip(f"NOT TESTED: {USER} cannot run any {name} of this machine")
