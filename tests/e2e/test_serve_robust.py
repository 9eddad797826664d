"""What a broken or hostile client, a large message or a noisy library does to `agentls serve`."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.frames import Json, RawServer, encode, frame, wait_until
from support.lsp_client import Editor, call, scripted

MB = 1024 * 1024


@pytest.fixture
def editor(tmp_path: Path) -> Any:
    with Editor(tmp_path, env=scripted(tmp_path, {"text": "ok"})) as editor:
        editor.start()
        yield editor


def error_code(message: Json) -> int:
    code: int = message["error"]["code"]
    return code


def test_frames_that_are_none_are_answered_and_survived(editor: Any) -> None:
    for data, code in (
        (frame(b"{"), -32700),
        (frame(b""), -32700),
        (frame(b"\xff\xfe"), -32700),
        (frame(b"[" * 50_000), -32700),
        (frame(b'{"jsonrpc":"2.0","id":1,"method":"shutdown","params":NaN}'), -32700),
        (frame(b'[{"jsonrpc":"2.0","id":1,"method":"shutdown"}]'), -32600),
        (frame(b'{"jsonrpc":"2.0","id":null,"method":"shutdown"}'), -32600),
        (frame(b'{"jsonrpc":"2.0"}'), -32600),
        (b"Content-Length: -1\r\n\r\n", -32700),
        (b"Content-Length: 1e3\r\n\r\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}\r\n\r\n', None),
        (b"x" * 100_000 + b"\r\n", None),
    ):
        editor.send_bytes(data)
        if code is not None:
            assert error_code(editor.response(None)) == code
    assert editor.request("agent/models")["currentModelId"]
    assert editor.prompt(editor.session_id)["stopReason"] == "end_turn"


def test_any_params_to_any_method_get_exactly_one_answer(editor: Any) -> None:
    """Shapes that break typed parsing, for every request, in one seeded run."""
    rng = random.Random(7)  # noqa: S311 - a seeded choice of test data
    values: list[object] = [
        None,
        True,
        0,
        -1,
        1.5,
        "",
        "x",
        [],
        {},
        [1],
        {"jsonrpc": "2.0"},
        "\ud800",
        2**70,
        {"jsonrpc": "2.0", "id": 1, "method": "shutdown", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "result": None},
    ]
    methods = [
        "agent/session/new",
        "agent/session/prompt",
        "agent/session/cancel",
        "agent/session/setMode",
        "agent/models",
        "initialize",
        "textDocument/didOpen",
        "textDocument/didChange",
        "workspace/didChangeWorkspaceFolders",
        "$/setTrace",
        "$/cancelRequest",
        "nonsense",
        "initialized",
    ]
    keys = ["sessionId", "prompt", "context", "cwd", "mode", "textDocument", "event", "jsonrpc"]
    sent = []
    for _ in range(300):
        params: object = rng.choice(values)
        if rng.random() < 0.7:
            params = {key: rng.choice(values) for key in rng.sample(keys, 3)}
        sent.append(editor.send_request(rng.choice(methods), params))
        editor.notify(rng.choice(methods), params)
    last = editor.send_request("agent/models", {})
    editor.response(last)
    answered = [m["id"] for m in editor.messages if "method" not in m and m["id"] in sent]
    while len(answered) < len(sent):
        answered.append(editor.wait_for(lambda m: m.get("id") in sent)["id"])
    assert sorted(answered) == sent
    assert "Traceback" not in json.dumps(editor.messages)
    assert editor.process.poll() is None


def test_a_large_message_costs_little_time_and_one_answer(tmp_path: Path) -> None:
    reply = {"text": "ok", "expect": "begin x+ end$"}
    with Editor(tmp_path, env=scripted(tmp_path, reply)) as editor:
        session_id = editor.start()
        buffer = editor.open(tmp_path / "script.jsonl", "line\n" * (4 * MB))
        editor.type(buffer, "x" * 20 * MB)
        start = time.monotonic()
        assert editor.prompt(session_id, f"begin {'x' * 20 * MB} end")["stopReason"] == "end_turn"
        assert time.monotonic() - start < 10
        body = b'{"jsonrpc":"2.0","id":"big","method":"x","params":{}}'
        editor.send_bytes(b"Content-Length: %d\r\n\r\n" % (257 * MB))
        for _ in range(257):
            editor.send_bytes(b" " * MB)
        assert error_code(editor.response(None)) == -32700
        editor.send_bytes(frame(body))
        assert error_code(editor.response("big")) == -32601
        assert psutil.Process(editor.process.pid).memory_info().rss < 400 * MB


def test_a_client_that_does_not_read_holds_the_model_back(tmp_path: Path) -> None:
    text = "".join(f"{no:09d}" for no in range(4_000_000))
    with Editor(tmp_path, env=scripted(tmp_path, {"text": text, "chunk": 300_000})) as editor:
        session_id = editor.start()
        prompt = editor.send_prompt(session_id)
        editor.stop_reading()
        process = psutil.Process(editor.process.pid)
        wait_until(lambda: idle(process), 20)
        held = process.memory_info().rss
        # It still takes in and obeys what comes.
        editor.notify("textDocument/didClose", {"textDocument": {"uri": "file:///none"}})
        wait_until(lambda: idle(process), 20)
        assert process.memory_info().rss < held + 20 * MB
        editor.resume_reading()
        assert editor.response(prompt, 60)["result"]["stopReason"] == "end_turn"
        chunks = [u for u in editor.updates() if u["sessionUpdate"] == "agent_message_chunk"]
        assert "".join(u["content"]["text"] for u in chunks) == text


def idle(process: psutil.Process) -> bool:
    """Whether it used no processor time for a moment."""
    before = process.cpu_times()
    time.sleep(0.3)
    return process.cpu_times()[:2] == before[:2]


def test_requests_ahead_of_reading_do_not_lock_up(tmp_path: Path) -> None:
    """A client that writes first and reads later, more than pipes hold."""
    with RawServer(tmp_path, read=False) as server:
        for no in range(20_000):
            server.send({"jsonrpc": "2.0", "id": f"r{no}", "method": "x" * 50, "params": {}})
        server.start_reading()
        server.response("r19999", 60)
        ids = [message["id"] for message in server.messages]
        assert ids == [f"r{no}" for no in range(20_000)]


NOISY = """
import os, subprocess, sys, threading, time

