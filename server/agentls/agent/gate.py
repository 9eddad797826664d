"""Stands between a prepared call and its run: policy first, then a person if the policy asks."""

from __future__ import annotations

from collections.abc import Callable

from agentls.core.errors import Denied
from agentls.core.messages import ToolCall
from agentls.core.ports import Approvals, Approver, Mode, Policy, Prepared
from agentls.core.requests import ToolDefinition


class Gate:
    """Decides one call at a time; silence means no."""

    def __init__(
        self,
        policy: Policy,
        approvals: Approvals,
        approver: Approver,
        mode: Callable[[], Mode],
    ) -> None:
        """`approvals` holds the session's standing answers; `mode` gives the one of the moment."""
        self._policy = policy
        self._approvals = approvals
        self._approver = approver
        self._mode = mode

    async def check(self, call: ToolCall, tool: ToolDefinition, prepared: Prepared) -> None:
        """Return when the call may run.

        Raises:
            Denied: a rule or a person said no, or nobody answered.
        """
        decision = self._policy.decide(tool, prepared.access, self._mode())
        if decision.verdict == "allow":
            return
        if decision.verdict == "deny":
            raise Denied(f"not allowed: {decision.reason}")
        answer = self._approvals.recall(call, prepared.access)
        if answer is None:
            answer = await self._approver.request(call, prepared, decision.reason)
            if answer is not None:
                self._approvals.remember(call, prepared.access, answer)
        if answer is None:
            raise Denied("not allowed: nobody approved it.")
        if answer in ("reject_once", "reject_always"):
            raise Denied("the user said no.", hint="Do not try it again; ask what to do instead.")
