"""`agentls serve` as an editor sees it: a real process, the scripted model, whole results."""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agentls.core.events import Event
from agentls.lsp.convert import Updates
from support.frames import Json, clean_environment
from support.lsp_client import Editor, call, scripted, selected

READ_AND_EDIT = (
    {"thinking": "Let me look.", **call("read_file", path="a.py")},
    call("edit_file", path="a.py", old_text="x = 1", new_text="x = 2"),
    {"text": "x is 2 now.", "chunk": 3},
)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    return folder


def without_usage(updates: list[Json]) -> list[Json]:
    """Updates with text joined as far as nothing else comes in between, and without counts."""
    joined: list[Json] = []
    for update in updates:
        kind = update["sessionUpdate"]
        if kind == "usage_update":
            continue
        if kind.endswith("_chunk") and joined and joined[-1]["sessionUpdate"] == kind:
            text = joined[-1]["content"]["text"] + update["content"]["text"]
            joined[-1] = {**joined[-1], "content": {"type": "text", "text": text}}
        else:
            joined.append(update)
    return joined


def chunk(text: str, kind: str = "agent_message_chunk") -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def in_progress(call_id: str) -> Json:
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress"}


def test_reading_and_editing_gives_exactly_these_updates(workspace: Path, tmp_path: Path) -> None:
    with Editor(workspace, env=scripted(tmp_path, *READ_AND_EDIT)) as editor:
        session_id = editor.start()
        result = editor.prompt(session_id)
        updates = editor.updates()
    path = str(workspace / "a.py")
    read, edit = (u["toolCallId"] for u in updates if u["sessionUpdate"] == "tool_call")
    edited = next(u for u in updates if u.get("toolCallId") == edit and "content" in u)
    assert without_usage(updates) == [
        chunk("Let me look.", "agent_thought_chunk"),
        {
            "sessionUpdate": "tool_call",
            "toolCallId": read,
            "name": "read_file",
            "title": "read_file a.py",
            "kind": "read",
            "status": "pending",
            "rawInput": {"path": "a.py"},
            "locations": [{"path": path}],
        },
        in_progress(read),
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": read,
            "status": "completed",
            "content": [{"type": "content", "content": {"type": "text", "text": "x = 1"}}],
        },
        {
            "sessionUpdate": "tool_call",
            "toolCallId": edit,
            "name": "edit_file",
            "title": "edit_file a.py",
            "kind": "edit",
            "status": "pending",
            "rawInput": {"path": "a.py", "old_text": "x = 1", "new_text": "x = 2"},
            "locations": [{"path": path}],
        },
        in_progress(edit),
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": edit,
            "status": "completed",
            "content": [
                edited["content"][0],
                {"type": "diff", "path": path, "oldText": "x = 1\n", "newText": "x = 2\n"},
            ],
        },
        chunk("x is 2 now."),
    ]
    assert [u for u in updates if u["sessionUpdate"] == "usage_update"][-1] == updates[-1]
    assert result["stopReason"] == "end_turn"
    assert set(result) == {"stopReason", "usage"}
    assert result["usage"]["totalTokens"] == (
        result["usage"]["inputTokens"] + result["usage"]["outputTokens"]
    )
    assert (workspace / "a.py").read_text() == "x = 2\n"
    assert [method for method, _ in editor.asked] == ["agent/session/requestPermission"]


def test_the_command_line_gives_the_same_updates(workspace: Path, tmp_path: Path) -> None:
    env = scripted(tmp_path, *READ_AND_EDIT)
    with Editor(workspace, env=env) as editor:
        editor.prompt(editor.start())
        updates = editor.updates()
    (workspace / "a.py").write_text("x = 1\n")
    ran = subprocess.run(
        [sys.executable, "-m", "agentls", "ask", "--yes", "--json", "go"],
        cwd=workspace,
        env={**clean_environment(workspace), **env},
        capture_output=True,
        check=True,
        timeout=60,
    )
    kinds: dict[str, Any] = {"read_file": "read", "edit_file": "edit"}
    convert = Updates(workspace, kinds.__getitem__, 0)
    *events, _ = ran.stdout.decode().strip().split("\n")
    adapter: TypeAdapter[Event] = TypeAdapter(Event)
    from_events = [update for line in events for update in convert.of(adapter.validate_json(line))]
    assert without_usage(from_events) == without_usage(updates)


