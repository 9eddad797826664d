"""A pytest plugin: the table in `docs/providers.md` is made from the tests that passed.

A test marked `proves("anthropic", "tools", peer="llama.cpp")` fills one cell with its peer, once it
has passed. A cell nobody fills needs a reason here. A whole run compares the table with the file
and fails when they differ; `AGENTLS_WRITE_PROOFS=1` writes it instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

FILE = Path(__file__).resolve().parents[2] / "docs" / "providers.md"
BEGIN, END = "<!-- proofs: begin -->", "<!-- proofs: end -->"

PROVIDERS = (
    "openai",
    "openai-responses",
    "anthropic",
    "gemini",
    "ollama",
    "groq",
    "deepseek",
    "local",
    "custom",
)
FEATURES = (
    "text",
    "tools",
    "parallel tools",
    "thinking",
    "images",
    "usage",
    "cache",
    "cancel",
    "resume",
)
REASONS: dict[tuple[str, str], str] = {
    ("ollama", "cache"): "read from `prompt_eval_cached_count`, which no program here sends",
    ("local", "thinking"): "no model of the catalogue thinks",
    ("local", "images"): "no model of the catalogue sees",
    ("local", "parallel tools"): "a reply held to a schema is one call",
}
"""Why a cell is empty."""

Cell = tuple[str, str]
T = TypeVar("T")


class Proofs:
    """Collects what passed."""

    def __init__(self) -> None:
        """Nothing has run."""
        self.found: dict[Cell, set[str]] = {}
        self.expected: set[Cell] = set()
        self.complete = True

    def pytest_configure(self, config: pytest.Config) -> None:
        """Declare the mark."""
        config.addinivalue_line("markers", "proves(provider, feature, peer): fills a table's cell")

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: Iterable[pytest.Item]
    ) -> None:
        """Note what this run would prove."""
        for item in items:
            self.expected |= {cell for cell, _ in _proofs_of(item)}

    def pytest_deselected(self, items: Iterable[pytest.Item]) -> None:
        """A part of the tests proves only a part of the table."""
        self.complete = self.complete and not any(_proofs_of(item) for item in items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Fill the cells of a test that passed."""
        report = yield
        if proofs := _proofs_of(item):
            if report.when == "call" and report.passed:
                for cell, peer in proofs:
                    self.found.setdefault(cell, set()).add(peer)
            elif not report.passed:
                self.complete = False
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Compare with the file, or write it."""
        whole = {(p, f) for p in PROVIDERS for f in FEATURES} <= self.expected | set(REASONS)
        if session.config.option.collectonly or not whole:
            return
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if not self.complete:
            # Failures speak for themselves; what was skipped has to be said.
            if reporter is not None:
                reporter.write_line(
                    f"{FILE.name} was NOT compared: not all proofs passed", red=True
                )
            return
        text = FILE.read_text("utf-8")
        head, _, rest = text.partition(BEGIN)
        _, _, tail = rest.partition(END)
        wanted = f"{head}{BEGIN}\n{table(self.found)}{END}{tail}"
        if text == wanted:
            return
        if os.environ.get("AGENTLS_WRITE_PROOFS"):
            FILE.write_text(wanted, "utf-8")
            return
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if reporter is not None:
            reporter.write_line(
                f"{FILE.name} does not show what these tests proved: run `make docs-providers`",
                red=True,
            )


def table(found: dict[Cell, set[str]]) -> str:
    """The table and the reasons below it, in Markdown."""
    notes: list[str] = []
    lines = [
        "| provider | " + " | ".join(FEATURES) + " |",
        "|---" * (len(FEATURES) + 1) + "|",
    ]
    for provider in PROVIDERS:
        cells = [_cell(found, (provider, feature), notes) for feature in FEATURES]
        lines.append(f"| `{provider}` | " + " | ".join(cells) + " |")
    numbered = [f"{number}. {note}" for number, note in enumerate(notes, start=1)]
    return "\n".join([*lines, "", *numbered, ""])


def _cell(found: dict[Cell, set[str]], cell: Cell, notes: list[str]) -> str:
    if cell in found:
        return "; ".join(sorted(found[cell]))
    reason = REASONS[cell]
    note = f"{reason[0].upper()}{reason[1:]}."
    if note not in notes:
        notes.append(note)
    return f"no ({notes.index(note) + 1})"


def _proofs_of(item: pytest.Item) -> list[tuple[Cell, str]]:
    return [
        ((str(mark.args[0]), str(mark.args[1])), str(mark.kwargs["peer"]))
        for mark in item.iter_markers("proves")
    ]


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin."""
    proofs = Proofs()
    proofs.pytest_configure(config)
    config.pluginmanager.register(proofs)


def proving(provider: str, *features: str, peer: str) -> Callable[[T], T]:
    """Marks a test as the proof of several features of a provider."""

    def mark(test: T) -> T:
        for feature in features:
            pytest.mark.proves(provider, feature, peer=peer)(test)
        return test

    return mark
