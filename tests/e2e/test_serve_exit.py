"""How `agentls serve` ends: fast, whatever runs, and with all its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import psutil
import pytest

from support.frames import (
    SERVE,
    Json,
    RawServer,
    clean_environment,
    encode,
    read_frame,
    wait_until,
)
from support.lsp_client import Editor, call, scripted

WAITS = "echo $$ > pid.new; sleep 300 & echo $! >> pid.new; mv pid.new pids; wait"
"""A command with a child of its own, which says who they are once both run."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    return folder


def in_a_command(workspace: Path, tmp_path: Path) -> tuple[Editor, list[int]]:
    """A server in the middle of a shell command, and the command's processes."""
    editor = Editor(workspace, env=scripted(tmp_path, call("bash", command=WAITS), {"text": "x"}))
    session_id = editor.start()
    editor.send_prompt(session_id)
    editor.wait_for(
        lambda message: message.get("params", {}).get("update", {}).get("status") == "in_progress"
    )
    wait_until((workspace / "pids").exists)
    return editor, [int(line) for line in (workspace / "pids").read_text().split()]


def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_the_polite_end(workspace: Path, tmp_path: Path) -> None:
    with Editor(workspace, env=scripted(tmp_path)) as editor:
        editor.start()
        assert editor.request("shutdown") is None
        editor.notify("exit")
        code, seconds = editor.wait_for_exit(5)
    assert (code, seconds < 1) == (0, True)
    assert editor.stderr() == ""


def test_exit_without_shutdown_and_before_initialize(workspace: Path, tmp_path: Path) -> None:
    with Editor(workspace, env=scripted(tmp_path)) as editor:
        editor.notify("exit")
        assert editor.wait_for_exit(10)[0] == 1


def piped(workspace: Path, *messages: Json) -> tuple[int, dict[int, Json]]:
    """Exit status and responses by id, when all messages are there before the server reads."""
    initialize: Json = {"processId": None, "rootUri": None, "capabilities": {}}
    first = {"id": 1, "method": "initialize", "params": initialize}
    ran = subprocess.run(
        SERVE,
        input=b"".join(encode({"jsonrpc": "2.0", **message}) for message in (first, *messages)),
        env=clean_environment(workspace),
        cwd=workspace,
        capture_output=True,
        timeout=20,
        check=False,
    )
    stream, responses = BytesIO(ran.stdout), []
    while (message := read_frame(stream)) is not None:
        responses.append(message)
    assert len({response["id"] for response in responses}) == len(responses)
    return ran.returncode, {response["id"]: response for response in responses}


END_POLITELY = ({"id": 9, "method": "shutdown"}, {"method": "exit"})


def test_all_replies_arrive_when_the_input_ends_behind_the_requests(workspace: Path) -> None:
    code, responses = piped(workspace, *END_POLITELY)
    assert code == 0
    assert "result" in responses[1]
    assert responses[9]["result"] is None


@pytest.mark.parametrize(("end", "code"), [((), 1), (({"method": "exit"},), 1), (END_POLITELY, 0)])
def test_what_is_still_being_served_at_the_end_is_answered(
    workspace: Path, end: tuple[Json, ...], code: int
) -> None:
    ended, responses = piped(workspace, {"id": 2, "method": "agent/session/new"}, *end)
    assert ended == code
    assert set(responses) >= {1, 2}
    assert responses[2]["error"]["code"] == -32800


END: dict[str, tuple[Callable[[Editor], None], int]] = {
    "end of input": (Editor.close_stdin, 1),
    "exit": (lambda editor: editor.notify("exit"), 1),
    "SIGTERM": (lambda editor: editor.process.send_signal(signal.SIGTERM), 143),
    "SIGINT": (lambda editor: editor.process.send_signal(signal.SIGINT), 130),
    "SIGHUP": (lambda editor: editor.process.send_signal(signal.SIGHUP), 129),
}


