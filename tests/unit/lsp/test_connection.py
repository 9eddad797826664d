"""What the server asks of its client, and what it keeps of what the client says."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from agentls.lsp.failures import RpcError
from support.lsp_wire import INITIALIZE, Wire


@pytest.fixture
async def wire(tmp_path: Path) -> Wire:
    return Wire(tmp_path)


async def test_asking_the_client(wire: Wire) -> None:
    asking = asyncio.create_task(wire.server.protocol.ask("x/y", {"a": 1}, timeout_s=5))
    (asked,) = await wire.settle()
    assert asked == {"id": "agentls-1", "method": "x/y", "params": {"a": 1}}
    wire.receive({"jsonrpc": "2.0", "id": "agentls-1", "result": [1, None]})
    assert await asking == [1, None]


async def test_an_error_of_the_client_is_raised_however_it_looks(wire: Wire) -> None:
    for given, expected in (
        ({"code": -32601, "message": "no"}, (-32601, "no")),
        ({"code": "x", "message": 5}, (0, "")),
        (None, (0, "")),
    ):
        asking = asyncio.create_task(wire.server.protocol.ask("x", {}, timeout_s=5))
        (asked,) = await wire.settle()
        wire.receive({"jsonrpc": "2.0", "id": asked["id"], "error": given})
        with pytest.raises(RpcError) as raised:
            await asking
        assert (raised.value.code, raised.value.message) == expected


async def test_questions_are_withdrawn_and_late_answers_ignored(
    wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(TimeoutError):
        await wire.server.protocol.ask("x", {}, timeout_s=0.001)
    asking = asyncio.create_task(wire.server.protocol.ask("x", {}, timeout_s=5))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await wire.settle() == [
        {"id": "agentls-1", "method": "x", "params": {}},
        {"method": "$/cancelRequest", "params": {"id": "agentls-1"}},
        {"id": "agentls-2", "method": "x", "params": {}},
        {"method": "$/cancelRequest", "params": {"id": "agentls-2"}},
    ]
    with caplog.at_level(logging.INFO):
        for late in ({"result": 1}, {"error": {"code": 1, "message": "x"}}, {"result": None}):
            for msg_id in ("agentls-1", "agentls-2", "agentls-99", 5):
                wire.receive({"jsonrpc": "2.0", "id": msg_id, **late})
        assert await wire.settle() == []
    assert caplog.records == []


async def test_a_change_that_cannot_be_read_ends_the_trust_in_the_document(wire: Wire) -> None:
    wire.initialize()
    document = {"uri": "file:///w/a", "languageId": "x", "version": 1, "text": "abc"}
    wire.notify("textDocument/didOpen", {"textDocument": {**document, "text": None}})
    unread = wire.server.mirror.get("file:///w/a")
    assert unread is not None
    assert unread.broken == "its text could not be read"
    wire.notify("textDocument/didOpen", {"textDocument": document})
    where = {"start": {"line": -1, "character": 0}, "end": {"line": 0, "character": 0}}
    wire.notify(
        "textDocument/didChange",
        {
            "textDocument": {"uri": "file:///w/a", "version": 2},
            "contentChanges": [{"range": where, "text": "x"}],
        },
    )
    found = wire.server.mirror.get("file:///w/a")
    assert found is not None
    assert (found.text, found.broken) == ("abc", "a change could not be read")
    assert await wire.settle() == []


async def test_folders_come_and_go(wire: Wire, tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    named = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
    named.append({"uri": "vscode-vfs://github/x", "name": "remote"})
    wire.request(1, "initialize", {**INITIALIZE, "workspaceFolders": named})
    assert wire.server.roots == tuple(folders)
    event = {
        "added": [named[0], {"uri": (tmp_path / "c").as_uri(), "name": "c"}],
        "removed": [named[1]],
    }
    wire.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    assert wire.server.roots == (folders[0], tmp_path / "c")
    event = {"added": [], "removed": [event["added"][1], named[0]]}
    wire.notify("workspace/didChangeWorkspaceFolders", {"event": event})
    assert list(wire.server.roots) == [tmp_path]


async def test_the_given_folder_counts_when_the_client_opens_none(
    wire: Wire, tmp_path: Path
) -> None:
    wire.request(1, "initialize", {**INITIALIZE, "rootUri": "vscode-vfs://github/x"})
    assert wire.server.roots == (tmp_path,)
    other = Wire(tmp_path)
    other.request(1, "initialize", {**INITIALIZE, "rootPath": "/w"})
    assert other.server.roots == (Path("/w"),)
    for odd in ("", "relative/w", "/w\0"):
        third = Wire(tmp_path)
        third.request(1, "initialize", {**INITIALIZE, "rootPath": odd})
        assert third.server.roots == (tmp_path,)


@pytest.mark.parametrize("number", [0, -1, 2**31, 2**40])
async def test_a_number_that_no_process_has_is_not_watched(wire: Wire, number: int) -> None:
    wire.request(1, "initialize", {**INITIALIZE, "processId": number})
    assert wire.server.client.process_id is None


@pytest.mark.parametrize(
    ("name", "splits"),
    [("Visual Studio Code", True), ("Zed", True), ("Neovim", False), ("Eglot", False)],
)
async def test_editors_that_keep_carriage_returns_in_lines_are_known(
    wire: Wire, name: str, splits: bool
) -> None:
    wire.request(1, "initialize", {**INITIALIZE, "clientInfo": {"name": name}})
    assert wire.server.mirror.splits_at_cr is splits
