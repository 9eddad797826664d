from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types
from lsprotocol.converters import get_converter

from agentls.core.errors import (
    Denied,
    NoResponse,
    RateLimited,
    SessionBusy,
    SettingsError,
    UnknownSession,
    UsageError,
)
from agentls.lsp.failures import RpcError
from agentls.lsp.frames import BadFrame
from support.lsp_wire import INITIALIZE, Json, Wire, error


@pytest.fixture
async def wire(tmp_path: Path) -> Wire:
    return Wire(tmp_path)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", error(None, -32700, "The message is not valid JSON.")),
        (b"\xff", error(None, -32700, "The message is not valid JSON.")),
        (b"", error(None, -32700, "The message is not valid JSON.")),
        (b"[" * 100_000, error(None, -32700, "The message is not valid JSON.")),
        (b'{"id": NaN}', error(None, -32700, "The message is not valid JSON.")),
        (b"[]", error(None, -32600, "A message has to be a JSON object.")),
        (b"null", error(None, -32600, "A message has to be a JSON object.")),
        (b"{}", error(None, -32600, "A message needs a method or a result.")),
        (b'{"id": [1]}', error(None, -32600, "A message needs a method or a result.")),
        (b'{"id": 7}', error(7, -32600, "A message needs a method or a result.")),
    ],
)
async def test_what_is_no_message_is_answered(wire: Wire, body: bytes, expected: Json) -> None:
    wire.server.protocol.receive(body)
    assert await wire.settle() == [expected]


async def test_a_bad_frame_is_answered_without_an_id(wire: Wire) -> None:
    wire.server.protocol.receive(BadFrame("Bytes between two frames were skipped."))
    assert await wire.settle() == [error(None, -32700, "Bytes between two frames were skipped.")]


@pytest.mark.parametrize("msg_id", [None, True, 1.5, [], {}])
async def test_an_id_that_is_none_is_refused(wire: Wire, msg_id: object) -> None:
    wire.request(msg_id, "shutdown")
    assert await wire.settle() == [error(None, -32600, "An id has to be a string or an integer.")]


@pytest.mark.parametrize("change", [{"jsonrpc": "1.0"}, {"jsonrpc": None}, {"method": 5}])
async def test_another_envelope_is_refused_with_its_id(wire: Wire, change: Json) -> None:
    wire.receive({"jsonrpc": "2.0", "id": 1, "method": "shutdown", **change})
    assert await wire.settle() == [error(1, -32600, "This is not a JSON-RPC 2.0 request.")]


async def test_nothing_but_initialize_comes_first(wire: Wire) -> None:
    wire.request(1, "shutdown")
    wire.request(2, "agent/session/new", {})
    wire.request(3, "no/such/method")
    wire.notify("textDocument/didOpen", {})
    expected = "`initialize` has to come first."
    assert await wire.settle() == [error(no, -32002, expected) for no in (1, 2, 3)]


async def test_initialize_says_what_is_served_and_comes_once(wire: Wire) -> None:
    wire.request(1, "initialize", INITIALIZE)
    wire.request(2, "initialize", INITIALIZE)
    first, second = await wire.settle()
    assert first["result"]["capabilities"] == {
        "positionEncoding": "utf-16",
        "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
    }
    assert first["result"]["serverInfo"]["name"] == "agentls"
    # Another reading of LSP agrees that this is one.
    typed = get_converter().structure(first["result"], types.InitializeResult)
    assert typed.capabilities.position_encoding == types.PositionEncodingKind.Utf16
    assert second == error(2, -32600, "The server is initialized already.")


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"processId": "12"}, "processId"),
        ({"processId": True}, "processId"),
        ({"rootUri": 5}, "rootUri"),
        ({"capabilities": None}, "capabilities"),
        ({"capabilities": []}, "capabilities"),
        ({"workspaceFolders": [{"uri": None, "name": "x"}]}, "workspaceFolders[0].uri"),
    ],
)
async def test_a_malformed_initialize_is_refused_and_may_be_repeated(
    wire: Wire, change: Json, place: str
) -> None:
    wire.request(1, "initialize", {**INITIALIZE, **change})
    wire.request(2, "initialize", INITIALIZE)
    refused, served = await wire.settle()
    assert refused["error"]["code"] == -32602
    assert f"$.params.{place}" in refused["error"]["message"]
    assert "result" in served


