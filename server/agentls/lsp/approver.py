"""Asks the person at the editor whether a call may run; `core.ports.Approver`.

Whatever is not a clear yes is a no: silence, a vanished client, an answer that does not fit.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from difflib import unified_diff

from lsprotocol import types

from agentls.core.errors import UsageError
from agentls.core.messages import FileDiff, ToolCall
from agentls.core.ports import Answer, Prepared
from agentls.core.text import cap_middle, escaped_line, split_lines, visible
from agentls.core.wording import path_note
from agentls.lsp import methods
from agentls.lsp.client import Asks
from agentls.lsp.convert import Update, Updates, text_content
from agentls.lsp.failures import RpcError
from agentls.lsp.protocol import PermissionAnswer, Selected, parse

_log = logging.getLogger(__name__)

_MAX_DIFF_BYTES = 20_000

_OPTIONS: tuple[tuple[Answer, str], ...] = (
    ("allow_once", "Allow"),
    ("allow_always", "Always allow this"),
    ("reject_once", "Deny"),
    ("reject_always", "Always deny this"),
)


class ClientApprover:
    """Asks through `agent/session/requestPermission`, or a message box where that is unknown."""

    def __init__(
        self,
        client: Asks,
        session_id: str,
        updates: Updates,
        *,
        flush: Callable[[], None],
        custom_method: bool,
        timeout_s: float,
    ) -> None:
        """`flush` sends what was said before the question.

        A question stays open for `timeout_s`; then nobody's answer counts as no.
        """
        self._client = client
        self._session_id = session_id
        self._updates = updates
        self._flush = flush
        self._custom_method = custom_method
        self._timeout_s = timeout_s

    async def request(self, call: ToolCall, prepared: Prepared, reason: str) -> Answer | None:
        """The person's answer; None when there is none, which means no."""
        self._flush()
        try:
            if self._custom_method:
                return await self._by_method(call, prepared, reason)
            return await self._by_message_box(call, prepared, reason)
        except TimeoutError:
            _log.warning("nobody answered a permission request in time")
        except (RpcError, UsageError) as error:
            _log.warning("a permission request got no usable answer: %s", error)
        return None

    async def _by_method(self, call: ToolCall, prepared: Prepared, reason: str) -> Answer | None:
        params = {
            "sessionId": self._session_id,
            "toolCall": self._described(call, prepared, reason),
            "options": [
                {"optionId": answer, "name": name, "kind": answer} for answer, name in _OPTIONS
            ],
        }
        result = await self._client.ask(
            methods.REQUEST_PERMISSION, params, timeout_s=self._timeout_s
        )
        outcome = parse(PermissionAnswer, result, methods.REQUEST_PERMISSION).outcome
        chosen = outcome.option_id if isinstance(outcome, Selected) else None
        return next((answer for answer, _ in _OPTIONS if answer == chosen), None)

    async def _by_message_box(
        self, call: ToolCall, prepared: Prepared, reason: str
    ) -> Answer | None:
        params = {
            "type": int(types.MessageType.Warning),
            "message": question(call, prepared, reason),
            "actions": [{"title": name} for _, name in _OPTIONS],
        }
        result = await self._client.ask(
            types.WINDOW_SHOW_MESSAGE_REQUEST, params, timeout_s=self._timeout_s
        )
        title = result.get("title") if isinstance(result, dict) else None
        return next((answer for answer, name in _OPTIONS if name == title), None)

    def _described(self, call: ToolCall, prepared: Prepared, reason: str) -> Update:
        notes = [escaped_line(reason), *_path_notes(prepared)]
        content = [text_content("\n".join(filter(None, notes)))] if any(notes) else []
        return {
            **self._updates.call(call),
            "title": visible(prepared.title),
            "status": "pending",
            "content": [*content, *self._updates.diffs(prepared.diff)],
        }


def question(call: ToolCall, prepared: Prepared, reason: str) -> str:
    """The whole question as text: what would run, in full, and why it is asked."""
    lines = [f"agentls: {escaped_line(prepared.title)}"]
    if prepared.access.command is not None:
        lines.append(visible(prepared.access.command))
    elif not prepared.diff:
        lines.append(visible(json.dumps(call.arguments, ensure_ascii=False)))
    lines += [_diff(diff) for diff in prepared.diff]
    return "\n".join(filter(None, (*lines, *_path_notes(prepared), escaped_line(reason))))


def _diff(diff: FileDiff) -> str:
    """What an edit would change, as a person reads it."""
    old, new = split_lines(diff.old_text or ""), split_lines(diff.new_text)
    name = escaped_line(diff.path)
    before = "(new file)" if diff.old_text is None else name
    rows = [visible(row.rstrip("\r\n")) for row in unified_diff(old, new, before, name, n=1)]
    return cap_middle("\n".join(rows), _MAX_DIFF_BYTES, "too long for a message")


def _path_notes(prepared: Prepared) -> list[str]:
    return [note for facts in prepared.access.paths if (note := path_note(facts))]
