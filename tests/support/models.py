"""Session fixtures with real weights, kept outside the checkout.

Where they cannot be had, tests that need them are skipped with the reason. In CI those of the
smallest model fail instead; the large one's come from packages of unknown uploaders, which may go
away, and a run must not hang on them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentls.core.errors import AgentlsError
from agentls.llm.embedded.catalogue import CATALOGUE
from agentls.llm.embedded.weights import pull


def models_folder() -> Path:
    """The user's own folder of weights, so that nothing is downloaded twice."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "agentls" / "models"


def weights_of(name: str) -> Path:
    """The weights of a catalogue model, downloaded if need be.

    Calls `pytest.skip`, or `pytest.fail` where CI requires them, with the reason when they cannot
    be had.
    """
    folder = _FOLDER
    try:
        return pull(name, folder)
    except AgentlsError as error:
        reason = f"no weights of {name} ({CATALOGUE[name].title}) in {folder}: {error}"
    if os.environ.get("CI") and name in _REQUIRED_IN_CI:
        pytest.fail(reason)
    pytest.skip(reason)


_REQUIRED_IN_CI = frozenset({"smollm2"})
_FOLDER = models_folder()
"""Looked up now: tests that give themselves another cache folder still share the weights."""


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """98 MB, quick, answers in text and never calls tools."""
    return weights_of("smollm2")


@pytest.fixture(scope="session")
def qwen_path() -> Path:
    """1.1 GB, calls tools when held to a schema."""
    return weights_of("qwen1.5b")