async def test_an_editor_newer_than_this_server_is_no_error(wire: Wire) -> None:
    capabilities = {
        "textDocument": {"completion": {"completionItem": {"tagSupport": {"valueSet": ["new"]}}}},
        "general": {"positionEncodings": ["utf-64", "utf-32", "utf-8"]},
        "workspace": 5,
    }
    wire.request(1, "initialize", {**INITIALIZE, "capabilities": capabilities})
    (served,) = await wire.settle()
    assert served["result"]["capabilities"]["positionEncoding"] == "utf-32"


async def test_after_shutdown_only_exit_is_served(wire: Wire) -> None:
    wire.initialize()
    wire.request(1, "shutdown", {})
    wire.request(2, "agent/models", {})
    wire.request(3, "shutdown")
    refused = "The server was shut down."
    assert await wire.settle() == [
        {"id": 1, "result": None},
        error(2, -32600, refused),
        error(3, -32600, refused),
    ]
    wire.notify("exit")
    assert await wire.server._left == 0


async def test_exit_without_shutdown_is_a_failure(wire: Wire) -> None:
    wire.notify("exit")
    assert await wire.server._left == 1


async def test_unknown_requests_are_answered_and_unknown_notifications_ignored(wire: Wire) -> None:
    wire.initialize()
    wire.request("a", "no/such\nmethod" + "x" * 200)
    wire.request("b", "$/unknown")
    wire.request("c", "workspace/executeCommand", {"command": "x"})
    wire.request("d", "notebookDocument/didOpen", {})
    wire.notify("no/such/method")
    wire.notify("$/unknown")
    responses = await wire.settle()
    assert [(r["id"], r["error"]["code"]) for r in responses] == [(name, -32601) for name in "abcd"]
    assert "\n" not in responses[0]["error"]["message"]
    assert len(responses[0]["error"]["message"]) < 120


async def test_a_request_without_an_id_is_not_carried_out(wire: Wire) -> None:
    wire.notify("initialize", INITIALIZE)
    wire.initialize()
    for method in ("shutdown", "initialize", "agent/session/new", "agent/session/prompt"):
        wire.notify(method, {})
    assert await wire.settle() == []
    assert wire.server.protocol.phase.name == "running"


async def test_a_notification_that_fails_is_logged_and_answered_by_nothing(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    wire.initialize()
    failure = (ValueError("sk-secret"), UnknownSession("There is no session."))

    async def handler(params: Json) -> object:
        raise failure[bool(params)]

    wire.serve("agent/test", handler)
    wire.notify("agent/test", {"a": 1})
    wire.notify("agent/test")
    assert await wire.settle() == []
    assert "not carried out: There is no session." in caplog.text
    assert "sk-secret" not in caplog.text


async def test_our_own_parameters_arrive_as_they_were_sent(wire: Wire) -> None:
    wire.initialize()
    seen: list[Json] = []

    async def handler(params: Json) -> object:
        seen.append(params)
        return params

    wire.serve("agent/test", handler)
    params = {"jsonrpc": "2.0", "id": 7, "inner": {"jsonrpc": "2.0", "method": "x"}, "n": None}
    wire.request(1, "agent/test", params)
    wire.request(2, "agent/test")
    wire.request(3, "agent/test", [1])
    responses = sorted(await wire.settle(), key=lambda response: response["id"])
    assert seen == [params, {}]
    assert responses == [
        {"id": 1, "result": params},
        {"id": 2, "result": {}},
        error(3, -32602, "agent/test: params have to be an object."),
    ]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (UnknownSession("none"), {"code": -32001, "message": "none"}),
        (SessionBusy("busy", hint="Wait."), {"code": -32002, "message": "busy Wait."}),
        (
            RateLimited("slow down", provider="p", status=429),
            {
                "code": -32003,
                "message": "slow down",
                "data": {"provider": "p", "status": 429, "retryable": True},
            },
        ),
        (
            SettingsError("no such provider"),
            {
                "code": -32003,
                "message": "no such provider",
                "data": {"provider": "", "status": None, "retryable": False},
            },
        ),
        (Denied("no"), {"code": -32004, "message": "no"}),
        (UsageError("bad"), {"code": -32602, "message": "bad"}),
        (
            NoResponse("silence"),
            {"code": -32803, "message": "silence", "data": {"code": "no_response"}},
        ),
        (
            RpcError(-32099, "as it is", {"a": 1}),
            {"code": -32099, "message": "as it is", "data": {"a": 1}},
        ),
        (
            ValueError("key sk-secret"),
            {"code": -32603, "message": "Internal error (ValueError). The server's log says more."},
        ),
    ],
)
async def test_failures_have_their_codes_and_tell_no_secret(
    wire: Wire, caplog: pytest.LogCaptureFixture, raised: Exception, expected: Json
) -> None:
    wire.initialize()

    async def handler(params: Json) -> object:
        raise raised

    wire.serve("agent/test", handler)
    wire.request(1, "agent/test")
    assert await wire.settle() == [{"id": 1, "error": expected}]
    assert "sk-secret" not in caplog.text
    if isinstance(raised, ValueError):
        assert "in handler" in caplog.text


