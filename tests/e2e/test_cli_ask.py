from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from support.cli_process import COMMAND, Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli.below(tmp_path)


EDIT = {"path": "a.py", "old_text": "x = 1", "new_text": "x = 2"}


def edit_script(cli: Cli) -> None:
    cli.write("a.py", "# é\nx = 1\n")
    cli.script(
        {
            "thinking": "Read first.",
            "tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}],
        },
        {"text": "I will edit.", "tool_calls": [{"name": "edit_file", "arguments": EDIT}]},
        {"text": "Done: x is 2. 漢字", "expect": "Edited a.py"},
    )


def settled(line: Any) -> Any:
    """A JSON line without what differs between machines: counts of the system prompt's text."""
    usage = line.get("usage", line) if line["type"] in ("usage", "result") else {}
    if usage:
        assert usage["input_tokens"] > 0
        usage["input_tokens"] = 0
    return line


def usage(output: int, reasoning: int = 0) -> dict[str, int]:
    return {
        "input_tokens": 0,
        "output_tokens": output,
        "cache_read_tokens": 0,
        "cache_creation_tokens": 0,
        "reasoning_tokens": reasoning,
    }


def test_json_of_read_edit_text_is_complete_and_the_file_is_edited(cli: Cli) -> None:
    edit_script(cli)
    done = cli.run("ask", "--yes", "--json", "Set x to 2")
    assert (done.code, done.err) == (0, "")
    assert (cli.workspace / "a.py").read_bytes() == "# é\nx = 2\n".encode()
    lines = [settled(line) for line in done.lines]
    session = lines[-1].pop("sessionId")
    assert re.fullmatch("[0-9a-f]{32}", session)
    finished = {"type": "status", "state": "finished", "message": "", "stop_reason": "tool_use"}
    read = {"path": "a.py"}

    def start(index: int, block: str, call_id: str = "", name: str = "") -> dict[str, Any]:
        return {
            "type": "block_start",
            "index": index,
            "block": block,
            "call_id": call_id,
            "name": name,
        }

    def delta(index: int, text: str) -> dict[str, Any]:
        return {"type": "block_delta", "index": index, "text": text}

    def stop(index: int, **item: Any) -> dict[str, Any]:
        return {"type": "block_stop", "index": index, "item": item}

    def message(text: str) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        return {"kind": "message", "role": "assistant", "content": content, "ephemeral": False}

    def tool_call(call_id: str, name: str, arguments: Any) -> dict[str, Any]:
        kind = {"kind": "tool_call", "call_id": call_id, "name": name}
        return {**kind, "arguments": arguments, "invalid": None}

    results = [line for line in lines if line.get("item", {}).get("kind") == "tool_result"]
    read_result, edit_result = (line["item"] for line in results)
    assert [line.get("content") for line in (read_result,)] == ["# é\nx = 1"]
    assert edit_result["content"].startswith("Edited a.py")
    assert edit_result["diff"] == [
        {"path": "a.py", "old_text": "# é\nx = 1\n", "new_text": "# é\nx = 2\n"}
    ]
    assert (read_result["is_error"], edit_result["is_error"]) == (False, False)
    assert lines == [
        start(0, "thinking"),
        delta(0, "Read first."),
        stop(
            0,
            kind="reasoning",
            text="Read first.",
            signature=None,
            encrypted=None,
            provider="scripted",
        ),
        start(1, "tool_call", "call_1_0", "read_file"),
        delta(1, json.dumps(read)),
        stop(1, **tool_call("call_1_0", "read_file", read)),
        {"type": "usage", **usage(27, 11)},
        finished,
        start(2, "tool_result", "call_1_0", "read_file"),
        stop(2, **read_result),
        start(3, "text"),
        delta(3, "I will edit."),
        stop(3, **message("I will edit.")),
        start(4, "tool_call", "call_2_0", "edit_file"),
        delta(4, json.dumps(EDIT)),
        stop(4, **tool_call("call_2_0", "edit_file", EDIT)),
        {"type": "usage", **usage(70)},
        finished,
        start(5, "tool_result", "call_2_0", "edit_file"),
        stop(5, **edit_result),
        start(6, "text"),
        delta(6, "Done: x is 2. 漢字"),
        stop(6, **message("Done: x is 2. 漢字")),
        {"type": "usage", **usage(16)},
        {**finished, "stop_reason": "end_turn"},
        {
            "type": "result",
            "stopReason": "end_turn",
            "text": "Done: x is 2. 漢字",
            "usage": usage(113, 11),
            "files": ["a.py"],
        },
    ]


def test_for_people_the_answer_is_on_stdout_and_the_rest_on_stderr(cli: Cli) -> None:
    edit_script(cli)
    done = cli.run("ask", "--yes", "Set", "x", "to", "2")
    assert (done.code, done.out) == (0, "I will edit.\n\nDone: x is 2. 漢字\n")
    assert [line.split(" - ")[0] for line in done.err.split("\n")] == [
        "✓ read_file a.py",
        "✓ edit_file a.py",
        "",
    ]


def test_without_yes_and_without_a_terminal_nothing_is_changed(cli: Cli) -> None:
    cli.write("a.py", "x = 1\n")
    cli.script(
        {"tool_calls": [{"name": "read_file", "arguments": {"path": "a.py"}}]},
        {
            "tool_calls": [
                {"name": "edit_file", "arguments": EDIT},
                {"name": "bash", "arguments": {"command": "touch made"}},
            ]
        },
        {"text": "It was not allowed."},
    )
    done = cli.run("ask", "Set x to 2")
    assert (done.code, done.out) == (0, "It was not allowed.\n")
    assert (cli.workspace / "a.py").read_text() == "x = 1\n"
    assert not (cli.workspace / "made").exists()
    assert done.err.count("--yes") == 2
    assert done.err.count("✗") == 2


