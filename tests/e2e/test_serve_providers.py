"""`agentls serve` with real providers' formats behind it: what an editor sees of each.

The servers run in the test's loop, the editor in a thread.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from support.cli_providers import CASE, KEY, Case, called_back, overloaded, refusal
from support.fake_server import STALL, FakeServer, Reply
from support.frames import Json
from support.lsp_client import Editor

SPOKEN = tuple(CASE[name] for name in ("anthropic", "gemini"))
each = pytest.mark.parametrize("case", SPOKEN, ids=lambda case: case.name)
ANTHROPIC, GEMINI, OPENAI = (CASE[name] for name in ("anthropic", "gemini", "openai"))

T = TypeVar("T")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    return folder


def environment(case: Case, server: FakeServer) -> dict[str, str]:
    return {
        "LLM_PROVIDER": case.name,
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        **case.environment(server),
    }


async def edited(
    workspace: Path, env: dict[str, str], work: Callable[[Editor], T], **options: Any
) -> T:
    """Do something with an editor, in a thread of its own."""

    def whole() -> T:
        with Editor(workspace, env=env, **options) as editor:
            try:
                return work(editor)
            finally:
                assert KEY not in str(editor.messages)
                assert KEY not in editor.stderr()

    return await asyncio.to_thread(whole)


def with_path(folder: Path) -> str:
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))


def texts(updates: list[Json], kind: str) -> str:
    return "".join(u["content"]["text"] for u in updates if u["sessionUpdate"] == kind)


def logged(editor: Editor, method: str = "window/logMessage") -> list[str]:
    return [m["params"]["message"] for m in editor.messages if m.get("method") == method]


def one_prompt(editor: Editor) -> tuple[Json, list[Json]]:
    result = editor.prompt(editor.start(), "what is x?")
    return result, editor.updates()


# --- what works ------------------------------------------------------------------------------


@each
async def test_a_turn_with_thinking_and_a_tool(workspace: Path, case: Case) -> None:
    replies = [
        case.called("read_file", path="a.py"),
        case.reply(case.wire.thought("Let me see.", "x is one.")),
    ]
    async with FakeServer(*replies) as server:
        result, updates = await edited(workspace, environment(case, server), one_prompt)
    kinds = [kind for kind, _ in itertools.groupby(u["sessionUpdate"] for u in updates)]
    assert kinds == [
        "tool_call",
        "usage_update",
        "tool_call_update",
        "agent_thought_chunk",
        "agent_message_chunk",
        "usage_update",
    ]
    assert texts(updates, "agent_thought_chunk") == "Let me see."
    assert texts(updates, "agent_message_chunk") == "x is one."
    call, *call_updates = [u for u in updates if "toolCallId" in u]
    assert (call["sessionUpdate"], call["name"]) == ("tool_call", "read_file")
    assert call["rawInput"] == {"path": "a.py"}
    assert [u["status"] for u in call_updates] == ["in_progress", "completed"]
    assert {u["toolCallId"] for u in call_updates} == {call["toolCallId"]}
    used = [u for u in updates if u["sessionUpdate"] == "usage_update"]
    costs = [case.cost_usd(7, 3), case.cost_usd(14, 6)]
    assert [u["cost"]["amount"] for u in used] == pytest.approx(costs)
    assert {u["cost"]["currency"] for u in used} == {"USD"}
    assert all(u["used"] == 10 and u["size"] >= 1_000_000 for u in used)
    assert result["stopReason"] == "end_turn"
    assert result["usage"]["totalTokens"] == 20
    name, arguments, content = called_back(case.wire.name, server.exchanges[1].json)
    assert (name, arguments) == ("read_file", {"path": "a.py"})
    assert "x = 1" in content


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai-responses"])
async def test_thinking_goes_back_sealed_to_whom_it_came_from(workspace: Path, name: str) -> None:
    case = CASE[name]
    replies = [case.reply(case.wire.thought("Secret.", "one")), case.said("two")]

    def twice(editor: Editor) -> None:
        session_id = editor.start()
        for text in ("first", "second"):
            assert editor.prompt(session_id, text)["stopReason"] == "end_turn"

    async with FakeServer(*replies) as server:
        await edited(workspace, environment(case, server), twice)
    sent = server.exchanges[1].json
    match name:
        case "anthropic":
            block = {"type": "thinking", "thinking": "Secret.", "signature": "c2ln"}
            assert sent["messages"][1]["content"][0] == block
        case "gemini":
            parts = sent["contents"][1]["parts"]
            assert "S" in [part.get("thoughtSignature") for part in parts]
        case _:
            thought = next(item for item in sent["input"] if item.get("type") == "reasoning")
            assert thought["encrypted_content"] == "sealed"
            assert (sent["store"], sent["include"]) == (False, ["reasoning.encrypted_content"])


async def test_which_model_answers(workspace: Path) -> None:
    async with FakeServer() as server:

        def models(editor: Editor) -> Any:
            editor.start()
            return editor.request("agent/models")

        env = environment(ANTHROPIC, server)
        assert (await edited(workspace, env, models))["currentModelId"] == (
            "anthropic/claude-sonnet-5-5"
        )
        env |= {"LLM_PROVIDER": "auto", "LLM_POOL": "anthropic,openai"} | OPENAI.environment(server)
        assert (await edited(workspace, env, models))["currentModelId"] == "pool/anthropic, openai"


async def test_an_editor_may_set_key_address_and_take_fields_out(workspace: Path) -> None:
    async with FakeServer(OPENAI.said("hi")) as server:
        section = {
            "baseUrl": f"{server.url}/v1",
            "apiKey": KEY,
            "headers": {"X-Team": "tools"},
            "extraBody": {"stream_options": None, "max_tokens": 12},
        }
        options = {"llm": {"provider": "openai", "model": "gpt-4.1", "openai": section}}

        def ask(editor: Editor) -> Json:
            return editor.prompt(editor.start(options=options))

        result = await edited(
            workspace, {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}, ask
        )
    assert result["stopReason"] == "end_turn"
    sent = server.exchanges[0]
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["x-team"] == "tools"
    assert "stream_options" not in sent.json
    assert (sent.json["model"], sent.json["max_tokens"]) == ("gpt-4.1", 12)


# --- what fails ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "retryable"), [(400, False), (401, False), (429, True), (529, True)]
)
@each
async def test_a_failure_is_an_error_with_its_facts(
    workspace: Path, case: Case, status: int, retryable: bool
) -> None:
    reply = refusal(status, f"Not for {KEY}.")

    def failing(editor: Editor) -> tuple[Json, list[str], Json]:
        session_id = editor.start()
        response = editor.response(editor.send_prompt(session_id))
        log = logged(editor)
        return response["error"], log, editor.prompt(session_id, "and now?")

    tries = 4 if retryable else 1
    async with FakeServer(*[reply] * tries, case.said("hi")) as server:
        error, log, after = await edited(workspace, environment(case, server), failing)
    assert error["code"] == -32003
    assert error["data"] == {"provider": case.name, "status": status, "retryable": retryable}
    assert error["message"].startswith(f"{case.name} answered {status}")
    if status == 401:
        assert f"{case.variable}_API_KEY" in error["message"]
    retries = [line for line in log if "Trying again" in line]
    assert len(retries) == tries - 1
    assert after["stopReason"] == "end_turn"


@each
async def test_a_reply_that_keeps_breaking_off(workspace: Path, case: Case) -> None:
    replies = [case.broken(word, cut=True) for word in ("One ", "two ", "three ", "four")]

    def failing(editor: Editor) -> tuple[Json, list[Json]]:
        response = editor.response(editor.send_prompt(editor.start()))
        return response["error"], editor.updates()

    async with FakeServer(*replies) as server:
        error, updates = await edited(workspace, environment(case, server), failing)
    assert error["code"] == -32003
    assert error["data"] == {"provider": case.name, "status": None, "retryable": True}
    assert texts(updates, "agent_message_chunk") == "One two three four"


async def test_a_missing_key_is_the_prompts_error(workspace: Path) -> None:
    def failing(editor: Editor) -> Json:
        response = editor.response(editor.send_prompt(editor.start()))
        error: Json = response["error"]
        return error

    env = {
        "LLM_PROVIDER": "gemini",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }
    error = await edited(workspace, env, failing)
    assert error["code"] == -32003
    assert error["data"] == {"provider": "gemini", "status": None, "retryable": False}
    assert "GEMINI_API_KEY" in error["message"]


async def test_retries_and_switches_reach_the_editors_log(workspace: Path) -> None:
    config = workspace / ".config" / "agentls" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[llm]\npool = ["anthropic", "gemini"]\norder = "listed"\n')

    def ask(editor: Editor) -> tuple[list[str], list[Json]]:
        editor.prompt(editor.start())
        return logged(editor), editor.updates()

    one = FakeServer(overloaded(), ANTHROPIC.said("hi"))
    two = FakeServer(refusal(503, "Down"))
    async with one, two:
        env = {
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            **ANTHROPIC.environment(one),
            **GEMINI.environment(two),
        }
        log, updates = await edited(workspace, env, ask)
    assert [line for line in log if "Trying" in line] == [
        "anthropic answered 529 (overloaded): Overloaded. Trying gemini (gemini-3.8-flash).",
        "gemini answered 503 (service unavailable): Down. Trying anthropic (claude-sonnet-5-5) "
        "again in 0.0 s (attempt 2 of 2).",
    ]
    assert texts(updates, "agent_message_chunk") == "hi"
    (used,) = [u for u in updates if u["sessionUpdate"] == "usage_update"]
    assert used["cost"]["amount"] == pytest.approx(ANTHROPIC.cost_usd(7, 3))


@pytest.mark.parametrize("way", ["agent/session/cancel", "$/cancelRequest"])
@each
async def test_cancelling_closes_the_models_connection(
    workspace: Path, case: Case, way: str
) -> None:
    begun = case.broken("Half an", cut=False)
    stalled = Reply([*begun.steps, STALL], headers=begun.headers)
    loop = asyncio.get_running_loop()
    async with FakeServer(stalled, case.said("and on")) as server:

        def gone() -> None:
            exchange = server.exchanges[0]
            waiting = asyncio.wait_for(exchange.gone.wait(), 2)
            asyncio.run_coroutine_threadsafe(waiting, loop).result(3)

        def cancel(editor: Editor) -> tuple[Json, Json]:
            session_id = editor.start()
            prompt = editor.send_prompt(session_id)
            editor.wait_for(lambda m: "Half an" in str(m.get("params", "")))
            editor.notify(way, {"sessionId": session_id} if "session" in way else {"id": prompt})
            gone()
            return editor.response(prompt, 2)["result"], editor.prompt(session_id, "go on")

        cancelled, after = await edited(workspace, environment(case, server), cancel)
    assert cancelled["stopReason"] == "cancelled"
    assert after["stopReason"] == "end_turn"
    assert "Half an" in server.exchanges[1].body.decode()


# --- code from outside -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "llm",
    [
        {"provider": "custom", "custom": {"function": "evil:answer"}},
        {"provider": "auto", "custom": {"function": "evil:answer", "model": "x"}},
        {"pool": ["custom"], "custom": {"function": "evil:answer"}},
        {"provider": "custom", "custom": "evil:answer"},
    ],
)
async def test_an_editors_options_cannot_name_a_function(workspace: Path, llm: Json) -> None:
    # Where a cloned repository could put it: the folder the server is started in.
    (workspace / "evil.py").write_text(
        "from pathlib import Path\n"
        f"Path({str(workspace / 'ran')!r}).touch()\n"
        "def answer(question: str) -> str:\n    return 'evil'\n"
    )

    def ask(editor: Editor) -> tuple[Json, list[str]]:
        response = editor.response(editor.send_prompt(editor.start(options={"llm": llm})))
        return response, logged(editor, "window/showMessage")

    env = {
        "PYTHONPATH": with_path(workspace),
        "OLLAMA_HOST": "http://127.0.0.1:9",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    }
    response, shown = await edited(workspace, env, ask)
    assert response["error"]["code"] == -32003
    assert any("llm.custom was ignored" in message for message in shown)
    assert not (workspace / "ran").exists()


async def test_the_users_own_file_can(workspace: Path, tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "mine.py").write_text("def answer(question: str) -> str:\n    return 'mine'\n")
    config = workspace / ".config" / "agentls" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[llm]\nprovider = "custom"\n[llm.custom]\nfunction = "mine:answer"\n')
    result, updates = await edited(workspace, {"PYTHONPATH": with_path(modules)}, one_prompt)
    assert result["stopReason"] == "end_turn"
    assert texts(updates, "agent_message_chunk") == "mine"
