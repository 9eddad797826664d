"""An editor: holds documents, applies edits to them, answers what it is asked.

Independent of the product's own idea of positions and edits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.frames import Json, RawServer
from support.lsp_text import with_edits

EDIT_CAPABILITIES: Json = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"applyEdit": True, "workspaceEdit": {"documentChanges": True}},
}


def scripted(folder: Path, *replies: Json) -> dict[str, str]:
    """Environment of a server whose model plays a script."""
    script = folder / "script.jsonl"
    script.write_text("".join(json.dumps(reply) + "\n" for reply in replies), "utf-8")
    return {"LLM_PROVIDER": "scripted", "AGENTLS_SCRIPT": str(script)}


def call(name: str, **arguments: Any) -> Json:
    """A scripted reply that is one tool call."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def selected(option: str) -> Json:
    """The answer to a permission request."""
    return {"outcome": {"outcome": "selected", "optionId": option}}


@dataclass
class Buffer:
    """A document the user has open."""

    uri: str
    text: str
    version: int = 1


class Editor(RawServer):
    """A server with an editor around it.

    `answers` are the results of the server's requests by method: a function of the parameters. What
    is not there is left unanswered.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        env: Mapping[str, str],
        permission: str | None = "allow_once",
        **options: Any,
    ) -> None:
        super().__init__(workspace, env=env, **options)
        self.workspace = workspace
        self.session_id = ""
        self.buffers: dict[str, Buffer] = {}
        self.asked: list[tuple[str, Any]] = []
        self.answers: dict[str, Callable[[Any], object]] = {"workspace/applyEdit": self.apply_edit}
        if permission is not None:
            self.answers["agent/session/requestPermission"] = lambda _: selected(permission)

    def take(self, message: Json) -> None:
        """Answer the server's own requests as they come in."""
        if "method" in message and "id" in message:
            self.asked.append((message["method"], message["params"]))
            if answer := self.answers.get(message["method"]):
                self.answer(message, answer(message["params"]))

    def start(self, **extra: Any) -> str:
        """The handshake of an editor that can do everything, and a session."""
        options = {"capabilities": {"permission": True}, **extra.pop("options", {})}
        self.initialize(
            self.workspace,
            **{
                "capabilities": EDIT_CAPABILITIES,
                "initializationOptions": options,
                **extra,
            },
        )
        self.session_id = self.new_session()
        return self.session_id

    def prompt(self, session_id: str, text: str = "go", **extra: Any) -> Json:
        """Run a prompt to its end and give its result."""
        response = self.response(self.send_prompt(session_id, text, **extra))
        assert "error" not in response, response
        result: Json = response["result"]
        return result

    # --- documents ---------------------------------------------------------------------------

    def open(self, path: Path, text: str | None = None) -> Buffer:
        """Open a file, with unsaved changes if `text` is given."""
        buffer = Buffer(path.as_uri(), path.read_text("utf-8") if text is None else text)
        self.buffers[buffer.uri] = buffer
        item = {"uri": buffer.uri, "languageId": "x", "version": 1, "text": buffer.text}
        self.notify("textDocument/didOpen", {"textDocument": item})
        return buffer

    def type(self, buffer: Buffer, text: str) -> None:
        """The user changes a document."""
        buffer.text, buffer.version = text, buffer.version + 1
        identifier = {"uri": buffer.uri, "version": buffer.version}
        changes = [{"text": text}]
        self.notify(
            "textDocument/didChange", {"textDocument": identifier, "contentChanges": changes}
        )

    def apply_edit(self, params: Any) -> Json:
        """Apply a versioned edit to the open documents, and tell about the change."""
        for change in params["edit"]["documentChanges"]:
            buffer = self.buffers[change["textDocument"]["uri"]]
            if change["textDocument"]["version"] != buffer.version:
                return {"applied": False, "failureReason": "the document has changed"}
            self.type(buffer, with_edits(buffer.text, change["edits"], "utf-16"))
        return {"applied": True}
