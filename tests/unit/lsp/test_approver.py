from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentls.core.messages import FileDiff, ToolCall
from agentls.core.ports import Access, Answer, PathFacts, Prepared, ToolOutput
from agentls.lsp.approver import ClientApprover, question
from agentls.lsp.convert import Updates
from agentls.lsp.failures import RpcError


class FakeClient:
    """Answers every request with one result, raises an error, or stays silent."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[tuple[str, Any]] = []

    async def ask(self, method: str, params: object, *, timeout_s: float) -> object:
        self.asked.append((method, params))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def nothing() -> ToolOutput:
    return ToolOutput(content="")


CALL = ToolCall(call_id="c", name="bash", arguments={"command": "ls\n# \u202etxt"})
PREPARED = Prepared(
    title="Run ls\u202e",
    access=Access("execute", (PathFacts("a\nb", True, secret=True, target="/w/x"),), CALL.name),
    run=nothing,
)
OPTIONS = {
    "allow_once": "Allow",
    "allow_always": "Always allow this",
    "reject_once": "Deny",
    "reject_always": "Always deny this",
}


def approver(client: FakeClient, *, custom_method: bool, flushed: list[int]) -> ClientApprover:
    return ClientApprover(
        client,
        "s",
        Updates(Path("/w"), lambda _: "execute", 0),
        flush=lambda: flushed.append(len(client.asked)),
        custom_method=custom_method,
        timeout_s=600,
    )


async def answered(result: object, *, custom_method: bool = True) -> Answer | None:
    client = FakeClient(result)
    return await approver(client, custom_method=custom_method, flushed=[]).request(
        CALL, PREPARED, "bash asks"
    )


def selected(option: object) -> object:
    return {"outcome": {"outcome": "selected", "optionId": option}}


async def test_the_question_says_everything_and_comes_after_what_was_said() -> None:
    client, flushed = FakeClient(selected("allow_once")), list[int]()
    diff = FileDiff(path="n.py", old_text=None, new_text="x")
    prepared = Prepared("Run ls\u202e", PREPARED.access, nothing, (diff,))
    subject = approver(client, custom_method=True, flushed=flushed)
    assert await subject.request(CALL, prepared, "bash asks") == "allow_once"
    assert flushed == [0]
    note = "bash asks\na\\nb: leads to /w/x, may hold secrets"
    assert client.asked == [
        (
            "agent/session/requestPermission",
            {
                "sessionId": "s",
                "toolCall": {
                    "toolCallId": "c",
                    "name": "bash",
                    "title": "Run ls\\u{202e}",
                    "kind": "execute",
                    "status": "pending",
                    "rawInput": {"command": "ls\n# \u202etxt"},
                    "locations": [],
                    "content": [
                        {"type": "content", "content": {"type": "text", "text": note}},
                        {"type": "diff", "path": "/w/n.py", "oldText": None, "newText": "x"},
                    ],
                },
                "options": [
                    {"optionId": kind, "name": name, "kind": kind} for kind, name in OPTIONS.items()
                ],
            },
        )
    ]


@pytest.mark.parametrize("option", OPTIONS)
async def test_each_option_is_an_answer(option: str) -> None:
    assert await answered(selected(option)) == option


@pytest.mark.parametrize(
    "result",
    [
        {"outcome": {"outcome": "cancelled"}},
        selected("allow"),
        selected("Allow"),
        selected(None),
        selected(5),
        {"outcome": {"outcome": "selected"}},
        {"outcome": "allow_once"},
        {"optionId": "allow_once"},
        True,
        "allow_once",
        [],
        None,
        RpcError(-32601, "Method not found"),
        TimeoutError(),
    ],
)
async def test_whatever_is_no_clear_yes_is_no_answer(result: object) -> None:
    assert await answered(result) is None
    assert await answered(result, custom_method=False) is None


async def test_a_cancelled_question_cancels_its_asker() -> None:
    with pytest.raises(asyncio.CancelledError):
        # What a task sees at its await when it is cancelled.
        await ClientApprover(
            Cancelled(),
            "s",
            Updates(Path("/w"), lambda _: "execute", 0),
            flush=lambda: None,
            custom_method=True,
            timeout_s=600,
        ).request(CALL, PREPARED, "")


class Cancelled:
    async def ask(self, method: str, params: object, *, timeout_s: float) -> object:
        raise asyncio.CancelledError


async def test_without_the_method_a_message_box_asks() -> None:
    client = FakeClient({"title": "Always allow this"})
    subject = approver(client, custom_method=False, flushed=[])
    assert await subject.request(CALL, PREPARED, "bash asks") == "allow_always"
    assert client.asked == [
        (
            "window/showMessageRequest",
            {
                "type": 2,
                "message": question(CALL, PREPARED, "bash asks"),
                "actions": [
                    {"title": "Allow"},
                    {"title": "Always allow this"},
                    {"title": "Deny"},
                    {"title": "Always deny this"},
                ],
            },
        )
    ]


def test_the_message_holds_the_whole_command_and_hides_nothing() -> None:
    command = "true; " * 60 + "rm -rf \u202ex"
    access = Access("execute", (), command)
    text = question(CALL, Prepared("Run", access, nothing), "why\nagentls: approved")
    assert text == ("agentls: Run\n" + "true; " * 60 + "rm -rf \\u{202e}x\nwhy\\nagentls: approved")


def test_the_message_shows_what_an_edit_changes() -> None:
    old = "".join(f"{no}\n" for no in range(9))
    diff = FileDiff(path="a.py", old_text=old, new_text=old.replace("4", "four\x1b"))
    access = Access("write", (PathFacts(".envrc", False, protected=True),))
    call = ToolCall(call_id="c", name="edit_file")
    assert question(call, Prepared("Edit a.py", access, nothing, (diff,)), "") == (
        "agentls: Edit a.py\n--- a.py\n+++ a.py\n@@ -4,3 +4,3 @@\n 3\n-4\n+four\\u{1b}\n 5\n"
        ".envrc: can run code or loosen rules"
    )


def test_the_message_shows_arguments_where_there_is_nothing_better() -> None:
    call = ToolCall(call_id="c", name="read_file", arguments={"path": "é"})
    assert question(call, Prepared("Read é", Access("read"), nothing), "secret") == (
        'agentls: Read é\n{"path": "é"}\nsecret'
    )
