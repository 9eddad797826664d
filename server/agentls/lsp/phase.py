"""Where a connection stands: LSP allows little before `initialize` and after `shutdown`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentls.lsp.failures import INVALID_REQUEST, SERVER_NOT_INITIALIZED, RpcError


@dataclass(slots=True)
class Phase:
    """The phase of one connection; the handlers of `initialize` and `shutdown` move it on."""

    name: Literal["new", "running", "shut down"] = "new"

    @property
    def exit_code(self) -> int:
        """What LSP wants a server to exit with: 0 after `shutdown`, else 1."""
        return 0 if self.name == "shut down" else 1

    def refusal(self, method: str) -> RpcError | None:
        """Why a request cannot be served now; None when it can."""
        if self.name == "shut down":
            return RpcError(INVALID_REQUEST, "The server was shut down.")
        if method == "initialize":
            again = RpcError(INVALID_REQUEST, "The server is initialized already.")
            return None if self.name == "new" else again
        if self.name == "new":
            return RpcError(SERVER_NOT_INITIALIZED, "`initialize` has to come first.")
        return None
