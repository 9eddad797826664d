"""One prompt of a client on its way through a session.

Events become updates, questions go to the client, and the end becomes a result. After each reply of
the model a `usage_update` says how much of the context window it filled; the whole turn's usage is
part of the result.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agentls.agent.session import Session
from agentls.app import App
from agentls.core.events import Event, Status, Usage
from agentls.core.requests import ToolKind
from agentls.lsp.approver import ClientApprover
from agentls.lsp.convert import Update, Updates, chunk
from agentls.lsp.prompt import PromptReader
from agentls.lsp.protocol import Prompt, PromptResult, UsageReport
from agentls.lsp.updates import UpdateStream

if TYPE_CHECKING:
    from agentls.lsp.language_server import AgentServer


class ClientTurn:
    """One prompt. Runs once."""

    def __init__(self, server: AgentServer, app: App, session: Session) -> None:
        """`session` is one of `app`'s."""
        self._server = server
        self._app = app
        self._session = session
        self._usage = Usage()
        self._convert = Updates(app.workspace, self._kind_of, context_window=0)
        self._stream = UpdateStream(self._send, server.outbox.drain)
        self._reader = PromptReader(
            app.files,
            app.workspace,
            server.client.encoding,
            readable=app.policy.readable,
            held=server.mirror.text_of,
        )

    async def run(self, prompt: Prompt) -> PromptResult:
        """Run the turn to its end, or to its cancellation, which is an end like others.

        The task must be made for the request alone: a cancellation ends here, so that the client
        gets the same answer by whichever way it cancelled.

        Raises:
            ModelError: the provider failed.
            TurnError: the loop had to stop.
        """
        approver = ClientApprover(
            self._server.protocol,
            self._session.session_id,
            self._convert,
            flush=self._stream.flush,
            custom_method=self._server.client.asks_permission,
            timeout_s=self._app.settings.permissions.answer_timeout_s,
        )
        try:
            content = await self._reader.read(prompt.prompt, prompt.context)
            result = await self._session.prompt(content, sink=self._take, approver=approver)
            if result.notice:
                await self._stream.put(chunk("agent_message_chunk", f"\n\n{result.notice}"))
        except asyncio.CancelledError:
            return PromptResult(stop_reason="cancelled", usage=UsageReport.of(self._usage))
        finally:
            self._stream.close()
            for update in self._convert.closing():
                self._send(update)
        return PromptResult(stop_reason=result.stop_reason, usage=UsageReport.of(result.usage))

    async def _take(self, event: Event) -> None:
        if isinstance(event, Usage):
            self._usage = self._usage + event
            self._convert.cost_usd = (self._session.usage + self._usage).cost_usd
            info = (await self._app.model()).info
            self._convert.context_window = info.capabilities.context_window or 0
        elif isinstance(event, Status) and event.message:
            # ACP has no update for this; an editor's log is better than nowhere.
            self._server.log_to_client(event.message, warning=event.state != "requesting")
        for update in self._convert.of(event):
            await self._stream.put(update)

    def _send(self, update: Update) -> None:
        self._server.update(self._session.session_id, update)

    def _kind_of(self, name: str) -> ToolKind:
        tool = self._app.tools.get(name)
        return "other" if tool is None else tool.definition.kind
