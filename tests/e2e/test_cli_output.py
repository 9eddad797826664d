"""What the command line prints, to whom, and what it does when that fails."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.cli_process import COMMAND, Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli.below(tmp_path)


# --- failures ----------------


@pytest.mark.parametrize(
    ("reply", "code", "retryable"),
    [
        ({"error": "Key rejected.", "status": 401}, "unauthorized", False),
        ({"error": "Overloaded.", "status": 529}, "model", True),
        ({"text": "x", "expect": "never this"}, "model", False),
    ],
)
def test_a_model_that_fails_is_a_message_and_exit_1(
    cli: Cli, reply: dict[str, Any], code: str, retryable: bool
) -> None:
    cli.script(reply, reply)
    plain, as_json = cli.run("ask", "x"), cli.run("ask", "--json", "x")
    assert (plain.code, plain.out, as_json.code, as_json.err) == (1, "", 1, "")
    assert plain.err.startswith("agentls: error: ")
    assert "Traceback" not in plain.err
    event, result = as_json.lines[-2:]
    assert (event["type"], event["code"], event["retryable"]) == ("error", code, retryable)
    assert (result["stopReason"], result["error"]["code"]) == ("error", code)
    assert result["error"]["message"] in plain.err


def test_the_iteration_limit_is_said_and_is_no_success(cli: Cli) -> None:
    config = cli.home / ".config" / "agentls" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text("[turn]\nmax_iterations = 2\n")
    again: dict[str, Any] = {"tool_calls": [{"name": "glob", "arguments": {"pattern": "*"}}]}
    cli.script(again, again, again)
    done = cli.run("ask", "--json", "x")
    assert (done.code, done.result["stopReason"]) == (1, "max_turn_requests")
    assert "Max iterations 2 reached" in done.result["notice"]


def test_settings_that_do_not_fit_are_warned_of_once(cli: Cli) -> None:
    config = cli.home / ".config" / "agentls" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[memory]\nmax_messages = "many"\n')
    cli.script({"text": "ok"})
    done = cli.run("ask", "x")
    assert (done.code, done.out) == (0, "ok\n")
    assert done.err.startswith("agentls: warning: ")
    assert done.err.count("memory.max_messages") == 1


def test_a_defect_is_one_line_and_its_details_are_in_the_log(cli: Cli, tmp_path: Path) -> None:
    """A library that breaks on import stands for any defect."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "platformdirs.py").write_text("raise RuntimeError('boom')\n")
    cli.environment["PYTHONPATH"] = str(broken)
    cli.script({"text": "ok"})
    quiet, verbose = cli.run("ask", "x"), cli.run("-vv", "ask", "x")
    line = "agentls: internal error: RuntimeError: boom, please report; run with -v for details\n"
    assert (quiet.code, quiet.out, quiet.err) == (1, "", line)
    assert verbose.code == 1
    assert "Traceback" in verbose.err
    assert line in verbose.err


# --- streams ----------------


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_reader_that_leaves_is_no_error(cli: Cli, flags: list[str]) -> None:
    cli.script({"text": "word " * 200_000, "chunk": 10})
    with cli.start("ask", *flags, "x") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert len(process.stdout.read(50)) == 50
        process.stdout.close()
        assert process.wait(10) == 1
        assert process.stderr.read() == b""


@pytest.mark.parametrize("arguments", [["--help"], ["ask", "x"], ["ask", "--json", "x"]])
def test_a_full_disk_is_said(cli: Cli, arguments: list[str]) -> None:
    cli.script({"text": "ok"})
    with Path("/dev/full").open("wb") as full, cli.start(*arguments, stdout=full) as process:
        _, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert err == b"agentls: error: the output cannot be written: No space left on device\n"


def test_closed_streams_do_not_break_it(cli: Cli) -> None:
    cli.script({"text": "ok", "tool_calls": []})
    shell = " ".join(["exec", *COMMAND, "ask", "x", "<&-", ">&-", "2>&-"])
    done = subprocess.run(
        ["/bin/sh", "-c", shell], cwd=cli.workspace, env=cli.environment, check=False, timeout=30
    )
    assert done.returncode == 0


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_an_old_locale_loses_nothing(cli: Cli, locale: dict[str, str]) -> None:
    text = "naïve 漢字 😀 \u202e"
    cli.environment |= locale
    cli.script({"tool_calls": [{"name": "glob", "arguments": {"pattern": "é*"}}]}, {"text": text})
    with cli.start("ask", "wörd?") as process:
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert b"Traceback" not in err
    said = out.decode("latin-1") if b"\xef " in out or b"\xefve" in out else out.decode()
    shown = re.sub(r"\\(?:x|u|U)([0-9a-f]+)", lambda m: chr(int(m[1], 16)), said)
    assert shown == "naïve 漢字 😀 \\u{202e}\n"
    as_json = cli.run("ask", "--json", "wörd?")
    assert (as_json.result["text"], as_json.out.isascii()) == (text, True)


def test_terminal_codes_from_model_and_files_do_not_reach_the_terminal(cli: Cli) -> None:
    cli.write("evil\x1b]0;title\x07.py", "x")
    cli.script(
        {"tool_calls": [{"name": "bash", "arguments": {"command": "echo \x1b[2J\u202e"}}]},
        {"text": "\x1b]52;c;aGk=\x07 pasted\rover\x9b2J"},
    )
    done = cli.run("ask", "--yes", "x\x1b[2J")
    assert done.code == 0
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\r"} & set(done.out + done.err)
    assert "\\u{1b}]52;c;aGk=\\u{7} pasted\\u{d}over\\u{9b}2J" in done.out


def test_a_very_long_answer_arrives_whole(cli: Cli) -> None:
    text = "".join(f"{n} ünïcode 漢字 line\n" for n in range(20_000))
    cli.script({"text": text, "chunk": 997})
    done = cli.run("ask", "x")
    assert (done.code, done.out) == (0, text)
