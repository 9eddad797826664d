from __future__ import annotations

import io
import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from agentls.cli.arguments import parse
from agentls.cli.interrupts import Interrupts
from agentls.cli.models import pull
from agentls.cli.start import Environment
from agentls.cli.streams import Output
from agentls.core.errors import Unreachable
from agentls.llm.embedded.download import Progress, Report


class Stream(io.StringIO):
    encoding = "utf-8"

    def __init__(self, terminal: bool = False) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


class Desk:
    """The command `agentls model pull big`, its streams, and a download of the test's own."""

    def __init__(self, *flags: str, terminal: bool = False) -> None:
        self.out, self.err = Stream(), Stream(terminal)
        self.environment = Environment(
            parse(["model", "pull", "big", *flags]),
            Output(self.out),
            Output(self.err),
            Interrupts(),
        )

    def pull(self, steps: Callable[[Report], None], path: Path) -> int:
        def fetch(name: str, folder: Path, report: Report) -> Path:
            assert name == "big"
            assert folder.name == "models"
            steps(report)
            return path

        return pull(self.environment, fetch)

    @property
    def lines(self) -> list[object]:
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


def in_steps(report: Report) -> None:
    for done in range(0, 1001, 50):
        report(Progress(done * 1_000_000, 1_000_000_000, "downloading"))
    report(Progress(1_000_000_000, 1_000_000_000, "checking"))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "big.gguf"
    path.write_bytes(b"12345")
    return path


def test_without_a_terminal_progress_is_a_line_now_and_then(weights: Path) -> None:
    desk = Desk()
    assert desk.pull(in_steps, weights) == 0
    assert desk.err.getvalue().splitlines() == [
        *(f"big: downloading, {percent} % of 1,000 MB" for percent in range(0, 101, 10)),
        "big: checking, 100 % of 1,000 MB",
    ]
    assert desk.out.getvalue() == f"big is ready: {weights}\n"


def test_on_a_terminal_progress_is_a_bar_that_goes_away(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    desk = Desk(terminal=True)
    assert desk.pull(in_steps, weights) == 0
    assert "big checking" in desk.err.getvalue()
    assert desk.err.getvalue().endswith("\x1b[2K")
    assert desk.out.getvalue() == f"big is ready: {weights}\n"


def test_json_is_progress_and_a_result(weights: Path) -> None:
    desk = Desk("--json")
    assert desk.pull(in_steps, weights) == 0
    *progress, result = desk.lines
    assert progress == [
        {"type": "progress", "what": what, "doneBytes": done, "totalBytes": 1_000_000_000}
        for what, done in (("downloading", 0), ("checking", 1_000_000_000))
    ]
    assert result == {"type": "result", "name": "big", "path": str(weights), "sizeBytes": 5}
    assert desk.err.getvalue() == ""


def test_a_failure_reaches_the_caller_or_json(weights: Path) -> None:
    def fail(report: Report) -> None:
        raise Unreachable("No source.", hint="Later.", provider="local")

    with pytest.raises(Unreachable):
        Desk().pull(fail, weights)
    desk = Desk("--json")
    assert desk.pull(fail, weights) == 1
    assert desk.lines == [
        {
            "type": "result",
            "name": "big",
            "error": {
                "code": "unreachable",
                "message": "No source.",
                "hint": "Later.",
                "provider": "local",
                "status": None,
                "retryable": True,
            },
        }
    ]


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_download_at_its_next_report(
    weights: Path, signum: int, code: int
) -> None:
    stopped = threading.Event()

    def endless(report: Report) -> None:
        try:
            report(Progress(1, 1000, "downloading"))
            os.kill(os.getpid(), signum)
            while True:
                report(Progress(2, 1000, "downloading"))
        finally:
            stopped.set()

    desk = Desk()
    assert desk.pull(endless, weights) == code
    assert stopped.is_set()
    assert desk.out.getvalue() == ""
