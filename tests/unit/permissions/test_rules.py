"""How rules are read, and what becomes of those that cannot be."""

from __future__ import annotations

import pytest

from agentls.core.ports import Access, PathFacts
from agentls.permissions.rules import Rules, parse_rules

TOOLS = ("read_file", "write_file", "edit_file", "glob", "grep", "bash")


def parsed(**lists: list[str]) -> tuple[Rules, tuple[str, ...]]:
    return parse_rules(tools=TOOLS, **lists)


def summary(rules: Rules) -> dict[str, list[tuple[str, str]]]:
    return {
        kind: [(rule.tool, rule.text) for rule in found]
        for kind, found in (("allow", rules.allow), ("ask", rules.ask), ("deny", rules.deny))
    }


def test_rules_as_in_the_documentation() -> None:
    rules, problems = parsed(
        allow=["bash(git status)", "edit_file(src/**)"],
        ask=["bash(npm *)"],
        deny=["read_file(secrets/**)", "glob"],
    )

    assert problems == ()
    assert summary(rules) == {
        "allow": [("bash", "bash(git status)"), ("edit_file", "edit_file(src/**)")],
        "ask": [("bash", "bash(npm *)")],
        "deny": [("read_file", "read_file(secrets/**)"), ("glob", "glob")],
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is not of the form tool or tool(pattern)"),
        ("bash(git status", "it is not of the form tool or tool(pattern)"),
        ("bash git status", "it is not of the form tool or tool(pattern)"),
        ("bash()", "the pattern is empty"),
        ("bash(a && b)", "a rule fits one command; it cannot hold operators"),
        ("bash('a)", "the pattern has an unclosed quote"),
        ("edit_file([a)", "the pattern has '[' without ']'"),
        ("edit_file(a\u202eb)", "the pattern holds hidden characters"),
        ("*(a)", "a pattern needs a tool's name before it"),
        ("Bash(git status)", "there is no such tool; did you mean bash?"),
        ("*", "there is no such tool"),
        ("telnet", "there is no such tool"),
    ],
)
def test_an_allow_rule_that_cannot_be_read_is_dropped(text: str, problem: str) -> None:
    rules, problems = parsed(allow=[text])

    assert rules == Rules()
    shown = text.replace("\u202e", "\\u{202e}")
    assert problems == (f"permissions.allow: the rule '{shown}' was ignored: {problem}.",)


@pytest.mark.parametrize(
    ("text", "asks", "said"),
    [
        ("bash(rm *", "bash", "every call of bash asks until it is put right"),
        ("bash(a | b)", "bash", "every call of bash asks until it is put right"),
        ("read_file([)", "read_file", "every call of read_file asks until it is put right"),
        ("Read(secrets", "read_file", "every call of read_file asks until it is put right"),
        ("(secrets/**)", "*", "every call asks until it is put right"),
        ("secrets/**", "*", "every call asks until it is put right"),
    ],
)
@pytest.mark.parametrize("kind", ["ask", "deny"])
def test_a_restricting_rule_that_cannot_be_read_makes_its_tool_ask(
    kind: str, text: str, asks: str, said: str
) -> None:
    rules, problems = parsed(**{kind: [text]})

    assert summary(rules) == {"allow": [], "ask": [(asks, text)], "deny": []}
    (problem,) = problems
    assert problem.startswith(f"permissions.{kind}: the rule '{text}' cannot be read (")
    assert said in problem


def test_a_restricting_rule_with_a_misspelt_tool_is_taken_as_meant() -> None:
    rules, problems = parsed(deny=["Read(secrets/**)", "Bash(rm:*)"])

    assert [rule.tool for rule in rules.deny] == ["Read", "read_file", "Bash", "bash"]
    assert rules.deny[1].covers("read_file", Access("read", (PathFacts("secrets/a", True),)))
    assert rules.deny[3].covers("bash", Access("execute", command="sudo rm x"))
    assert problems == (
        "permissions.deny: the rule 'Read(secrets/**)' names a tool that is not there; "
        "it is taken to mean read_file.",
        "permissions.deny: the rule 'Bash(rm:*)' names a tool that is not there; "
        "it is taken to mean bash.",
    )


def test_a_restricting_rule_for_a_tool_that_is_not_there_is_kept_and_reported() -> None:
    rules, problems = parsed(deny=["telnet(x)"])

    assert summary(rules)["deny"] == [("telnet", "telnet(x)")]
    assert problems == ("permissions.deny: the rule 'telnet(x)' names a tool that is not there.",)
