"""Remembers a session's "always" answers, each for exactly what was shown.

A command is remembered letter by letter, a file by tool and path (and what a link leads to), any
other call by all its arguments. Knows no rules: the policy has decided to ask before this is asked.
"""

from __future__ import annotations

import json

from agentls.core.messages import ToolCall
from agentls.core.ports import Access, Answer


class SessionApprovals:
    """Standing answers of one session (`core.ports.Approvals`)."""

    def __init__(self) -> None:
        """Starts with none."""
        self._answers: dict[str, Answer] = {}

    def recall(self, call: ToolCall, access: Access) -> Answer | None:
        """The standing answer for this call.

        A file that runs code or loosens rules is asked about every time; only a no stands.
        """
        answer = self._answers.get(_key(call, access))
        return None if answer == "allow_always" and _asks_always(access) else answer

    def remember(self, call: ToolCall, access: Access, answer: Answer) -> None:
        """Keep an answer that is meant to stand."""
        if answer == "reject_always" or (answer == "allow_always" and not _asks_always(access)):
            self._answers[_key(call, access)] = answer


def _asks_always(access: Access) -> bool:
    return access.effect == "write" and any(facts.protected for facts in access.paths)


def _key(call: ToolCall, access: Access) -> str:
    if access.command is not None:
        what: object = ["command", access.command]
    elif access.paths:
        what = ["paths", [[facts.path, facts.target] for facts in access.paths]]
    else:
        what = ["arguments", call.arguments]
    return json.dumps([call.name, access.effect, what], sort_keys=True)
