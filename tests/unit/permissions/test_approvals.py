"""Standing answers cover exactly what was shown."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from agentls.core.messages import ToolCall
from agentls.core.ports import Access, Answer, PathFacts
from agentls.permissions.approvals import SessionApprovals


def call(name: str, **arguments: JsonValue) -> ToolCall:
    return ToolCall(call_id="1", name=name, arguments=arguments)


def running(command: str) -> Access:
    return Access("execute", command=command)


def writing(path: str, *, protected: bool = False, target: str | None = None) -> Access:
    return Access("write", (PathFacts(path, True, protected=protected, target=target),))


@pytest.mark.parametrize("answer", ["allow_always", "reject_always"])
def test_a_command_is_remembered_letter_by_letter(answer: Answer) -> None:
    approvals = SessionApprovals()
    approvals.remember(call("bash"), running("git push"), answer)

    assert approvals.recall(call("bash", timeout_s=5), running("git push")) == answer
    for other in ("git push ", "git push -f", "git  push", "git push; ls", "git pus\u04bb"):
        assert approvals.recall(call("bash"), running(other)) is None


@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
def test_an_answer_for_once_does_not_stand(answer: Answer) -> None:
    approvals = SessionApprovals()
    approvals.remember(call("bash"), running("ls"), answer)

    assert approvals.recall(call("bash"), running("ls")) is None


def test_a_file_is_remembered_by_tool_and_path() -> None:
    approvals = SessionApprovals()
    approvals.remember(call("edit_file", old_text="a"), writing("a.py"), "allow_always")

    assert approvals.recall(call("edit_file", old_text="b"), writing("a.py")) == "allow_always"
    assert approvals.recall(call("write_file"), writing("a.py")) is None
    assert approvals.recall(call("edit_file"), writing("b.py")) is None
    assert approvals.recall(call("edit_file"), writing("a.py", target="b.py")) is None
    assert approvals.recall(call("edit_file"), Access("read", writing("a.py").paths)) is None


def test_any_other_call_is_remembered_by_all_its_arguments() -> None:
    approvals = SessionApprovals()
    approvals.remember(call("fetch", url="a", n=1), Access("execute"), "allow_always")

    assert approvals.recall(call("fetch", n=1, url="a"), Access("execute")) == "allow_always"
    assert approvals.recall(call("fetch", url="b", n=1), Access("execute")) is None


def test_a_protected_file_asks_every_time() -> None:
    approvals = SessionApprovals()
    approvals.remember(call("edit_file"), writing(".envrc", protected=True), "allow_always")
    assert approvals.recall(call("edit_file"), writing(".envrc", protected=True)) is None

    approvals.remember(call("edit_file"), writing("late"), "allow_always")
    assert approvals.recall(call("edit_file"), writing("late", protected=True)) is None


def test_a_no_stands_for_a_protected_file_too() -> None:
    approvals = SessionApprovals()
    approvals.remember(call("edit_file"), writing(".envrc", protected=True), "reject_always")

    answer = approvals.recall(call("edit_file"), writing(".envrc", protected=True))
    assert answer == "reject_always"


def test_the_last_answer_counts() -> None:
    approvals = SessionApprovals()
    approvals.remember(call("bash"), running("ls"), "allow_always")
    approvals.remember(call("bash"), running("ls"), "reject_always")

    assert approvals.recall(call("bash"), running("ls")) == "reject_always"