@pytest.mark.parametrize("how", END)
def test_a_running_command_ends_with_the_server(workspace: Path, tmp_path: Path, how: str) -> None:
    end, expected = END[how]
    editor, pids = in_a_command(workspace, tmp_path)
    with editor:
        end(editor)
        code, seconds = editor.wait_for_exit(2)
        wait_until(lambda: all(map(gone, pids)), 1)
    assert (code, seconds < 1) == (expected, True)


def test_a_waiting_model_does_not_delay_the_end(workspace: Path, tmp_path: Path) -> None:
    with Editor(workspace, env=scripted(tmp_path, {"text": "x", "delay_s": 300})) as editor:
        session_id = editor.start()
        editor.send_prompt(session_id)
        editor.new_session()  # the prompt has been taken in
        editor.close_stdin()
        assert editor.wait_for_exit(1)[0] == 1


def test_an_unanswered_question_does_not_delay_the_end(workspace: Path, tmp_path: Path) -> None:
    env = scripted(tmp_path, call("bash", command="touch made"), {"text": "x"})
    with Editor(workspace, env=env, permission=None) as editor:
        session_id = editor.start()
        editor.send_prompt(session_id)
        editor.call_from_server("agent/session/requestPermission")
        editor.close_stdin()
        assert editor.wait_for_exit(1)[0] == 1
    assert not (workspace / "made").exists()


STUCK = """
import sys, time
from agentls.lsp.features import documents

def stuck(ls, params):
    print("stuck", file=sys.stderr, flush=True)
    time.sleep(60)

documents.did_save = stuck
sys.argv = ["agentls", "serve"]
from agentls.__main__ import main
sys.exit(main())
"""


def test_a_blocked_server_ends_with_its_input_all_the_same(workspace: Path, tmp_path: Path) -> None:
    with RawServer(workspace, command=(sys.executable, "-c", STUCK)) as server:
        server.initialize()
        server.notify("textDocument/didSave", {"textDocument": {"uri": "file:///x"}})
        wait_until(lambda: "stuck" in server.stderr(), 10)
        server.close_stdin()
        code, seconds = server.wait_for_exit(4)
    assert (code, seconds < 3.5) == (1, True)


def test_nobody_who_reads_is_the_end(workspace: Path, tmp_path: Path) -> None:
    with Editor(workspace, env=scripted(tmp_path), read=False) as editor:
        assert editor.process.stdout is not None
        editor.process.stdout.close()
        editor.send_request("shutdown")
        code, _ = editor.wait_for_exit(10)
        assert code == 1
        assert editor.process.stdin is not None
        with pytest.raises(BrokenPipeError):
            while True:
                editor.send_request("shutdown")


def test_a_dead_client_is_noticed_while_the_input_stays_open(
    workspace: Path, tmp_path: Path
) -> None:
    with (
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as client,
        Editor(workspace, env=scripted(tmp_path)) as editor,
    ):
        editor.start(processId=client.pid)
        client.kill()
        code, seconds = editor.wait_for_exit(3)
    assert (code, seconds < 2.5) == (1, True)


def test_a_killed_client_takes_the_server_and_its_children_along(
    workspace: Path, tmp_path: Path
) -> None:
    """The client is a process of its own, killed as hard as can be in the middle of a command."""
    server_pid = tmp_path / "server.pid"
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(workspace), str(tmp_path), str(server_pid)],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    try:
        wait_until(lambda: server_pid.exists() and (workspace / "pids").exists(), 20)
        pids = [int(server_pid.read_text())]
        pids += [int(line) for line in (workspace / "pids").read_text().split()]
        assert not any(map(gone, pids))
    finally:
        client.kill()
        client.wait()
    wait_until(lambda: all(map(gone, pids)), 2)


CLIENT = f"""
import os, sys
from pathlib import Path
from support.lsp_client import Editor, call, scripted

workspace, folder, pid_file = map(Path, sys.argv[1:])
editor = Editor(workspace, env=scripted(folder, call("bash", command={WAITS!r})))
session_id = editor.start()
(folder / "new").write_text(str(editor.process.pid))
(folder / "new").rename(pid_file)
editor.response(editor.send_prompt(session_id))
"""
