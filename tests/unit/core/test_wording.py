from __future__ import annotations

import pytest

from agentls.core.messages import ToolCall, ToolResult
from agentls.core.ports import PathFacts
from agentls.core.wording import call_title, path_note, result_note


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall.model_validate({"call_id": "1", "name": name, "arguments": arguments})


@pytest.mark.parametrize(
    ("made", "title"),
    [
        (call("read_file", path="a.py"), "read_file a.py"),
        (call("read_file", path="a.py", start_line=3, end_line=9), "read_file a.py:3-9"),
        (call("read_file", path="a.py", start_line=3), "read_file a.py:3-"),
        (call("bash", command="git\n  status"), "bash git status"),
        (call("grep", pattern="x+", path="src"), "grep x+ in src"),
        (call("glob", pattern="**/*.py"), "glob **/*.py"),
        (call("now"), "now"),
        (call("other", count=3), 'other {"count": 3}'),
        (call("read_file", path=3), 'read_file {"path": 3}'),
        (ToolCall(call_id="1", name="bash", invalid="{oops"), "bash {oops"),
        (call("bash", command="echo \x1b[2Jhi\u202e"), "bash echo \\u{1b}[2Jhi\\u{202e}"),
        (call("evil\nname", path="x"), "evil name x"),
    ],
)
def test_titles(made: ToolCall, title: str) -> None:
    assert call_title(made) == title


def test_a_title_is_one_bounded_line() -> None:
    title = call_title(call("bash", command="x" * 5000 + "\nrm -rf /"))
    assert len(title) == 100
    assert title.endswith("…")


@pytest.mark.parametrize(
    ("result", "note"),
    [
        (ToolResult(call_id="1", name="t", content="all of it", summary="3 lines"), "3 lines"),
        (ToolResult(call_id="1", name="t", content="all of it"), ""),
        (ToolResult(call_id="1", name="t", content="Error: no.\nmore", is_error=True), "no."),
    ],
)
def test_notes(result: ToolResult, note: str) -> None:
    assert result_note(result) == note


@pytest.mark.parametrize(
    ("facts", "note"),
    [
        (PathFacts("a", exists=True), ""),
        (PathFacts("a", exists=True, target="b\nc"), "a: leads to b\\nc"),
        (
            PathFacts("a\u202e", exists=False, secret=True, protected=True),
            "a\\u{202e}: can run code or loosen rules, may hold secrets",
        ),
    ],
)
def test_what_is_special_about_a_path(facts: PathFacts, note: str) -> None:
    assert path_note(facts) == note
