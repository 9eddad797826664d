"""A language server without a process: messages go in by hand, what it sends is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agentls.lsp.language_server import AgentServer

Json = dict[str, Any]
INITIALIZE: Json = {"processId": None, "rootUri": None, "capabilities": {}}


class Wire:
    """A server without a process: frames go in by hand, what it sends is kept."""

    def __init__(self, tmp_path: Path) -> None:
        self.server = AgentServer(tmp_path, {})
        self.sent: list[Json] = []
        self.server.protocol.send = self._keep

    def _keep(self, data: bytes) -> None:
        header, _, body = data.partition(b"\r\n\r\n")
        assert header == b"Content-Length: %d" % len(body)
        message = json.loads(body)
        assert message.pop("jsonrpc") == "2.0"
        self.sent.append(message)

    def receive(self, message: object) -> None:
        self.server.protocol.receive(json.dumps(message).encode())

    def request(self, msg_id: object, method: object, params: object = None) -> None:
        self.receive({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params})

    def notify(self, method: object, params: object = None) -> None:
        self.receive({"jsonrpc": "2.0", "method": method, "params": params})

    def initialize(self) -> None:
        self.request("init", "initialize", INITIALIZE)
        self.sent.clear()

    def serve(self, method: str, handler: Callable[[Json], Awaitable[object]]) -> None:
        self.server.feature(method)(handler)

    async def settle(self) -> list[Json]:
        """What was sent once nothing more can happen."""
        for _ in range(10):
            await asyncio.sleep(0)
        sent, self.sent = self.sent, []
        return sent


def error(msg_id: object, code: int, message: str, **more: object) -> Json:
    return {"id": msg_id, "error": {"code": code, "message": message, **more}}
