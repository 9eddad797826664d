"""Decides whether a call may run, from facts alone. Pure; knows neither tools nor people.

In this order: what is never allowed; deny rules; files that run code or loosen rules, which always
ask; ask rules; allow rules; the mode's default. So a deny rule wins over all that follows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agentls.core.paths import is_git
from agentls.core.ports import Access, Decision, Mode, PathFacts
from agentls.core.requests import ToolDefinition
from agentls.permissions.rules import Rules, first_covering

_READ_TOOL = "read_file"


@dataclass(frozen=True, slots=True)
class RulePolicy:
    """The user's rules over built-in ones (`core.ports.Policy`)."""

    rules: Rules = field(default_factory=Rules)

    def decide(self, tool: ToolDefinition, access: Access, mode: Mode) -> Decision:
        """The verdict and its reason."""
        if reason := _never(access, mode):
            return Decision("deny", reason)
        if rule := first_covering(self.rules.deny, tool.name, access):
            return Decision("deny", f"the rule '{rule.text}' denies it.")
        if access.effect == "write" and (path := _first_protected(access)):
            return Decision("ask", f"{path} can run code or change what the agent may do.")
        if rule := first_covering(self.rules.ask, tool.name, access):
            return Decision("ask", f"the rule '{rule.text}' asks.")
        for rule in self.rules.allow:
            if rule.permits(tool.name, access):
                return Decision("allow", f"the rule '{rule.text}' allows it.")
        return _default(access)

    def readable(self, path: str) -> bool:
        """Whether a file's text may be shown without asking; a search leaves the others out."""
        access = Access("read", (PathFacts(path=path, exists=True),))
        restricting = (*self.rules.deny, *self.rules.ask)
        return first_covering(restricting, _READ_TOOL, access) is None


def _never(access: Access, mode: Mode) -> str:
    if mode == "plan" and access.effect in ("write", "execute"):
        return "plan mode changes nothing and runs nothing."
    if access.effect == "write":
        for facts in access.paths:
            if is_git(facts.path) or is_git(facts.target or ""):
                return f"{facts.path} belongs to git, which alone writes there."
    return ""


def _first_protected(access: Access) -> str:
    return next((facts.path for facts in access.paths if facts.protected), "")


def _default(access: Access) -> Decision:
    secret = next((facts.path for facts in access.paths if facts.secret), None)
    match access.effect:
        case "read" | "none" if secret is None:
            return Decision("allow")
        case "read" | "none":
            return Decision("ask", f"{secret} may hold secrets.")
        case "write":
            return Decision("ask", "changing a file asks.")
        case "execute":
            return Decision("ask", "every command asks.")
