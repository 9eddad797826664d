"""Where the command line looks for a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentls.cli.start import find_workspace
from agentls.core.errors import UsageError


def test_a_folder_above_that_cannot_be_looked_into_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "repository" / "inner"
    (inner.parent / ".git").mkdir(parents=True)
    inner.mkdir()
    exists = Path.exists

    def refusing(path: Path) -> bool:
        if path == inner / ".git":
            raise PermissionError(13, "Permission denied", str(path))
        return exists(path)

    monkeypatch.setattr(Path, "exists", refusing)
    monkeypatch.chdir(inner)
    assert find_workspace(None) == inner.parent


def test_a_user_that_does_not_exist_is_said_in_one_sentence() -> None:
    with pytest.raises(UsageError, match=r"[^.]\.$"):
        find_workspace(Path("~nobody-of-this-name/x"))
