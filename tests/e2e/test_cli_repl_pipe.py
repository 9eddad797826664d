"""The conversation over the lines of a pipe."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support.cli_process import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli.below(tmp_path)


def test_each_line_of_a_pipe_is_answered(cli: Cli) -> None:
    cli.script({"text": "One.", "expect": "^first$"}, {"text": "Two.", "expect": "^zweite é$"})
    done = cli.run(stdin="first\n\n/mode plan\nzweite é".encode())
    assert (done.code, done.out, done.err) == (0, "One.\nmode plan\nTwo.\n", "")


def test_a_failed_line_of_a_pipe_is_exit_1_and_the_rest_is_answered(cli: Cli) -> None:
    cli.script({"error": "No.", "status": 400}, {"text": "Two."})
    done = cli.run(stdin=b"first\nsecond\nexit\nnever\n")
    assert (done.code, done.out, done.err) == (1, "Two.\n", "agentls: error: No.\n")


def test_an_empty_pipe_is_done(cli: Cli) -> None:
    done = cli.run(stdin=b"")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_a_pipe_gets_one_result_a_line(cli: Cli) -> None:
    cli.script({"text": "One."}, {"text": "Two."})
    done = cli.run("--json", stdin=b"first\nsecond\n")
    results = [line for line in done.lines if line["type"] == "result"]
    assert [line["text"] for line in results] == ["One.", "Two."]
    assert results[0]["sessionId"] == results[1]["sessionId"]


def test_ctrl_c_ends_a_pipe_that_says_nothing(cli: Cli) -> None:
    cli.script({"text": "One."})
    with cli.start() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"first\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"One.\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130
        assert process.stderr.read() == b""