def test_what_a_new_session_offers(workspace: Path, tmp_path: Path) -> None:
    with Editor(workspace, env=scripted(tmp_path), arguments=["--mode", "plan"]) as editor:
        editor.start()
        models = {
            "currentModelId": "scripted/script.jsonl",
            "availableModels": [{"modelId": "scripted/script.jsonl", "name": "script.jsonl"}],
        }
        offered = editor.request("agent/session/new", {"cwd": str(workspace), "title": "T"})
        assert offered.pop("sessionId")
        assert offered["models"] == models
        assert offered["modes"]["currentModeId"] == "plan"
        assert [mode["id"] for mode in offered["modes"]["availableModes"]] == [
            "plan",
            "ask",
            "edit",
        ]
        nothings: list[object] = [None, {}, []]
        for nothing in nothings:
            assert editor.request("agent/models", nothing) == models
        edit = editor.request("agent/session/new", {"mode": "edit"})
        assert edit["modes"]["currentModeId"] == "edit"


def test_the_mode_of_a_session_can_be_changed(workspace: Path, tmp_path: Path) -> None:
    edit = call("edit_file", path="a.py", old_text="x = 1", new_text="x = 2")
    with Editor(workspace, env=scripted(tmp_path, edit, {"text": "no"})) as editor:
        session_id = editor.start()
        params = {"sessionId": session_id, "modeId": "plan"}
        assert editor.request("agent/session/setMode", params) == {}
        assert editor.updates() == [
            {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}
        ]
        editor.prompt(session_id)
    assert (workspace / "a.py").read_text() == "x = 1\n"
    assert editor.asked == []


@pytest.mark.parametrize(
    ("permission", "text"), [("allow_once", "x = 2\n"), ("reject_once", "x = 1\n")]
)
def test_a_person_decides(workspace: Path, tmp_path: Path, permission: str, text: str) -> None:
    edit = call("edit_file", path="a.py", old_text="x = 1", new_text="x = 2")
    env = scripted(tmp_path, edit, {"text": "ok"})
    with Editor(workspace, env=env, permission=permission) as editor:
        assert editor.prompt(editor.start())["stopReason"] == "end_turn"
    assert (workspace / "a.py").read_text() == text
    statuses = [u.get("status") for u in editor.updates() if "toolCallId" in u]
    end = "completed" if permission == "allow_once" else "failed"
    assert statuses == ["pending", "in_progress", end]


def test_a_client_without_the_method_is_asked_by_a_message_box(
    workspace: Path, tmp_path: Path
) -> None:
    env = scripted(tmp_path, call("bash", command="touch made"), {"text": "ok"})
    with Editor(workspace, env=env) as editor:
        editor.answers["window/showMessageRequest"] = lambda p: p["actions"][0]
        session_id = editor.start(options={"capabilities": {}})
        editor.prompt(session_id)
    assert (workspace / "made").exists()
    ((method, params),) = editor.asked
    assert method == "window/showMessageRequest"
    assert "touch made" in params["message"]


