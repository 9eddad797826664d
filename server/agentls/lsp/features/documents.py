"""Open documents: `didOpen`, `didChange`, `didSave`, `didClose`.

The handlers are plain functions: they run in the order the notifications came, before anything that
came later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from agentls.lsp.mirror import Change
from agentls.lsp.positions import Position, Range

if TYPE_CHECKING:
    from agentls.lsp.language_server import AgentServer


def register(server: AgentServer) -> None:
    """Add the handlers to a server."""
    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(did_open)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(did_change)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(did_save)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(did_close)

    def malformed(method: str, params: object) -> None:
        uri = _uri(params)
        if uri is None:
            return
        if method == types.TEXT_DOCUMENT_DID_OPEN:
            # Known to be open, so that its file is not written under the editor's hands.
            server.mirror.open(uri, 0, "")
            server.mirror.distrust(uri, "its text could not be read")
        elif method == types.TEXT_DOCUMENT_DID_CHANGE:
            server.mirror.distrust(uri, "a change could not be read")

    server.protocol.on_malformed = malformed


def did_open(ls: AgentServer, params: types.DidOpenTextDocumentParams) -> None:
    """The editor holds a document from now on."""
    document = params.text_document
    ls.mirror.open(document.uri, document.version, document.text)


def did_change(ls: AgentServer, params: types.DidChangeTextDocumentParams) -> None:
    """The user, or an edit, changed a document."""
    changes = [_change(change) for change in params.content_changes]
    ls.mirror.change(params.text_document.uri, params.text_document.version, changes)


def did_save(ls: AgentServer, params: types.DidSaveTextDocumentParams) -> None:
    """A document is on disk as it is in the editor."""
    ls.mirror.save(params.text_document.uri)


def did_close(ls: AgentServer, params: types.DidCloseTextDocumentParams) -> None:
    """The truth is on disk again."""
    ls.mirror.close(params.text_document.uri)


def to_range(value: types.Range) -> Range:
    """LSP's range as ours."""
    return Range(
        Position(value.start.line, value.start.character),
        Position(value.end.line, value.end.character),
    )


def _change(change: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(change, types.TextDocumentContentChangePartial):
        return to_range(change.range), change.text
    return None, change.text


def _uri(params: object) -> str | None:
    document = params.get("textDocument") if isinstance(params, dict) else None
    uri = document.get("uri") if isinstance(document, dict) else None
    return uri if isinstance(uri, str) else None
