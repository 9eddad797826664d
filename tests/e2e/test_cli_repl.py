"""The conversation in a terminal, and over the lines of a pipe."""

from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path
from typing import Any

import pexpect
import pytest

from agentls import __version__
from support.cli_process import COMMAND, Cli, alive, until
from support.terminal import talking

EDIT = {"path": "a.py", "old_text": "x = 1", "new_text": "x = 2"}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    made = Cli.below(tmp_path)
    made.write("a.py", "x = 1\n")
    return made


def history(cli: Cli) -> Path:
    return cli.home / ".local" / "state" / "agentls" / "history"


@pytest.mark.parametrize("leave", ["exit\r", "quit\r", "/exit\r", "\x04"])
def test_ask_see_and_leave(cli: Cli, leave: str) -> None:
    cli.script(
        {"thinking": "A greeting.", "text": "# Hello\n\nSome **bold** 漢字.\n\n- one\n- two"}
    )
    with talking(cli) as terminal:
        terminal.prompt()
        banner = " ".join(terminal.lines[:-1])
        assert banner.startswith(
            f"agentls {__version__} · script.jsonl (scripted: scripted is the chosen provider) · "
            "mode ask · /"
        )
        terminal.enter("hello?")
        terminal.see("two")
        terminal.prompt()
        shown = terminal.lines
        at = shown.index("ask> hello?")
        assert [line.strip() for line in shown[at + 1 : -1]] == [
            "∴ A greeting.",
            "Hello",
            "Some bold 漢字.",
            "• one",
            "• two",
        ]
        terminal.child.send(leave)
        assert terminal.end() == 0


def test_approve_reject_and_always(cli: Cli) -> None:
    bash: dict[str, Any] = {"name": "bash", "arguments": {"command": "echo ran >> log"}}
    cli.script(
        {"tool_calls": [{"name": "edit_file", "arguments": EDIT}, bash]},
        {"text": "First done.", "expect": "said no"},
        {"tool_calls": [bash]},
        {"tool_calls": [bash]},
        {"text": "Second done."},
    )
    with talking(cli) as terminal:
        terminal.prompt()
        terminal.enter("edit it")
        terminal.see("never:")
        assert [line for line in terminal.lines if line.startswith("│")] == [
            "│ edit a.py (+1 -1)",
            "│ @@ -1,1 +1,1 @@",
            "│ -x = 1",
            "│ +x = 2",
        ]
        assert (cli.workspace / "a.py").read_text() == "x = 1\n"
        terminal.enter("y")
        terminal.see("every command asks")
        terminal.see("never:")
        assert (cli.workspace / "a.py").read_text() == "x = 2\n"
        assert terminal.lines[-3] == "│ echo ran >> log"
        terminal.enter("n")
        terminal.see("First done.")
        terminal.prompt()
        assert not (cli.workspace / "log").exists()

        terminal.enter("again")
        terminal.see("never:")
        terminal.enter("a")
        terminal.see("Second done.")
        terminal.prompt()
        assert (cli.workspace / "log").read_text() == "ran\nran\n"
        terminal.enter("exit")
        assert terminal.end() == 0


def test_what_was_typed_before_the_question_does_not_answer_it(cli: Cli) -> None:
    cli.script(
        {"text": "Working.", "tool_calls": [{"name": "glob", "arguments": {"pattern": "*"}}]},
        {
            "delay_s": 1,
            "tool_calls": [{"name": "bash", "arguments": {"command": "touch made"}}],
        },
        {"text": "Over."},
    )
    with talking(cli) as terminal:
        terminal.prompt()
        terminal.enter("go")
        terminal.see("glob *")
        terminal.enter("y")
        terminal.see("never:")
        assert not (cli.workspace / "made").exists()
        terminal.enter("n")
        terminal.see("Over.")
        assert not (cli.workspace / "made").exists()