def test_an_error_in_place_of_an_answer_is_a_no(workspace: Path, tmp_path: Path) -> None:
    env = scripted(tmp_path, call("bash", command="touch made"), {"text": "ok"})
    with Editor(workspace, env=env, permission=None) as editor:
        session_id = editor.start()
        prompt = editor.send_prompt(session_id)
        asked = editor.call_from_server("agent/session/requestPermission")
        error = {"code": -32601, "message": "Method not found"}
        editor.send({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        assert editor.response(prompt)["result"]["stopReason"] == "end_turn"
    assert not (workspace / "made").exists()


def test_an_open_buffer_is_read_and_edited_and_the_disk_left_alone(
    workspace: Path, tmp_path: Path
) -> None:
    env = scripted(
        tmp_path,
        call("read_file", path="a.py"),
        {**call("edit_file", path="a.py", old_text="y = 1", new_text="y = 2"), "expect": "y = 1"},
        call("edit_file", path="a.py", old_text="y = 2", new_text="y = 3"),
        {"text": "ok"},
    )
    with Editor(workspace, env=env) as editor:
        session_id = editor.start()
        buffer = editor.open(workspace / "a.py", "\N{GRINNING FACE}\x0c y = 1\r\nend")
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
        assert (buffer.text, buffer.version) == ("\N{GRINNING FACE}\x0c y = 3\r\nend", 3)
        sent = [params for method, params in editor.asked if method == "workspace/applyEdit"]
    assert (workspace / "a.py").read_text() == "x = 1\n"
    assert sent[0]["edit"] == {
        "documentChanges": [
            {
                "textDocument": {"uri": buffer.uri, "version": 1},
                "edits": [
                    {
                        "range": {
                            "start": {"line": 0, "character": 8},
                            "end": {"line": 0, "character": 9},
                        },
                        "newText": "2",
                    }
                ],
            }
        ]
    }


def test_typing_while_the_question_is_open_makes_the_edit_stale(
    workspace: Path, tmp_path: Path
) -> None:
    env = scripted(
        tmp_path,
        call("read_file", path="a.py"),
        call("edit_file", path="a.py", old_text="x = 1", new_text="x = 2"),
        {"text": "ok", "expect": "(?i)read it again"},
    )
    with Editor(workspace, env=env) as editor:
        session_id = editor.start()
        buffer = editor.open(workspace / "a.py")
        allow = editor.answers["agent/session/requestPermission"]

        def type_and_allow(params: Any) -> object:
            editor.type(buffer, "x = 1  # mine\n")
            return allow(params)

        editor.answers["agent/session/requestPermission"] = type_and_allow
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
        assert buffer.text == "x = 1  # mine\n"
    assert (workspace / "a.py").read_text() == "x = 1\n"


def test_links_selections_and_images_reach_the_model(workspace: Path, tmp_path: Path) -> None:
    (workspace / "b.py").write_text("b = 'linked'\n")
    reply = {"text": "ok", "expect": r"explain.*\[b\.py\].*b = 'linked'.*a\.py:1-1\nx =\n```"}
    with Editor(workspace, env=scripted(tmp_path, reply)) as editor:
        session_id = editor.start()
        uri = (workspace / "b.py").as_uri()
        data = base64.b64encode(b"png").decode()
        prompt = [
            {"type": "text", "text": "explain"},
            {"type": "image", "mimeType": "image/png", "data": data},
            {"type": "resource_link", "uri": uri, "name": "b.py"},
        ]
        where = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
        place = {"textDocument": {"uri": (workspace / "a.py").as_uri()}, "range": where}
        result = editor.prompt(session_id, prompt=prompt, context=place)
        assert result["stopReason"] == "end_turn"


def test_the_iteration_limit_is_an_end_with_a_notice(workspace: Path, tmp_path: Path) -> None:
    env = scripted(tmp_path, call("read_file", path="a.py"), {"text": "later"})
    with Editor(workspace, env=env) as editor:
        session_id = editor.start(options={"turn": {"maxIterations": 1}})
        assert editor.prompt(session_id)["stopReason"] == "max_turn_requests"
        assert "1" in editor.updates()[-1]["content"]["text"]
        assert editor.prompt(session_id)["stopReason"] == "end_turn"


def test_each_folder_of_a_workspace_has_its_sessions(workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "deep").mkdir(parents=True)
    (other / "o.txt").write_text("in the other folder")
    env = scripted(
        tmp_path, call("read_file", path="o.txt"), {"text": "ok", "expect": "in the other"}
    )
    folders = [{"uri": folder.as_uri(), "name": folder.name} for folder in (workspace, other)]
    with Editor(workspace, env=env) as editor:
        editor.start(workspaceFolders=folders)
        session_id = editor.new_session(cwd=str(other / "deep"))
        assert editor.prompt(session_id)["stopReason"] == "end_turn"


def test_plan_mode_holds_back_the_turn_that_runs(workspace: Path, tmp_path: Path) -> None:
    env = scripted(
        tmp_path,
        call("write_file", path="first.txt", content="x"),
        call("write_file", path="second.txt", content="x"),
        {"text": "ok", "expect": "plan mode"},
    )
    with Editor(workspace, env=env) as editor:
        session_id = editor.start()

        def switch_and_allow(_: object) -> Json:
            editor.send_request(
                "agent/session/setMode", {"sessionId": session_id, "modeId": "plan"}
            )
            return selected("allow_once")

        editor.answers["agent/session/requestPermission"] = switch_and_allow
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
        assert len(editor.asked) == 1
    # The one the user said yes to is theirs; whatever comes after the switch is not run.
    assert (workspace / "first.txt").exists()
    assert not (workspace / "second.txt").exists()


def test_a_client_that_opened_no_folder_may_name_one(workspace: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    env = scripted(tmp_path, call("read_file", path="a.py"), {"text": "ok", "expect": "x = 1"})
    with Editor(elsewhere, env=env) as editor:
        editor.initialize()
        session_id = editor.new_session(cwd=str(workspace))
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
