"""The server object: one connection, its documents and its chat.

Imports pygls and nothing heavy: `initialize` waits for this module, and everything that waits for
a model, a file or a schema is loaded behind it.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from agentls import __version__
from agentls.lsp import garbage, methods
from agentls.lsp.client import Client, path_of
from agentls.lsp.features import documents, lifecycle
from agentls.lsp.mirror import Mirror
from agentls.lsp.rpc import AgentProtocol, strict_converter
from agentls.lsp.stdio import Inbox, Outbox
from agentls.lsp.watch import until_dead

if TYPE_CHECKING:
    from agentls.lsp.features.chat import Chat

_log = logging.getLogger(__name__)

_CLOSE_TIMEOUT_S = 1.0
_FLUSH_TIMEOUT_S = 0.2
_WARM_UP_AFTER_S = 1.0


class AgentServer(LanguageServer):
    """Serves one client until it leaves."""

    protocol: AgentProtocol
    outbox: Outbox

    def __init__(self, workspace: Path, flags: Mapping[str, Any]) -> None:
        """`workspace` counts when the client opens no folder; `flags` as in `settings.load`."""
        super().__init__(
            "agentls",
            __version__,
            protocol_cls=AgentProtocol,
            converter_factory=strict_converter,
        )
        self.client = Client()
        self.flags = flags
        self.mirror = Mirror(path_of)
        self._own_root = workspace
        self.roots: tuple[Path, ...] = (workspace,)
        self.has_folders = False
        self._left: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._chat: asyncio.Task[Chat] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        lifecycle.register(self)
        documents.register(self)
        for method in methods.FROM_CLIENT:
            self.feature(method)(_served_by_chat(self, method))

    def connect(self, fd_in: int, fd_out: int, on_stuck: Callable[[], None] | None = None) -> None:
        """Start to read and write. `on_stuck` as in `Inbox`."""
        self.outbox = Outbox(fd_out, on_broken=lambda: self.leave(1))
        self.protocol.send = self.outbox.write
        Inbox(
            fd_in,
            self.outbox,
            on_frame=self.protocol.receive,
            on_end=lambda: self.leave(self.protocol.phase.exit_code),
            on_stuck=on_stuck,
        )

    def meet(self, client: Client, roots: tuple[Path, ...]) -> None:
        """Know the client, and leave when it dies."""
        self.client = client
        self.mirror.encoding = client.encoding
        self.mirror.splits_at_cr = client.splits_at_cr
        self.open_folders(roots)
        if client.process_id is not None:
            self._spawn(self._leave_with(client.process_id))
        # For clients that do not say `initialized`.
        asyncio.get_running_loop().call_later(_WARM_UP_AFTER_S, self.warm_up)

    def open_folders(self, roots: tuple[Path, ...]) -> None:
        """Work in these folders from now on; without any, in the one from the command line."""
        self.roots = roots or (self._own_root,)
        self.has_folders = bool(roots)

    def warm_up(self) -> None:
        """Begin to load the chat, if nobody has."""
        if self._chat is None:
            self._chat = asyncio.get_running_loop().create_task(self._load_chat())

    async def chat(self) -> Chat:
        """The chat, as soon as it is loaded."""
        self.warm_up()
        assert self._chat is not None  # noqa: S101 - warm_up made it
        return await asyncio.shield(self._chat)

    def leave(self, code: int) -> None:
        """Have the process end soon; the first code given counts."""
        if not self._left.done():
            self._left.set_result(code)

    async def run(self) -> int:
        """Serve until the client leaves, then stop all work; gives the exit status.

        Work that does not stop within a second, or a client that does not read, is left behind.
        """
        code = await self._left
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self.protocol.stop()
                await self._close_chat()
        except TimeoutError:
            _log.warning("some work did not stop in time")
        try:
            async with asyncio.timeout(_FLUSH_TIMEOUT_S):
                await self.outbox.drain(0)
        except TimeoutError:
            _log.info("the client did not read the last messages")
        return code

    def show_warning(self, message: str) -> None:
        """Tell the user something that went wrong outside any request."""
        params = {"type": int(types.MessageType.Warning), "message": message}
        self.protocol.notify(types.WINDOW_SHOW_MESSAGE, params)

    def log_to_client(self, message: str, *, warning: bool) -> None:
        """Write to the editor's log of this server."""
        kind = types.MessageType.Warning if warning else types.MessageType.Info
        params = {"type": int(kind), "message": message}
        self.protocol.notify(types.WINDOW_LOG_MESSAGE, params)

    def update(self, session_id: str, update: Mapping[str, Any]) -> None:
        """Send one update of a session."""
        self.protocol.notify(methods.SESSION_UPDATE, {"sessionId": session_id, "update": update})

    def report_server_error(self, error: Exception, source: object) -> None:
        """Show nothing: pygls would pop up the text of errors that are logged already."""

    async def _load_chat(self) -> Chat:
        try:
            module = await asyncio.to_thread(importlib.import_module, "agentls.lsp.features.chat")
        finally:
            garbage.settle()
        chat: Chat = module.Chat(self)
        return chat

    async def _close_chat(self) -> None:
        if self._chat is not None and self._chat.done() and not self._chat.cancelled():
            await self._chat.result().aclose()

    async def _leave_with(self, pid: int) -> None:
        await until_dead(pid)
        _log.warning("the client's process has ended")
        self.leave(1)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _served_by_chat(server: AgentServer, method: str) -> Any:
    """A handler that passes a request on, once the chat is loaded."""

    async def handle(params: dict[str, Any]) -> object:
        return await (await server.chat()).serve(method, params)

    return handle