def test_ctrl_c_cancels_the_turn_and_the_conversation_goes_on(cli: Cli) -> None:
    cli.script(
        {"text": "Half.", "tool_calls": [{"name": "glob", "arguments": {"pattern": "*"}}]},
        {"text": "never", "delay_s": 60},
        {"text": "Here again."},
    )
    with talking(cli) as terminal:
        terminal.prompt()
        terminal.enter("go")
        terminal.see("glob *")
        terminal.see("waiting for the model")
        began = time.monotonic()
        terminal.child.sendintr()
        terminal.child.sendintr()
        terminal.see("cancelled")
        terminal.prompt()
        assert time.monotonic() - began < 1
        terminal.enter("and?")
        terminal.see("Here again.")
        terminal.prompt()
        # At the prompt it clears the line; as a signal it does no more.
        terminal.child.send("half a li")
        terminal.child.sendintr()
        terminal.prompt()
        os.kill(terminal.pid, signal.SIGINT)
        terminal.prompt()
        terminal.enter("exit")
        assert terminal.end() == 0


def test_ctrl_c_kills_the_command_that_runs(cli: Cli) -> None:
    command = "sleep 300 & echo $! > child; echo $$ > parent; wait"
    cli.script(
        {"tool_calls": [{"name": "bash", "arguments": {"command": command}}]},
        {"text": "Here again."},
    )
    with talking(cli, "--yes") as terminal:
        terminal.prompt()
        terminal.enter("go")
        files = [cli.workspace / name for name in ("child", "parent")]
        until(lambda: all(file.exists() and file.read_text().endswith("\n") for file in files))
        pids = [int(file.read_text()) for file in files]
        assert all(map(alive, pids))
        terminal.child.sendintr()
        terminal.see("cancelled")
        terminal.prompt()
        until(lambda: not any(map(alive, pids)), 2)
        terminal.enter("and?")
        terminal.see("Here again.")


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_leaving_an_approval_denies(cli: Cli, key: str) -> None:
    cli.script(
        {"tool_calls": [{"name": "bash", "arguments": {"command": "touch made"}}]},
        {"text": "Went on."},
        {"text": "Went on."},
    )
    with talking(cli) as terminal:
        terminal.prompt()
        terminal.enter("go")
        terminal.see("never:")
        terminal.child.send(key)
        terminal.see("cancelled" if key == "\x03" else "Went on.")
        terminal.prompt()
        assert not (cli.workspace / "made").exists()
        terminal.enter("and?")
        terminal.see("Went on.")


def test_a_provider_that_fails_is_a_message(cli: Cli) -> None:
    cli.script({"error": "Overloaded.", "status": 529}, {"text": "Back again."})
    with talking(cli) as terminal:
        terminal.prompt()
        terminal.enter("one")
        terminal.see("agentls: error: Overloaded.")
        terminal.prompt()
        terminal.enter("two")
        terminal.see("Back again.")


def test_without_a_model_it_starts_and_says_so(cli: Cli) -> None:
    with talking(cli) as terminal:
        terminal.see("no model")
        terminal.see("No model was found")
        terminal.prompt()
        terminal.enter("where is x?")
        terminal.see("No model was found")
        terminal.prompt()
        terminal.enter("exit")
        assert terminal.end() == 0


def test_slash_commands(cli: Cli) -> None:
    cli.script({"text": "First."}, {"text": "Second."})
    with talking(cli, "--mode", "plan") as terminal:
        terminal.prompt("plan")
        terminal.enter("/help")
        terminal.see("/usage")
        terminal.prompt("plan")
        terminal.enter("/mode edit")
        terminal.prompt("edit")
        terminal.enter("/mode god")
        terminal.see("a mode is plan, ask or edit")
        terminal.prompt("edit")
        terminal.child.send("/mo\t")
        terminal.see("/mode")
        terminal.child.sendintr()
        terminal.prompt("edit")
        terminal.enter("hi")
        terminal.see("First.")
        terminal.prompt("edit")
        terminal.enter("/usage")
        terminal.see("6 out")
        terminal.prompt("edit")
        terminal.enter("/new")
        terminal.prompt("edit")
        terminal.enter("/usage")
        terminal.see("0 tokens in, 0 out")
        terminal.prompt("edit")
        terminal.enter("/nonesuch")
        terminal.see("there is no /nonesuch")
        terminal.prompt("edit")
        terminal.enter("/model")
        terminal.see("script.jsonl (scripted")
        terminal.prompt("edit")
        terminal.enter("/etc/hosts is what?")
        terminal.see("Second.")


