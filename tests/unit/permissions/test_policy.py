"""What may run, what asks, what is denied."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentls.core.ports import Access, Decision, Mode, PathFacts, Verdict
from agentls.core.requests import ToolDefinition
from agentls.permissions.policy import RulePolicy
from agentls.permissions.rules import parse_rules

TOOLS = ("read_file", "write_file", "edit_file", "glob", "grep", "bash")
MODES: tuple[Mode, ...] = get_args(Mode)
RANK: dict[Verdict, int] = {"deny": 0, "ask": 1, "allow": 2}


def policy(**lists: list[str]) -> RulePolicy:
    rules, _ = parse_rules(tools=TOOLS, **lists)
    return RulePolicy(rules)


def decide(policy: RulePolicy, tool: str, access: Access, mode: Mode = "ask") -> Decision:
    definition = ToolDefinition(name=tool, description="", parameters={})
    return policy.decide(definition, access, mode)


def reading(path: str, *, secret: bool = False) -> Access:
    return Access("read", (PathFacts(path, exists=True, secret=secret),))


def writing(
    path: str, *, secret: bool = False, protected: bool = False, target: str | None = None
) -> Access:
    return Access("write", (PathFacts(path, True, secret, protected, target),))


def running(command: str) -> Access:
    return Access("execute", command=command)


# --- without rules ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("access", "verdicts"),
    [
        (Access("none"), {"plan": "allow", "ask": "allow", "edit": "allow"}),
        (reading("a.py"), {"plan": "allow", "ask": "allow", "edit": "allow"}),
        (Access("read"), {"plan": "allow", "ask": "allow", "edit": "allow"}),
        (reading(".env", secret=True), {"plan": "ask", "ask": "ask", "edit": "ask"}),
        (writing("a.py"), {"plan": "deny", "ask": "ask", "edit": "ask"}),
        (writing(".envrc", protected=True), {"plan": "deny", "ask": "ask", "edit": "ask"}),
        (writing(".git/hooks/x"), {"plan": "deny", "ask": "deny", "edit": "deny"}),
        (writing("sub/.GIT/config"), {"plan": "deny", "ask": "deny", "edit": "deny"}),
        (writing("sub/.git./config"), {"plan": "deny", "ask": "deny", "edit": "deny"}),
        (writing("GIT~1/config"), {"plan": "deny", "ask": "deny", "edit": "deny"}),
        (writing("a", target=".git/config"), {"plan": "deny", "ask": "deny", "edit": "deny"}),
        (writing(".gitignore"), {"plan": "deny", "ask": "ask", "edit": "ask"}),
        (Access("write"), {"plan": "deny", "ask": "ask", "edit": "ask"}),
        (running("git status"), {"plan": "deny", "ask": "ask", "edit": "ask"}),
        (Access("execute"), {"plan": "deny", "ask": "ask", "edit": "ask"}),
    ],
)
def test_the_default_of_each_mode(access: Access, verdicts: dict[Mode, Verdict]) -> None:
    assert {mode: decide(policy(), "x", access, mode).verdict for mode in MODES} == verdicts


def test_reasons_are_for_people() -> None:
    rules = policy(deny=["bash(rm *)"], ask=["bash(npm *)"])

    assert [
        decide(rules, "bash", running("rm x")),
        decide(rules, "bash", running("npm ci")),
        decide(rules, "bash", running("ls")),
        decide(rules, "bash", running("ls"), "plan"),
        decide(rules, "edit_file", writing(".envrc", protected=True)),
        decide(rules, "edit_file", writing(".git/config")),
        decide(rules, "read_file", reading(".env", secret=True)),
    ] == [
        Decision("deny", "the rule 'bash(rm *)' denies it."),
        Decision("ask", "the rule 'bash(npm *)' asks."),
        Decision("ask", "every command asks."),
        Decision("deny", "plan mode changes nothing and runs nothing."),
        Decision("ask", ".envrc can run code or change what the agent may do."),
        Decision("deny", ".git/config belongs to git, which alone writes there."),
        Decision("ask", ".env may hold secrets."),
    ]


# --- rules -----------------------------------------------------------------------------------


def test_an_allow_rule_allows_what_it_names() -> None:
    rules = policy(allow=["edit_file(src/**)", "bash(git status)"])

    assert decide(rules, "edit_file", writing("src/a.py")).verdict == "allow"
    assert decide(rules, "edit_file", writing("a.py")).verdict == "ask"
    assert decide(rules, "write_file", writing("src/a.py")).verdict == "ask"
    assert decide(rules, "bash", running("git status")).verdict == "allow"
    assert decide(rules, "bash", running("git status 2>&1")).verdict == "allow"
    assert decide(rules, "bash", running("git status -s")).verdict == "ask"


@pytest.mark.parametrize("mode", ["ask", "edit"])
@pytest.mark.parametrize(
    "command",
    [
        "git status\nls",
        "git status; ls",
        "git status & ls",
        "git status && ls",
        "git status | ls",
        "git status $(ls)",
        "git status `ls`",
        "git status <(ls)",
        "git status ${x@P}",
        "git status >f",
        "git status <<E\nE",
        "A=1 git status",
        "env git status",
        " && ".join(["git status"] * 60),
    ],
)
@pytest.mark.parametrize("allowed", ["bash(git status)", "bash(git *)", "bash(*)", "bash"])
def test_only_a_single_plain_command_is_allowed(mode: Mode, command: str, allowed: str) -> None:
    verdict = decide(policy(allow=[allowed]), "bash", running(command), mode).verdict

    broad = allowed in ("bash(*)", "bash") and command == "env git status"
    assert verdict == ("allow" if broad else "ask")


def test_a_deny_rule_wins_at_any_length() -> None:
    rules = policy(allow=["bash", "bash(*)", "bash(rm x)"], deny=["bash(rm *)"])

    for command in ("rm x", "ls; " * 60 + "rm x", "sudo nohup bash -c 'ls; rm x'"):
        assert decide(rules, "bash", running(command)).verdict == "deny"


def test_an_ask_rule_wins_over_an_allow_rule() -> None:
    rules = policy(allow=["edit_file"], ask=["edit_file(docs/**)"])

    assert decide(rules, "edit_file", writing("docs/a.md")).verdict == "ask"
    assert decide(rules, "edit_file", writing("a.md")).verdict == "allow"


def test_a_protected_file_asks_whatever_is_allowed() -> None:
    rules = policy(allow=["edit_file", "edit_file(.envrc)", "edit_file(**)"])

    assert decide(rules, "edit_file", writing(".envrc", protected=True)).verdict == "ask"


def test_a_deny_rule_wins_over_a_protected_file() -> None:
    rules = policy(deny=["edit_file(.envrc)"])

    assert decide(rules, "edit_file", writing(".envrc", protected=True)).verdict == "deny"


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ("read_file", "ask"),
        ("read_file(**)", "ask"),
        ("read_file(.env*)", "ask"),
        ("read_file(.env)", "allow"),
    ],
)
def test_a_secret_is_allowed_only_by_its_name(rule: str, verdict: Verdict) -> None:
    assert (
        decide(policy(allow=[rule]), "read_file", reading(".env", secret=True)).verdict == verdict
    )


def test_plan_mode_wins_over_an_allow_rule() -> None:
    rules = policy(allow=["edit_file", "bash"])

    assert decide(rules, "edit_file", writing("a"), "plan").verdict == "deny"
    assert decide(rules, "bash", running("ls"), "plan").verdict == "deny"


def test_a_link_must_be_allowed_at_both_ends_and_is_denied_at_either() -> None:
    link = writing("src/link", target="other/a")

    assert decide(policy(allow=["edit_file(src/**)"]), "edit_file", link).verdict == "ask"
    assert decide(policy(allow=["edit_file(other/**)"]), "edit_file", link).verdict == "ask"
    assert decide(policy(deny=["edit_file(src/**)"]), "edit_file", link).verdict == "deny"
    assert decide(policy(deny=["edit_file(other/**)"]), "edit_file", link).verdict == "deny"


def test_a_call_of_several_files_is_allowed_as_a_whole_or_not() -> None:
    both = Access("write", (PathFacts("src/a", True), PathFacts("b", True)))

    assert decide(policy(allow=["x(src/**)"]), "edit_file", both).verdict == "ask"
    assert decide(policy(allow=["edit_file(src/**)"]), "edit_file", both).verdict == "ask"
    assert decide(policy(deny=["edit_file(src/**)"]), "edit_file", both).verdict == "deny"


def test_a_pattern_allows_no_call_without_facts() -> None:
    rules = policy(allow=["edit_file(**)", "bash(*)"])

    assert decide(rules, "edit_file", Access("write")).verdict == "ask"
    assert decide(rules, "bash", Access("execute")).verdict == "ask"


def test_a_rule_that_cannot_be_read_never_widens() -> None:
    rules = policy(allow=["bash", "read_file"], deny=["bash(rm *", "read_file([)"])

    assert decide(rules, "bash", running("ls")).verdict == "ask"
    assert decide(rules, "read_file", reading("a")).verdict == "ask"
    assert decide(rules, "glob", Access("read")).verdict == "allow"


def test_which_files_a_search_may_show() -> None:
    rules = policy(deny=["read_file(secrets/**)"], ask=["read_file(private)", "grep(x)"])

    assert {
        path: rules.readable(path) for path in ("a", "x", "secrets/a", "private", "private/b")
    } == {"a": True, "x": True, "secrets/a": False, "private": False, "private/b": False}


# --- properties ------------------------------------------------------------------------------

_RULES = st.sampled_from(
    [
        "bash", "bash(*)", "bash(git *)", "bash(git status)", "bash(rm *)", "bash(rm", "bash()",
        "edit_file", "edit_file(src/**)", "edit_file(*.py)", "edit_file([", "read_file",
        "read_file(secrets/**)", "read_file(.env)", "Read(src)", "nothing", "", "*", "(",
        "grep(src)",
    ]
)  # fmt: skip
_LISTS = st.lists(_RULES, max_size=4)
_CALLS = st.sampled_from(
    [
        ("bash", running("git status")), ("bash", running("git log; rm x")),
        ("bash", running("ls")),
        ("edit_file", writing("src/a.py")), ("edit_file", writing(".envrc", protected=True)),
        ("edit_file", writing("src/.env", secret=True)), ("read_file", reading("secrets/a")),
        ("read_file", reading(".env", secret=True)), ("grep", reading("src")),
        ("glob", Access("read")),
    ]
)  # fmt: skip
_MODES = st.sampled_from(MODES)


@settings(deadline=None)
@given(_LISTS, _LISTS, _LISTS, _RULES, _CALLS, _MODES)
def test_a_further_deny_rule_never_allows_anything(
    allow: list[str],
    ask: list[str],
    deny: list[str],
    more: str,
    call: tuple[str, Access],
    mode: Mode,
) -> None:
    before = decide(policy(allow=allow, ask=ask, deny=deny), *call, mode)
    after = decide(policy(allow=allow, ask=ask, deny=[*deny, more]), *call, mode)

    assert RANK[after.verdict] <= RANK[before.verdict]


@settings(deadline=None)
@given(_LISTS, _LISTS, _LISTS, _RULES, _CALLS, _MODES)
def test_a_further_ask_rule_never_allows_anything(
    allow: list[str],
    ask: list[str],
    deny: list[str],
    more: str,
    call: tuple[str, Access],
    mode: Mode,
) -> None:
    before = decide(policy(allow=allow, ask=ask, deny=deny), *call, mode)
    after = decide(policy(allow=allow, ask=[*ask, more], deny=deny), *call, mode)

    assert RANK[after.verdict] <= RANK[before.verdict]


@settings(deadline=None)
@given(
    _LISTS, st.sampled_from([";", "&", "&&", "|", "\n", "$(", "`", ">", "<("]), st.text(max_size=9)
)
def test_no_list_of_allow_rules_allows_an_appended_operator(
    allow: list[str], operator: str, rest: str
) -> None:
    decision = decide(policy(allow=allow), "bash", running(f"git status{operator}{rest}"))

    # A final line end or `2>&1` adds nothing to a command.
    harmless = not (operator + rest).strip(" \t\n")
    assert decision.verdict != "allow" or harmless
