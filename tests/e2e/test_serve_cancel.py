"""Cancelling a prompt: by either way, at any moment, quiet afterwards, and the next one works."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from support.frames import Json, wait_until
from support.lsp_client import Editor, call, scripted

WAYS = ["agent/session/cancel", "$/cancelRequest"]


def cancel(editor: Editor, way: str, session_id: str, prompt: int) -> None:
    editor.notify(way, {"sessionId": session_id} if "session" in way else {"id": prompt})


def is_update(message: Json, **wanted: Any) -> bool:
    update = message.get("params", {}).get("update", {}) if "method" in message else {}
    return bool(update) and all(update.get(key) == value for key, value in wanted.items())


@pytest.mark.parametrize("way", WAYS)
def test_in_the_middle_of_the_answer(tmp_path: Path, way: str) -> None:
    env = scripted(tmp_path, {"text": "x" * 200_000, "chunk": 1}, {"text": "and on"})
    with Editor(tmp_path, env=env) as editor:
        session_id = editor.start()
        prompt = editor.send_prompt(session_id)
        for _ in range(3):
            editor.wait_for(lambda m: is_update(m, sessionUpdate="agent_message_chunk"))
        start = time.monotonic()
        cancel(editor, way, session_id, prompt)
        result = editor.response(prompt)["result"]
        assert time.monotonic() - start < 1
        assert result["stopReason"] == "cancelled"
        assert set(result["usage"]) >= {"inputTokens", "outputTokens", "totalTokens"}
        before = len(editor.updates())
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
        kinds = [update["sessionUpdate"] for update in editor.updates()[before:]]
        assert kinds == ["agent_message_chunk", "usage_update"]


@pytest.mark.parametrize("way", WAYS)
def test_while_the_model_is_silent(tmp_path: Path, way: str) -> None:
    env = scripted(tmp_path, {"text": "x", "delay_s": 300}, {"text": "and on"})
    with Editor(tmp_path, env=env) as editor:
        session_id = editor.start()
        prompt = editor.send_prompt(session_id)
        editor.new_session()
        cancel(editor, way, session_id, prompt)
        assert editor.response(prompt, 1)["result"]["stopReason"] == "cancelled"
        assert editor.prompt(session_id)["stopReason"] == "end_turn"


@pytest.mark.parametrize("way", WAYS)
def test_in_the_middle_of_a_command(tmp_path: Path, way: str) -> None:
    command = "echo $$ > p; mv p pid; sleep 300"
    reply = {"text": "and on", "expect": "and now\\?"}
    with Editor(tmp_path, env=scripted(tmp_path, call("bash", command=command), reply)) as editor:
        session_id = editor.start()
        prompt = editor.send_prompt(session_id)
        started = editor.wait_for(lambda m: is_update(m, status="in_progress"))
        wait_until((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
        cancel(editor, way, session_id, prompt)
        assert editor.response(prompt, 2)["result"]["stopReason"] == "cancelled"
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), 2)
        # The call does not look as if it still ran.
        call_id = started["params"]["update"]["toolCallId"]
        ends = [u["status"] for u in editor.updates() if u.get("toolCallId") == call_id]
        assert ends == ["pending", "in_progress", "failed"]
        assert editor.prompt(session_id, "and now?")["stopReason"] == "end_turn"


def test_an_impatient_user_gets_the_answer_when_the_command_is_gone(tmp_path: Path) -> None:
    command = "trap '' TERM; echo $$ > p; mv p pid; while :; do sleep 300; done"
    with Editor(tmp_path, env=scripted(tmp_path, call("bash", command=command))) as editor:
        session_id = editor.start()
        prompt = editor.send_prompt(session_id)
        editor.wait_for(lambda m: is_update(m, status="in_progress"))
        wait_until((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
        for way in WAYS * 3:
            cancel(editor, way, session_id, prompt)
            # Answered in between, so that each cancellation takes effect by itself.
            editor.request("agent/models")
        assert editor.response(prompt, 2)["result"]["stopReason"] == "cancelled"
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("way", WAYS)
def test_while_a_question_is_open(tmp_path: Path, way: str) -> None:
    env = scripted(tmp_path, call("bash", command="touch made"), {"text": "and on"})
    with Editor(tmp_path, env=env, permission=None) as editor:
        session_id = editor.start()
        prompt = editor.send_prompt(session_id)
        asked = editor.call_from_server("agent/session/requestPermission")
        cancel(editor, way, session_id, prompt)
        withdrawn = editor.call_from_server("$/cancelRequest", 1)
        assert withdrawn["params"] == {"id": asked["id"]}
        assert editor.response(prompt, 1)["result"]["stopReason"] == "cancelled"
        # The late yes changes nothing, and harms nothing.
        editor.answer(asked, {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
        assert editor.stderr() == ""
    assert not (tmp_path / "made").exists()


def test_before_and_after(tmp_path: Path) -> None:
    with Editor(tmp_path, env=scripted(tmp_path, *[{"text": "x"}] * 40)) as editor:
        session_id = editor.start()
        editor.notify("agent/session/cancel", {"sessionId": session_id})
        editor.notify("agent/session/cancel", {"sessionId": "unknown"})
        editor.notify("$/cancelRequest", {"id": 99})
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
        for _ in range(20):
            # Both in one write: the cancellation may meet the prompt at any point of its life.
            prompt = editor.send_prompt(session_id)
            editor.notify("$/cancelRequest", {"id": prompt})
            editor.notify("agent/session/cancel", {"sessionId": session_id})
            response = editor.response(prompt)
            assert response["result"]["stopReason"] in ("cancelled", "end_turn")
            answers = [m for m in editor.messages if m.get("id") == prompt and "method" not in m]
            assert len(answers) == 1
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
        ids = [m["id"] for m in editor.messages if "method" not in m]
        assert len(ids) == len(set(ids))


def test_shutdown_cancels_and_still_answers(tmp_path: Path) -> None:
    with Editor(tmp_path, env=scripted(tmp_path, {"text": "x", "delay_s": 300})) as editor:
        session_id = editor.start()
        prompt = editor.send_prompt(session_id)
        assert editor.request("shutdown") is None
        assert editor.response(prompt)["result"]["stopReason"] == "cancelled"
