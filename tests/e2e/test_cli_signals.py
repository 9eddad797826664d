"""Ctrl-C and SIGTERM at every moment of `agentls ask`."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from support.cli_process import Cli, alive, asleep, until


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli.below(tmp_path)


def lines_of(stream: IO[bytes]) -> Iterator[Any]:
    for line in iter(stream.readline, b""):
        yield json.loads(line)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_the_model_thinks(cli: Cli, signum: int, code: int) -> None:
    cli.script(
        {"text": "Half", "tool_calls": [{"name": "glob", "arguments": {"pattern": "*"}}]},
        {"text": "never", "delay_s": 60},
    )
    with cli.start("ask", "--json", "x") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = lines_of(process.stdout)
        for line in lines:
            if line["type"] == "block_stop" and line["item"]["kind"] == "tool_result":
                break
        process.send_signal(signum)
        began = time.monotonic()
        result = list(lines)[-1]
        assert process.wait(5) == code
        assert time.monotonic() - began < 1.5
        assert (result["type"], result["stopReason"], result["files"]) == (
            "result",
            "cancelled",
            [],
        )
        assert process.stderr.read() == b""


def test_ctrl_c_for_people_says_so(cli: Cli) -> None:
    cli.script(
        {"text": "Half", "tool_calls": [{"name": "glob", "arguments": {"pattern": "*"}}]},
        {"text": "never", "delay_s": 60},
    )
    with cli.start("ask", "x") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"Half\n"
        assert process.stderr.readline().startswith("✓ glob *".encode())
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"agentls: cancelled\n")


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_a_command_runs_leaves_no_process(cli: Cli, signum: int, code: int) -> None:
    command = "sleep 300 & echo $! > child; echo $$ > parent; exec 1>&-; wait"
    cli.script({"tool_calls": [{"name": "bash", "arguments": {"command": command}}]})
    with cli.start("ask", "--yes", "--json", "x") as process:
        assert process.stdout is not None
        parent, child = cli.workspace / "parent", cli.workspace / "child"
        until(lambda: parent.exists() and parent.read_text().endswith("\n"))
        pids = [int(path.read_text()) for path in (parent, child)]
        assert all(alive(pid) for pid in pids)
        process.send_signal(signum)
        result = list(lines_of(process.stdout))[-1]
        assert process.wait(5) == code
    assert result["stopReason"] == "cancelled"
    until(lambda: not any(map(alive, pids)), 2)


def test_ctrl_c_while_the_question_is_typed(cli: Cli) -> None:
    cli.script({"text": "never"})
    with cli.start("-vv", "ask", "-") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"half a quest")
        process.stdin.flush()
        # It reads once its streams are set up: a blocked read is the only state it can rest in.
        until(lambda: asleep(process.pid))
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130
        assert process.stderr.read() == b""


def test_sigterm_while_nobody_reads_the_answer(cli: Cli) -> None:
    cli.script({"text": "word " * 200_000, "chunk": 100})
    with cli.start("ask", "x") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1) == b"w"
        until(lambda: asleep(process.pid))
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 143
        assert process.stderr.read() == b""