def test_several_lines_and_a_private_history(cli: Cli) -> None:
    cli.script({"text": "One.", "expect": r"^a\nb\nc$"}, {"text": "Two.", "expect": r"^a\nb\nc$"})
    with talking(cli) as terminal:
        terminal.prompt()
        terminal.enter("a\\")
        terminal.see("...")
        terminal.child.send("b\x1b\rc\r")
        terminal.see("One.")
        terminal.prompt()
        terminal.enter("exit")
        assert terminal.end() == 0
    assert stat.S_IMODE(history(cli).stat().st_mode) == 0o600
    assert stat.S_IMODE(history(cli).parent.stat().st_mode) == 0o700
    assert "+a\n+b\n+c\n" in history(cli).read_text()
    history(cli).chmod(0o644)
    with talking(cli) as terminal:
        terminal.prompt()
        assert stat.S_IMODE(history(cli).stat().st_mode) == 0o600
        # Up once is "exit", up twice the question.
        terminal.child.send("\x1b[A\x1b[A")
        terminal.see("c")
        terminal.child.send("\r")
        terminal.see("One.")


def test_a_home_that_cannot_be_written_is_no_obstacle(cli: Cli) -> None:
    cli.script({"text": "Hello."})
    history(cli).parent.parent.mkdir(parents=True)
    history(cli).parent.write_text("a file where the folder should be")
    with talking(cli) as terminal:
        terminal.prompt()
        terminal.enter("hi")
        terminal.see("Hello.")


@pytest.mark.parametrize(
    "locale", [{"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0"}, {"TERM": "dumb"}]
)
def test_a_poor_terminal(cli: Cli, locale: dict[str, str]) -> None:
    cli.environment |= locale
    cli.script(
        {"text": "Hello é.", "tool_calls": [{"name": "edit_file", "arguments": EDIT}]},
        {"text": "Done."},
    )
    with talking(cli) as terminal:
        terminal.prompt()
        terminal.enter("hi")
        terminal.see("never:")
        terminal.enter("y")
        terminal.see("Done.")
        terminal.prompt()
        terminal.enter("exit")
        assert terminal.end() == 0
    assert (cli.workspace / "a.py").read_text() == "x = 2\n"


def test_a_terminal_that_goes_away_takes_everything_along(cli: Cli) -> None:
    command = "echo $$ > parent; exec sleep 300"
    cli.script({"tool_calls": [{"name": "bash", "arguments": {"command": command}}]})
    with talking(cli, "--yes") as terminal:
        terminal.prompt()
        terminal.enter("go")
        file = cli.workspace / "parent"
        until(lambda: file.exists() and file.read_text().endswith("\n"))
        own, command_pid = terminal.pid, int(file.read_text())
        terminal.child.close(force=False)
        until(lambda: not alive(own) and not alive(command_pid), 5)


def test_ask_in_a_terminal_asks_for_approval(cli: Cli) -> None:
    cli.script({"tool_calls": [{"name": "edit_file", "arguments": EDIT}]}, {"text": "Done."})
    with talking(cli, "ask", "edit it") as terminal:
        terminal.see("never:")
        terminal.enter("y")
        terminal.see("Done.")
        assert terminal.end() == 0
    assert (cli.workspace / "a.py").read_text() == "x = 2\n"


# --- where questions are asked ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("redirection", "asked"),
    [("> out", True), ("--json > out", True), ("2> err", True), ("> out 2> err", False)],
)
def test_a_person_is_asked_wherever_they_can_see_it(
    cli: Cli, redirection: str, asked: bool
) -> None:
    cli.script({"tool_calls": [{"name": "edit_file", "arguments": EDIT}]}, {"text": "Done."})
    command = " ".join([*COMMAND, "ask", "go", redirection])
    child = pexpect.spawn(
        "/bin/sh",
        ["-c", command],
        cwd=str(cli.workspace),
        env={"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **cli.environment},
        encoding="utf-8",
        timeout=15,
    )
    if asked:
        child.expect_exact("+x = 2")
        child.expect_exact("never:")
        child.send("y\r")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert (cli.workspace / "a.py").read_text() == ("x = 2\n" if asked else "x = 1\n")
    if "> out" in redirection:
        out = (cli.workspace / "out").read_text()
        assert out.endswith("}\n" if "json" in redirection else "Done.\n")
        assert "Allow?" not in out
