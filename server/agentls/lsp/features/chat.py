"""Sessions and their prompts: the `agent/…` methods.

Loaded in the background after `initialize`, because everything an agent needs is imported here.
Owns which turn runs in which session. Knows nothing of frames and ids.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentls.agent.session import Session
from agentls.app import App, build
from agentls.core.errors import ModelError, SessionBusy, SettingsError, UnknownSession, UsageError
from agentls.lsp import methods
from agentls.lsp.convert import mode_update
from agentls.lsp.editor import EditorBuffers
from agentls.lsp.protocol import (
    MODES,
    Cancel,
    ModelChoice,
    Models,
    Modes,
    NewSession,
    NoParams,
    Prompt,
    SetMode,
    parse,
)
from agentls.lsp.rpc import cancel_once
from agentls.lsp.turn import ClientTurn
from agentls.settings import load

if TYPE_CHECKING:
    from agentls.lsp.language_server import AgentServer

_log = logging.getLogger(__name__)

_Handler = Callable[[Any], Awaitable[object]]


@dataclass(slots=True)
class _Open:
    """A session, where it works, and the task of the turn that runs in it."""

    session: Session
    app: App
    turn: asyncio.Task[Any] | None = None


class Chat:
    """All sessions of one client."""

    def __init__(self, server: AgentServer) -> None:
        """`server` is the connection; its client is known by now."""
        self._server = server
        self._buffers = EditorBuffers(server.protocol, server.mirror, server.client)
        self._apps: dict[Path, asyncio.Task[App]] = {}
        self._sessions: dict[str, _Open] = {}
        self._handlers: dict[str, tuple[type[Any], _Handler]] = {
            methods.SESSION_NEW: (NewSession, self._new),
            methods.SESSION_PROMPT: (Prompt, self._prompt),
            methods.SESSION_CANCEL: (Cancel, self._cancel),
            methods.SESSION_SET_MODE: (SetMode, self._set_mode),
            methods.MODELS: (NoParams, self._models),
        }

    async def serve(self, method: str, params: dict[str, Any]) -> object:
        """Check the parameters and carry the method out.

        Raises:
            UsageError: the parameters do not fit.
            AgentlsError: as the method says.
        """
        kind, handler = self._handlers[method]
        return await handler(parse(kind, params, method))

    async def aclose(self) -> None:
        """Cancel every turn and wait until its children are gone; release the models."""
        turns = [opened.turn for opened in self._sessions.values() if opened.turn is not None]
        for turn in turns:
            cancel_once(turn)
        await asyncio.gather(*turns, return_exceptions=True)
        for building in self._apps.values():
            if building.done() and not building.cancelled() and building.exception() is None:
                await building.result().aclose()

    # --- methods -----------------------------------------------------------------------------

    async def _new(self, params: NewSession) -> dict[str, Any]:
        app = await self._app(self._root_for(params.cwd))
        session = app.new_session(mode=params.mode, title=params.title or "")
        self._sessions[session.session_id] = _Open(session, app)
        modes = Modes(current_mode_id=session.mode, available_modes=list(MODES))
        return {
            "sessionId": session.session_id,
            "modes": modes.to_json(),
            "models": await self._models_of(app),
        }

    async def _prompt(self, params: Prompt) -> dict[str, Any]:
        """Run a turn.

        `agent/session/cancel` and `$/cancelRequest` do the same: both cancel this task, and the
        result says `cancelled` and what was used until then.
        """
        opened = self._find(params.session_id)
        if opened.turn is not None:
            raise SessionBusy(
                "A turn is already running in this session.", hint="Cancel it, or wait for its end."
            )
        opened.turn = asyncio.current_task()
        try:
            turn = ClientTurn(self._server, opened.app, opened.session)
            return (await turn.run(params)).to_json()
        finally:
            opened.turn = None

    async def _cancel(self, params: Cancel) -> None:
        opened = self._find(params.session_id)
        if opened.turn is not None:
            cancel_once(opened.turn)

    async def _set_mode(self, params: SetMode) -> dict[str, Any]:
        opened = self._find(params.session_id)
        opened.session.set_mode(params.mode)
        self._server.update(params.session_id, mode_update(params.mode))
        return {}

    async def _models(self, _: NoParams) -> dict[str, Any]:
        return await self._models_of(await self._app(self._server.roots[0]))

    # --- workspaces --------------------------------------------------------------------------

    def _find(self, session_id: str) -> _Open:
        opened = self._sessions.get(session_id)
        if opened is None:
            raise UnknownSession(
                "There is no session with this id.", hint=f"Start one with {methods.SESSION_NEW}."
            )
        return opened

    def _root_for(self, cwd: str | None) -> Path:
        """The workspace folder that holds a path; the first one when none is given.

        Where the client opened no folder, it may name any: that is how it opens one then.
        """
        if cwd is None:
            return self._server.roots[0]
        path = Path(cwd)
        if "\0" in cwd or not path.is_absolute():
            raise UsageError("cwd: an absolute path is needed.")
        if not path.is_dir():
            raise UsageError("cwd: there is no such folder.")
        real = path.resolve()
        holding = [root for root in self._server.roots if real.is_relative_to(root.resolve())]
        if not holding and not self._server.has_folders:
            return path
        if not holding:
            raise UsageError("cwd: it is outside the folders that are open in the editor.")
        return max(holding, key=lambda root: len(root.resolve().parts))

    async def _app(self, root: Path) -> App:
        """The agent of a workspace folder, wired on first use."""
        if root not in self._apps:
            self._apps[root] = asyncio.get_running_loop().create_task(self._build(root))
        try:
            return await asyncio.shield(self._apps[root])
        except asyncio.CancelledError:
            raise
        except Exception:
            self._apps.pop(root, None)
            raise

    async def _build(self, root: Path) -> App:
        loaded = await asyncio.to_thread(
            load, root, client_options=self._server.client.options, flags=self._server.flags
        )
        app = await build(loaded.settings, workspace=root, buffers=self._buffers)
        if problems := (*loaded.problems, *app.problems):
            self._server.show_warning("agentls: " + "\n".join(problems))
        return app

    async def _models_of(self, app: App) -> dict[str, Any]:
        """The model that answers; none is no error before a question is asked."""
        try:
            info = (await app.model()).info
        except (ModelError, SettingsError) as error:
            _log.info("no model: %s", error.code)
            return Models(current_model_id=None, available_models=[]).to_json()
        model_id = f"{info.provider}/{info.name}"
        choice = ModelChoice(model_id=model_id, name=info.name)
        return Models(current_model_id=model_id, available_models=[choice]).to_json()