async def test_a_result_that_is_no_json_is_still_answered(wire: Wire) -> None:
    wire.initialize()

    async def handler(params: Json) -> object:
        return {"x": float("nan") if params else object}

    wire.serve("agent/test", handler)
    wire.request(1, "agent/test")
    wire.request(2, "agent/test", {"nan": True})
    assert [r["error"]["code"] for r in await wire.settle()] == [-32603, -32603]


async def test_cancelling_before_during_and_after_gives_one_response(wire: Wire) -> None:
    wire.initialize()
    started = asyncio.Event()

    async def handler(params: Json) -> object:
        started.set()
        if params.get("quick"):
            return "done"
        await asyncio.Event().wait()
        return None

    wire.serve("agent/test", handler)
    wire.request(1, "agent/test")
    wire.notify("$/cancelRequest", {"id": 1})
    cancelled = "The request was cancelled."
    assert await wire.settle() == [error(1, -32800, cancelled)]
    # It had its first step all the same, and with that the chance to answer something better.
    assert started.is_set()
    started.clear()
    wire.request(2, "agent/test")
    await started.wait()
    wire.notify("$/cancelRequest", {"id": 2})
    assert await wire.settle() == [error(2, -32800, cancelled)]
    wire.request(3, "agent/test", {"quick": True})
    assert await wire.settle() == [{"id": 3, "result": "done"}]
    for msg_id in (1, 2, 3, "unknown", None, [1]):
        wire.notify("$/cancelRequest", {"id": msg_id})
    wire.notify("$/cancelRequest")
    assert await wire.settle() == []


async def test_cancelling_again_does_not_interrupt_the_cleaning_up(wire: Wire) -> None:
    wire.initialize()
    cleaned = asyncio.Event()

    async def handler(_: Json) -> object:
        try:
            await asyncio.Event().wait()
        finally:
            await cleaned.wait()
        return None

    wire.serve("agent/test", handler)
    wire.request(1, "agent/test")
    for _ in range(3):
        wire.notify("$/cancelRequest", {"id": 1})
        assert await wire.settle() == []
    cleaned.set()
    assert await wire.settle() == [error(1, -32800, "The request was cancelled.")]


async def test_an_id_in_use_is_refused_and_the_first_request_is_still_answered(wire: Wire) -> None:
    wire.initialize()
    go = asyncio.Event()

    async def handler(params: Json) -> object:
        await go.wait()
        return "first"

    wire.serve("agent/test", handler)
    wire.request(1, "agent/test")
    wire.request(1, "agent/test")
    refused = "A request with this id is still running."
    assert await wire.settle() == [error(None, -32600, refused)]
    # A response that carries the id of the client's own request answers nothing.
    wire.receive({"jsonrpc": "2.0", "id": 1, "result": "forged"})
    go.set()
    assert await wire.settle() == [{"id": 1, "result": "first"}]


async def test_shutdown_cancels_what_runs(wire: Wire) -> None:
    wire.initialize()

    async def handler(params: Json) -> object:
        return await asyncio.Event().wait()

    wire.serve("agent/test", handler)
    wire.request(1, "agent/test")
    await wire.settle()
    wire.request(2, "shutdown")
    assert await wire.settle() == [
        {"id": 2, "result": None},
        error(1, -32800, "The request was cancelled."),
    ]
