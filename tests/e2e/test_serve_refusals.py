"""What `agentls serve` refuses, and how it says what went wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.lsp_client import Editor, call, scripted


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    return folder


def test_failures_of_the_model(workspace: Path, tmp_path: Path) -> None:
    env = scripted(
        tmp_path,
        {"error": "overloaded", "status": 529},
        {"error": "bad key", "status": 401},
        {"text": "ok"},
    )
    with Editor(workspace, env=env) as editor:
        session_id = editor.start()
        for message, status, retryable in (("overloaded", 529, True), ("bad key", 401, False)):
            error = editor.response(editor.send_prompt(session_id))["error"]
            assert error["code"] == -32003
            assert message in error["message"]
            data = {"provider": "scripted", "status": status, "retryable": retryable}
            assert error["data"] == data
        assert editor.prompt(session_id)["stopReason"] == "end_turn"


def test_without_a_model_a_session_opens_and_a_prompt_says_what_to_do(
    workspace: Path, tmp_path: Path
) -> None:
    env = {"OLLAMA_HOST": "127.0.0.1:1", "XDG_CACHE_HOME": str(tmp_path)}
    with Editor(workspace, env=env) as editor:
        session_id = editor.start()
        assert editor.request("agent/models") == {"currentModelId": None, "availableModels": []}
        error = editor.response(editor.send_prompt(session_id))["error"]
        assert error["code"] == -32003
        assert "agentls model pull" in error["message"]
        assert error["data"] == {"provider": "", "status": None, "retryable": False}


def test_one_prompt_at_a_time(workspace: Path, tmp_path: Path) -> None:
    env = scripted(tmp_path, {"text": "slow", "delay_s": 60}, {"text": "ok"})
    with Editor(workspace, env=env) as editor:
        session_id = editor.start()
        first = editor.send_prompt(session_id)
        second = editor.response(editor.send_prompt(session_id))
        assert second["error"]["code"] == -32002
        other = editor.new_session()
        assert editor.prompt(other)["stopReason"] == "end_turn"
        editor.notify("agent/session/cancel", {"sessionId": session_id})
        assert editor.response(first)["result"]["stopReason"] == "cancelled"


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        (
            "agent/session/prompt",
            {"sessionId": "x", "prompt": [{"type": "text", "text": "x"}]},
            -32001,
        ),
        ("agent/session/setMode", {"sessionId": "x", "modeId": "ask"}, -32001),
        ("agent/session/prompt", {"sessionId": "x", "prompt": []}, -32602),
        ("agent/session/prompt", {"sessionId": None}, -32602),
        ("agent/session/prompt", {"jsonrpc": "2.0", "id": 5, "method": "x"}, -32602),
        ("agent/session/prompt", [], -32602),
        ("agent/session/prompt", None, -32602),
        ("agent/session/new", {"mode": "yolo"}, -32602),
        ("agent/session/new", {"cwd": 5}, -32602),
        ("agent/session/new", {"cwd": "/"}, -32602),
        ("agent/session/new", {"cwd": "relative"}, -32602),
        ("agent/session/new", {"cwd": "/no/such/folder"}, -32602),
        ("agent/session/new", {"cwd": "/\0"}, -32602),
        ("agent/session/new", {"title": 5}, -32602),
        ("agent/search", {"query": "x"}, -32601),
    ],
)
def test_requests_that_cannot_be_served(
    server: Editor, method: str, params: object, code: int
) -> None:
    error = server.error(method, params)
    assert error["code"] == code
    assert "Traceback" not in str(error)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("server")
    with Editor(folder, env=scripted(folder)) as editor:
        editor.start()
        yield editor


def test_a_folder_that_only_begins_like_the_workspace_is_outside(
    workspace: Path, tmp_path: Path
) -> None:
    evil = tmp_path / "w-evil"
    evil.mkdir()
    (workspace / "link").symlink_to(evil)
    with Editor(workspace, env=scripted(tmp_path)) as editor:
        editor.start()
        for cwd in (evil, workspace / "link", workspace / ".." / "w-evil"):
            assert editor.error("agent/session/new", {"cwd": str(cwd)})["code"] == -32602


def test_options_that_do_not_fit_are_reported_and_the_rest_works(
    workspace: Path, tmp_path: Path
) -> None:
    with Editor(workspace, env=scripted(tmp_path, {"text": "ok"})) as editor:
        session_id = editor.start(options={"turn": {"maxIterations": "many"}, "nonsense": 1})
        (shown,) = (m for m in editor.messages if m.get("method") == "window/showMessage")
        assert shown["params"]["type"] == 2
        assert "turn.max_iterations" in shown["params"]["message"]
        assert "nonsense" in shown["params"]["message"]
        assert editor.prompt(session_id)["stopReason"] == "end_turn"


def test_a_document_out_of_step_is_neither_read_nor_written(
    workspace: Path, tmp_path: Path
) -> None:
    env = scripted(
        tmp_path,
        call("write_file", path="a.py", content="overwritten"),
        {"text": "ok", "expect": "no longer agree"},
    )
    with Editor(workspace, env=env) as editor:
        session_id = editor.start()
        buffer = editor.open(workspace / "a.py")
        buffer.version = -5
        editor.type(buffer, "late")
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
    assert (workspace / "a.py").read_text() == "x = 1\n"
