"""The editor's buffers as the agent reads and edits them; `core.ports.Buffers`.

Reads come from the mirror, edits go out as versioned `workspace/applyEdit`. An edit counts as made
only when the editor's own change notification shows the new text: some editors answer "applied" to
an edit they dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from weakref import WeakValueDictionary

from lsprotocol import types

from agentls.core.errors import StaleFile
from agentls.core.text import lf, visible
from agentls.lsp.client import Asks, Client
from agentls.lsp.edits import Edit, minimal_edits
from agentls.lsp.failures import RpcError
from agentls.lsp.mirror import LONE_CR, Document, Mirror
from agentls.lsp.rpc import as_object

_APPLY_TIMEOUT_S = 10.0
_CHANGE_TIMEOUT_S = 3.0
"""Editors gather changes before they tell: Neovim for 150 ms by default."""

_HINT = "Read it again."


class EditorBuffers:
    """Open documents, read and edited in the editor."""

    def __init__(
        self,
        asks: Asks,
        mirror: Mirror,
        client: Client,
        *,
        apply_timeout_s: float = _APPLY_TIMEOUT_S,
        change_timeout_s: float = _CHANGE_TIMEOUT_S,
    ) -> None:
        """`client` says how edits can be sent."""
        self._asks = asks
        self._mirror = mirror
        self._client = client
        self._apply_timeout_s = apply_timeout_s
        self._change_timeout_s = change_timeout_s
        self._locks: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    def open_text(self, path: Path) -> tuple[str, int] | None:
        """Text and version of an open document; None when the editor does not hold it.

        Raises:
            StaleFile: the editor holds it, but what it holds is not known.
        """
        document = self._find(path)
        return None if document is None else (document.text, document.version)

    async def replace(self, path: Path, new_text: str, *, base: int) -> int:
        """Edit an open document and give its new version. Nothing is saved.

        Raises:
            StaleFile: it is no longer at version `base`, the editor refused, or it cannot be told
                whether the edit was made.
        """
        # One at a time: not every editor checks the version an edit was made for.
        async with self._locks.setdefault(path, asyncio.Lock()):
            return await self._replace(path, new_text, base)

    async def _replace(self, path: Path, new_text: str, base: int) -> int:
        document = self._find(path)
        if document is None or document.version != base:
            raise StaleFile(f"{_shown(path)} changed in the editor.", hint=_HINT)
        if self._mirror.counts_otherwise(document):
            raise StaleFile(
                f"{_shown(path)} cannot be edited in the editor: {LONE_CR}.",
                hint="Ask the user to save and close it.",
            )
        edits = minimal_edits(document.text, new_text, self._mirror.encoding)
        if not edits:
            return base
        arrival: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

        def watch(changed: Document | None) -> None:
            if arrival.done():
                return
            if changed is None or changed.broken:
                arrival.set_result(None)
            elif _same_text(changed.text, new_text):
                arrival.set_result(changed.version)

        with self._mirror.listening(document.uri, watch):
            await self._apply(path, document, edits)
            await asyncio.wait([arrival], timeout=self._change_timeout_s)
        version = arrival.result() if arrival.done() else None
        if version is None:
            raise StaleFile(
                f"The editor did not show the edit of {_shown(path)}; it may or may not be made.",
                hint=_HINT,
            )
        return version

    async def _apply(self, path: Path, document: Document, edits: Sequence[Edit]) -> None:
        if not self._client.applies_edits:
            raise StaleFile(
                f"{_shown(path)} is open in an editor that takes no edits.",
                hint="Ask the user to save and close it.",
            )
        params = {"label": "agentls", "edit": self._workspace_edit(document, edits)}
        try:
            result = await self._asks.ask(
                types.WORKSPACE_APPLY_EDIT, params, timeout_s=self._apply_timeout_s
            )
        except TimeoutError:
            raise StaleFile(
                f"The editor did not answer whether it edited {_shown(path)}.", hint=_HINT
            ) from None
        except RpcError as error:
            reason = visible(error.message)
            raise StaleFile(
                f"The editor could not edit {_shown(path)}: {reason}.", hint=_HINT
            ) from None
        answer = as_object(result)
        if answer.get("applied") is not True:
            failure = answer.get("failureReason")
            why = f": {visible(failure)}" if isinstance(failure, str) else ""
            raise StaleFile(f"The editor refused to edit {_shown(path)}{why}.", hint=_HINT)

    def _workspace_edit(self, document: Document, edits: Sequence[Edit]) -> dict[str, object]:
        changes = [edit.to_json() for edit in edits]
        if not self._client.versioned_edits:
            # Such a client cannot check the version: what it holds was compared just now.
            return {"changes": {document.uri: changes}}
        identifier = {"uri": document.uri, "version": document.version}
        return {"documentChanges": [{"textDocument": identifier, "edits": changes}]}

    def _find(self, path: Path) -> Document | None:
        documents = self._mirror.at(path)
        if not documents:
            return None
        if len({document.text for document in documents}) > 1:
            raise StaleFile(
                f"{_shown(path)} is open twice in the editor, with different texts.",
                hint="Ask the user to close one.",
            )
        if documents[0].broken:
            raise StaleFile(
                f"The editor and agentls no longer agree about {_shown(path)}: "
                f"{documents[0].broken}.",
                hint="Ask the user to close the file and open it again.",
            )
        return documents[0]


def _same_text(one: str, other: str) -> bool:
    """Equal but for the kind of line ends: an editor keeps to its own in a buffer."""
    return lf(one) == lf(other)


def _shown(path: Path) -> str:
    return visible(path.name)
