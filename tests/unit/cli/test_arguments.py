from __future__ import annotations

from pathlib import Path

import pytest

from agentls import __version__
from agentls.cli.arguments import Arguments, parse


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], Arguments("repl")),
        (["--mode", "plan"], Arguments("repl", mode="plan")),
        (["ask", "why", "is", "that?"], Arguments("ask", question=("why", "is", "that?"))),
        (["ask", "-"], Arguments("ask", question=("-",))),
        (["ask", "--", "--json"], Arguments("ask", question=("--json",))),
        (["--json", "ask", "a"], Arguments("ask", json=True, question=("a",))),
        (["ask", "a", "--json", "b"], Arguments("ask", json=True, question=("a", "b"))),
        (
            ["ask", "--json", "a", "--yes", "b"],
            Arguments("ask", yes=True, json=True, question=("a", "b")),
        ),
        (
            ["--yes", "--model", "m", "ask", "a"],
            Arguments("ask", model="m", yes=True, question=("a",)),
        ),
        (["--workspace", "x", "ask", "a"], Arguments("ask", workspace=Path("x"), question=("a",))),
        (["ask", "--workspace", "x", "a"], Arguments("ask", workspace=Path("x"), question=("a",))),
        (
            ["--mode", "plan", "ask", "--mode", "edit", "a"],
            Arguments("ask", mode="edit", question=("a",)),
        ),
        (["serve", "--stdio"], Arguments("serve")),
        (["serve", "--stdio", "--clientProcessId=7"], Arguments("serve")),
        (["-vv", "doctor"], Arguments("doctor", verbose=2)),
        (["model", "list", "--json"], Arguments("model list", json=True)),
        (["model", "pull", "qwen1.5b"], Arguments("model pull", name="qwen1.5b")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_understood(argv: list[str], expected: Arguments) -> None:
    assert parse(argv) == expected


@pytest.mark.parametrize(
    "argv",
    [
        ["frobnicate"],
        ["--frobnicate"],
        ["ask", "--frobnicate"],
        ["ask", "a", "--jso"],
        ["doctor", "extra"],
        ["model"],
        ["model", "push"],
        ["model", "pull"],
        ["model", "pull", "a", "b"],
        ["--mode", "god", "ask", "a"],
        ["--workspace"],
        ["serve", "--clientProcessId=x"],
        ["index", "."],
    ],
    ids=" ".join,
)
def test_anything_else_is_usage_on_stderr_and_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv)
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert err.startswith("usage: agentls")
    assert "error:" in err


def test_a_question_without_the_subcommand_is_pointed_to_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        parse(["what is this?"])
    assert capsys.readouterr().err.endswith('To ask a question: agentls ask "..."\n')


def test_usage_does_not_echo_terminal_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["\x1b]0;owned\x07"])
    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\\x1b" in err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"agentls {__version__}\n")


def test_help_has_examples_and_no_command_that_does_not_exist(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    for expected in ("ask", "serve", "doctor", "model", "examples:", "exit status:"):
        assert expected in text
    for absent in ("index", "search", "sessions"):
        assert absent not in text
    text.encode("ascii")