def test_plan_mode_changes_nothing_even_with_yes(cli: Cli) -> None:
    cli.script(
        {"tool_calls": [{"name": "write_file", "arguments": {"path": "new.py", "content": "x"}}]},
        {"text": "No."},
    )
    done = cli.run("ask", "--mode", "plan", "--yes", "--json", "write")
    assert done.code == 0
    assert not (cli.workspace / "new.py").exists()
    assert done.result["files"] == []


# --- the question ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "stdin", "expect"),
    [
        (["what", "is", "this?"], b"ignored", r"^what is this\?$"),
        (["-"], "von hier: é\n".encode(), "^von hier: é$"),
        ([], b"piped\n", "^piped$"),
        (["review:", "-"], b"line 1\nline 2\n", r"^review:\n\nline 1\nline 2$"),
        (["-"], b"bad \xff byte", "^bad \ufffd byte$"),
        (["--", "--json"], b"", "^--json$"),
    ],
)
def test_where_the_question_comes_from(
    cli: Cli, arguments: list[str], stdin: bytes, expect: str
) -> None:
    cli.script({"text": "yes", "expect": expect})
    done = cli.run("ask", *arguments, stdin=stdin)
    assert (done.code, done.out, done.err) == (0, "yes\n", "")


@pytest.mark.parametrize("arguments", [["ask"], ["ask", "-"], ["ask", ""], ["ask", "  "]])
def test_no_question_is_wrong_usage(cli: Cli, arguments: list[str]) -> None:
    done = cli.run(*arguments, stdin=b" \n")
    assert (done.code, done.out) == (2, "")
    assert "There is no question." in done.err


def test_a_question_without_end_is_refused(cli: Cli) -> None:
    cli.script({"text": "never"})
    with Path("/dev/zero").open("rb") as zeros:
        process = cli.start("ask", "-", stdin=zeros)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, b"")
    assert b"larger than 4 MiB" in err


def test_bytes_of_the_command_line_that_are_no_text_are_replaced(cli: Cli) -> None:
    cli.script({"text": "yes", "expect": "^caf\ufffd\\?$"})
    done = subprocess.run(
        [*map(os.fsencode, COMMAND), b"ask", b"caf\xe9?"],
        cwd=cli.workspace,
        env=cli.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (0, b"yes\n")


# --- the workspace ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["missing", "file.txt", "nul\\0"])
@pytest.mark.parametrize("command", [["ask", "x"], ["serve"], ["doctor"], []])
def test_a_workspace_that_is_no_folder_is_wrong_usage(
    cli: Cli, name: str, command: list[str]
) -> None:
    cli.write("file.txt", "")
    done = cli.run("--workspace", name, *command)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("agentls: error: The workspace")
    assert "Traceback" not in done.err


@pytest.mark.parametrize("below", [".", "deep/er"])
def test_the_workspace_is_the_enclosing_repository(cli: Cli, below: str) -> None:
    cli.write("top.txt", "found it\n")
    folder = cli.workspace / below
    folder.mkdir(parents=True, exist_ok=True)
    cli.script(
        {"tool_calls": [{"name": "read_file", "arguments": {"path": "top.txt"}}]},
        {"text": "ok", "expect": "found it"},
    )
    process = cli.start("ask", "x", cwd=folder)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, b"ok\n")


def test_a_path_outside_is_refused_whatever_was_approved(cli: Cli) -> None:
    (cli.home / "secret.txt").write_text("top secret")
    outside = str(cli.home / "secret.txt")
    cli.script(
        {"tool_calls": [{"name": "read_file", "arguments": {"path": outside}}]},
        {"tool_calls": [{"name": "write_file", "arguments": {"path": "../x", "content": "y"}}]},
        {"text": "Refused."},
    )
    done = cli.run("ask", "--yes", "--json", "read it")
    assert done.code == 0
    assert "top secret" not in done.out
    assert not (cli.workspace.parent / "x").exists()


# --- failures --------------------------------------------------------------------------------


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


# --- output ----------------------------------------------------------------------------------


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


# --- signals ---------------------------------------------------------------------------------


def lines_of(stream: IO[bytes]) -> Iterator[Any]:
    for line in iter(stream.readline, b""):
        yield json.loads(line)


def until(seen: Callable[[], bool], limit_s: float = 10) -> None:
    """Wait for something outside this process, which cannot tell."""
    deadline = time.monotonic() + limit_s
    while not seen():
        assert time.monotonic() < deadline, "it did not happen in time"
        select.select([], [], [], 0.01)


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
        assert all(psutil.pid_exists(pid) for pid in pids)
        process.send_signal(signum)
        result = list(lines_of(process.stdout))[-1]
        assert process.wait(5) == code
    assert result["stopReason"] == "cancelled"
    until(lambda: not any(map(alive, pids)), 2)


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_ctrl_c_while_the_question_is_typed(cli: Cli) -> None:
    cli.script({"text": "never"})
    with cli.start("-vv", "ask", "-") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"half a quest")
        process.stdin.flush()
        # It reads once its streams are set up: a blocked read is the only state it can rest in.
        until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING)
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130
        assert process.stderr.read() == b""


def test_sigterm_while_nobody_reads_the_answer(cli: Cli) -> None:
    cli.script({"text": "word " * 200_000, "chunk": 100})
    with cli.start("ask", "x") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1) == b"w"
        until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING)
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 143
        assert process.stderr.read() == b""
