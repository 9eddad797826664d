from __future__ import annotations

from pathlib import Path

import pytest

from agentls import __version__
from support.cli_process import Cli

KEY = "sk-test-0123456789abcdef"


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli.below(tmp_path)


def test_a_machine_that_works(cli: Cli) -> None:
    cli.environment["OPENAI_API_KEY"] = KEY
    cli.script({"text": "ready", "delay_s": 0.1})
    done = cli.run("doctor")
    assert (done.code, done.err) == (0, "")
    names = [
        line.split(":")[0] for line in done.out.split("\n") if line.startswith(("✓", "✗", "·"))
    ]
    assert names == [
        "✓ version",
        "✓ Python",
        "✓ workspace",
        "✓ settings",
        "✓ cache folder",
        "✓ state folder",
        "✓ search",
        "✓ model",
        "✓ key",
        "✓ model present",
        "✓ request",
        "· context",
        "✓ tool calls",
        "· weights",
        "✓ listening ports",
        "· sandbox",
    ]
    assert f"agentls {__version__}" in done.out
    assert "script.jsonl from scripted: scripted is the chosen provider" in done.out
    assert "answered; first token after 0.1" in done.out
    assert "every command asks" in done.out
    assert KEY not in done.out


def test_without_a_model_it_fails_and_says_what_to_do(cli: Cli) -> None:
    done = cli.run("doctor")
    assert (done.code, done.err) == (1, "")
    assert "✗ model: No model was found." in done.out
    assert "    Three ways to get one:\n      1. " in done.out


def test_json_is_one_check_a_line_and_the_verdict(cli: Cli) -> None:
    done = cli.run("doctor", "--json")
    *checks, result = done.lines
    assert {check["type"] for check in checks} == {"check"}
    assert {frozenset(check) for check in checks} == {
        frozenset({"type", "name", "state", "detail", "next"})
    }
    assert result == {"type": "result", "ok": False, "failed": ["model"]}
    assert done.code == 1


def test_settings_that_were_ignored_are_named(cli: Cli) -> None:
    config = cli.home / ".config" / "agentls" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[llm]\nprovder = "x"\n[permissions]\nallow = ["bash("]\n')
    cli.script({"text": "ready"})
    done = cli.run("doctor")
    assert done.code == 0
    assert f"✓ settings: {config}\n" in done.out
    assert "· settings: " in done.out
    assert "llm.provder" in done.out


def test_a_model_that_is_down_fails_after_being_asked_for_real(cli: Cli) -> None:
    cli.script({"error": "Overloaded.", "status": 529})
    done = cli.run("doctor")
    assert done.code == 1
    assert "✓ model: " in done.out
    assert "✗ request: Overloaded." in done.out


def test_folders_that_cannot_be_written_fail(cli: Cli) -> None:
    (cli.home / ".cache").write_text("in the way")
    cli.script({"text": "ready"})
    done = cli.run("doctor")
    assert done.code == 1
    assert "✗ cache folder: " in done.out


def test_terminal_codes_in_names_are_shown(cli: Cli) -> None:
    folder = cli.workspace / "evil\x1b[2J"
    folder.mkdir()
    cli.script({"text": "ready"})
    done = cli.run("--workspace", str(folder), "doctor")
    assert "\x1b" not in done.out
    assert "evil\\u{1b}[2J (not a git repository)" in done.out
