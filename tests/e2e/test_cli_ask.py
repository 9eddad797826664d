from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

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


def usage(output: int, reasoning: int = 0) -> dict[str, int | None]:
    return {
        "input_tokens": 0,
        "output_tokens": output,
        "cache_read_tokens": 0,
        "cache_creation_tokens": 0,
        "reasoning_tokens": reasoning,
        "cost_usd": None,
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
        return {**kind, "arguments": arguments, "invalid": None, "signature": None}

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
            item_id="",
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
