"""`initialize` to `exit`, and what belongs to a connection as a whole."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from agentls import __version__
from agentls.lsp.client import Client, describe, folders, root_folders
from agentls.lsp.rpc import as_object

if TYPE_CHECKING:
    from agentls.lsp.language_server import AgentServer

_log = logging.getLogger(__name__)


def register(server: AgentServer) -> None:
    """Add the handlers to a server."""
    server.feature(types.INITIALIZE)(initialize)
    server.feature(types.INITIALIZED)(initialized)
    server.feature(types.SHUTDOWN)(shutdown)
    server.feature(types.EXIT)(leave)
    server.feature(types.SET_TRACE)(set_trace)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(change_folders)


def initialize(ls: AgentServer, params: dict[str, Any]) -> dict[str, Any]:
    """Take in who the client is and say what this server does. Nothing slow may happen here."""
    raw = params.get("capabilities")
    known = {**params, "capabilities": {} if isinstance(raw, dict) else None}
    typed = ls.protocol.typed(types.INITIALIZE, known)
    ls.meet(describe(typed, as_object(raw)), root_folders(typed))
    ls.protocol.phase.name = "running"
    return {
        "capabilities": capabilities(ls.client),
        "serverInfo": {"name": "agentls", "version": __version__},
    }


def capabilities(client: Client) -> dict[str, Any]:
    """What this server serves, and nothing it does not."""
    return {
        "positionEncoding": client.encoding,
        "textDocumentSync": {
            "openClose": True,
            "change": int(types.TextDocumentSyncKind.Incremental),
            "save": {"includeText": False},
        },
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}},
    }


def initialized(ls: AgentServer, _: types.InitializedParams) -> None:
    """The client is ready: load the rest in the background."""
    ls.warm_up()


def shutdown(ls: AgentServer, _: None) -> None:
    """Stop all work; only `exit` may follow."""
    ls.protocol.phase.name = "shut down"
    ls.protocol.cancel_all()


def leave(ls: AgentServer, _: None) -> None:
    """End the process: 0 after `shutdown`, 1 without."""
    ls.leave(ls.protocol.phase.exit_code)


def set_trace(params: types.SetTraceParams) -> None:
    """Accepted and without effect: nothing here is traced."""
    _log.debug("trace: %s", params.value)


def change_folders(ls: AgentServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Folders were opened or closed in the editor."""
    removed = set(folders(folder.uri for folder in params.event.removed))
    added = folders(folder.uri for folder in params.event.added)
    kept = [root for root in ls.roots if root not in removed]
    ls.open_folders(tuple(dict.fromkeys([*kept, *added])))