def shout():
    while True:
        print("a library says hello")
        sys.__stdout__.write("and so does its logger\\n"); sys.__stdout__.flush()
        os.write(1, b"and its C code\\n")
        subprocess.run(["echo", "and its child"], check=False)
        subprocess.run(["cat"], check=True)
        time.sleep(0.01)

import agentls.lsp.stdio as stdio
take = stdio.take_stdio

def take_and_shout():
    taken = take()
    threading.Thread(target=shout, daemon=True).start()
    return taken

stdio.take_stdio = take_and_shout
sys.argv = ["agentls", "serve"]
from agentls.__main__ import main
sys.exit(main())
"""


def test_printing_libraries_and_children_do_not_reach_the_protocol(tmp_path: Path) -> None:
    env = scripted(tmp_path, call("bash", command="echo from a tool; cat"), {"text": "ok"})
    with Editor(tmp_path, env=env, command=(sys.executable, "-c", NOISY)) as editor:
        session_id = editor.start()
        wait_until(lambda: "and its child" in editor.stderr(), 10)
        assert editor.prompt(session_id)["stopReason"] == "end_turn"
        wait_until(lambda: editor.stderr().count("and its child") > 3, 10)
        assert "a library says hello" in editor.stderr()
        assert "and its C code" in editor.stderr()
        assert editor.request("shutdown") is None


def test_a_closed_standard_error_is_no_obstacle(tmp_path: Path) -> None:
    shell = f'exec "{sys.executable}" -m agentls serve 2>&-'
    with RawServer(tmp_path, command=("/bin/sh", "-c", shell)) as server:
        server.initialize()
        server.notify("no/such/method")
        server.notify("textDocument/didOpen", [])
        assert server.request("shutdown") is None
        server.notify("exit")
        assert server.wait_for_exit(5)[0] == 0


def test_initialize_waits_for_nothing_heavy() -> None:
    heavy = ("pydantic", "httpx", "rich", "prompt_toolkit", "agentls.app", "agentls.settings")
    program = (
        "import sys, agentls.__main__, agentls.lsp.server, agentls.lsp.language_server\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ran.stdout.decode().strip() == "[]"


def test_nothing_listens(editor: Any) -> None:
    process = psutil.Process(editor.process.pid)
    editor.prompt(editor.session_id)
    everyone = [process, *process.children(recursive=True)]
    assert [
        c for one in everyone for c in one.net_connections("inet") if c.status == "LISTEN"
    ] == []


@pytest.mark.parametrize("arguments", [(), ("-vv",)])
def test_the_log_holds_nothing_that_was_said(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    reply = {"text": "TOP-SECRET-ANSWER"}
    env = {**scripted(tmp_path, reply), "OPENAI_API_KEY": "sk-TOP-SECRET-KEY"}
    with Editor(tmp_path, env=env, arguments=arguments) as editor:
        options = {"llm": {"openai": {"apiKey": "sk-TOP-SECRET-KEY"}}}
        session_id = editor.start(options=options)
        editor.open(tmp_path / "script.jsonl", "TOP-SECRET-TEXT")
        editor.notify("textDocument/didOpen", {"textDocument": {"text": "TOP-SECRET", "uri": 5}})
        editor.error("agent/session/prompt", {"sessionId": "TOP-SECRET", "prompt": "TOP-SECRET"})
        editor.error("agent/session/new", {"cwd": "/TOP-SECRET"})
        editor.prompt(session_id, "TOP-SECRET-QUESTION")
        editor.request("shutdown")
    assert "TOP-SECRET" not in editor.stderr()


def test_many_turns_leave_nothing_behind(tmp_path: Path) -> None:
    turns = 60
    replies = [
        r
        for _ in range(turns)
        for r in (call("read_file", path="a.txt"), {"text": "x" * 500, "chunk": 5})
    ]
    (tmp_path / "a.txt").write_text("a")
    with Editor(tmp_path, env=scripted(tmp_path, *replies)) as editor:
        editor.start()
        process = psutil.Process(editor.process.pid)

        def run(count: int) -> tuple[int, int]:
            for _ in range(count):
                assert editor.prompt(editor.new_session())["stopReason"] == "end_turn"
            return process.num_fds(), process.num_threads()

        descriptors, _ = run(20)
        now, threads = run(turns - 20)
        assert now <= descriptors
        # asyncio's pool grows up to its size as work happens to overlap; a leak would pass it.
        assert threads <= 4 + min(32, (os.cpu_count() or 1) + 4)


def test_messages_split_into_single_bytes_are_read(tmp_path: Path) -> None:
    with RawServer(tmp_path) as server:
        params: Json = {"processId": os.getpid(), "rootUri": None, "capabilities": {}}
        message = {"jsonrpc": "2.0", "id": "é", "method": "initialize", "params": params}
        for byte in encode(message):
            server.send_bytes(bytes([byte]))
        assert server.response("é")["result"]["serverInfo"]["name"] == "agentls"
