"""Missing weights are never missed in silence: skipped with the reason, or failed in CI."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentls.core.errors import Unreachable
from support import models


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    def pull(name: str, folder: Path) -> Path:
        raise Unreachable(f"No way to {name}.")

    monkeypatch.setattr(models, "pull", pull)


@pytest.mark.usefixtures("unreachable")
def test_without_weights_tests_are_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"SmolLM2 135M.*No way to smollm2"):
        models.weights_of("smollm2")


@pytest.mark.usefixtures("unreachable")
def test_in_ci_the_smallest_are_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="No way to smollm2"):
        models.weights_of("smollm2")
    with pytest.raises(pytest.skip.Exception, match=r"No way to qwen1\.5b"):
        models.weights_of("qwen1.5b")


def test_weights_are_kept_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert models.models_folder() == Path("/somewhere/agentls/models")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert models.models_folder() == Path.home() / ".cache" / "agentls" / "models"
