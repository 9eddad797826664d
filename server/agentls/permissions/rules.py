"""Rules as users write them: `tool` or `tool(pattern)`, in lists allow, ask and deny. Pure.

What cannot be read is reported and never widens: an allow rule is dropped, while a deny or ask rule
makes its tool ask.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from agentls.core.ports import Access, PathFacts
from agentls.core.text import visible
from agentls.permissions.command_patterns import CommandPattern
from agentls.permissions.commands import invocations, plain
from agentls.permissions.globs import PathPattern

_RULE = re.compile(r"\s*(?P<tool>[A-Za-z][\w-]*|\*)\s*(?:\((?P<pattern>.*)\))?\s*", re.DOTALL)
_COMMAND_TOOL = "bash"
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `text` is what the user wrote; without a pattern it is about every call."""

    text: str
    tool: str
    pattern: PathPattern | CommandPattern | None = None

    def covers(self, tool: str, access: Access) -> bool:
        """As a deny or ask rule: whether any part of the call fits."""
        if self.tool not in (tool, _ANY):
            return False
        match self.pattern:
            case None:
                return True
            case CommandPattern():
                return access.command is not None and self.pattern.covers(access.command)
            case PathPattern():
                return any(map(self.pattern.covers, _names(access.paths)))

    def permits(self, tool: str, access: Access) -> bool:
        """As an allow rule: whether the whole call fits.

        A secret must be named without wildcards, and a command must be a single plain one.
        """
        if self.tool != tool:
            return False
        if access.command is not None and plain(access.command) is None:
            return False
        secret = any(facts.secret for facts in access.paths)
        match self.pattern:
            case None:
                return not secret
            case CommandPattern():
                return access.command is not None and self.pattern.permits(access.command)
            case PathPattern():
                names = _names(access.paths)
                return (
                    bool(names)
                    and all(map(self.pattern.permits, names))
                    and (self.pattern.literal or not secret)
                )


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules that hold, each list in the order written."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


def first_covering(rules: Iterable[Rule], tool: str, access: Access) -> Rule | None:
    """A deny or ask rule that covers the call. A command line is read once for all rules."""
    by_command: list[tuple[Rule, CommandPattern]] = []
    for rule in rules:
        if not isinstance(rule.pattern, CommandPattern):
            if rule.covers(tool, access):
                return rule
        elif rule.tool == tool:
            by_command.append((rule, rule.pattern))
    if access.command is None or not by_command:
        return None
    for words in invocations(access.command):
        for rule, pattern in by_command:
            if pattern.fits(words):
                return rule
    return None


def parse_rules(
    *,
    tools: Collection[str],
    allow: Iterable[str] = (),
    ask: Iterable[str] = (),
    deny: Iterable[str] = (),
) -> tuple[Rules, tuple[str, ...]]:
    """Read the three lists; `tools` are the names there are.

    Gives the rules, and what is wrong with the lists, as sentences for people.
    """
    reader = _Reader(tools)
    allowing = [rule for text in allow if (rule := reader.allowing(text))]
    asking: list[Rule] = []
    denying: list[Rule] = []
    for text in ask:
        reader.restricting("ask", text, asking.append, asking.append)
    for text in deny:
        reader.restricting("deny", text, denying.append, asking.append)
    return Rules(tuple(allowing), tuple(asking), tuple(denying)), tuple(reader.problems)


class _Reader:
    def __init__(self, tools: Collection[str]) -> None:
        self.problems: list[str] = []
        self._tools = tuple(tools)

    def allowing(self, text: str) -> Rule | None:
        try:
            rule = _parse(text)
        except ValueError as error:
            self._report("allow", text, f"was ignored: {error}")
            return None
        if rule.tool not in self._tools:
            close = self._closest(rule.tool)
            meant = f"; did you mean {close}?" if close else ""
            self._report("allow", text, f"was ignored: there is no such tool{meant}")
            return None
        return rule

    def restricting(
        self,
        kind: str,
        text: str,
        keep: Callable[[Rule], None],
        make_ask: Callable[[Rule], None],
    ) -> None:
        try:
            rule = _parse(text)
        except ValueError as error:
            named = re.match(r"\s*([A-Za-z][\w-]*)", text)
            tool = self._closest(named[1]) if named else None
            make_ask(Rule(text, tool or _ANY))
            effect = f"every call of {tool} asks" if tool else "every call asks"
            self._report(kind, text, f"cannot be read ({error}), so {effect} until it is put right")
            return
        keep(rule)
        if rule.tool in (_ANY, *self._tools):
            return
        close = self._closest(rule.tool)
        if close is None:
            self._report(kind, text, "names a tool that is not there")
            return
        self._report(kind, text, f"names a tool that is not there; it is taken to mean {close}")
        try:
            keep(_parse(text, tool=close))
        except ValueError:
            make_ask(Rule(text, close))

    def _closest(self, name: str) -> str | None:
        known = {tool.casefold(): tool for tool in self._tools}
        close = difflib.get_close_matches(name.casefold(), known, n=1)
        return known[close[0]] if close else None

    def _report(self, kind: str, text: str, what: str) -> None:
        self.problems.append(f"permissions.{kind}: the rule '{visible(text)}' {what}.")


def _parse(text: str, *, tool: str | None = None) -> Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError("it is not of the form tool or tool(pattern)")
    tool = tool or match["tool"]
    pattern = match["pattern"]
    if pattern is None:
        return Rule(text, tool)
    if tool == _ANY:
        raise ValueError("a pattern needs a tool's name before it")
    if visible(pattern) != pattern or not pattern.isprintable():
        raise ValueError("the pattern holds hidden characters")
    if tool == _COMMAND_TOOL:
        return Rule(text, tool, CommandPattern.parse(pattern))
    return Rule(text, tool, PathPattern.parse(pattern.strip()))


def _names(paths: Iterable[PathFacts]) -> list[str]:
    """Every name of every path: a link's own and that of what it leads to."""
    return [name for facts in paths for name in (facts.path, facts.target) if name is not None]
