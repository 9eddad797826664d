"""edit_file, over in-memory files. How text is found is tested in test_matching.py."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from agentls.core.errors import EditRefused, InvalidArguments, StaleFile, ToolError
from agentls.core.messages import FileDiff
from agentls.core.ports import Access, PathFacts, ToolOutput
from support.fake_ports import version
from support.tool_calls import workbench


async def test_an_edit_is_prepared_without_changing_anything_then_made() -> None:
    bench = workbench({"src/a.py": "x = 1\ny = 2\nz = 3\n"})

    prepared = await bench.prepare("edit_file", path="src/a.py", old_text="y = 2", new_text="y = 5")

    assert bench.files.writes == []
    diff = (
        FileDiff(
            path="src/a.py", old_text="x = 1\ny = 2\nz = 3\n", new_text="x = 1\ny = 5\nz = 3\n"
        ),
    )
    assert (prepared.title, prepared.diff) == ("Edit src/a.py, line 2", diff)
    assert prepared.access == Access("write", (PathFacts("src/a.py", exists=True),))
    assert await prepared.run() == ToolOutput(
        "Edited src/a.py, line 2.\n@@ -1,3 +1,3 @@\n x = 1\n-y = 2\n+y = 5\n z = 3",
        summary="Edited src/a.py, line 2.",
        diff=diff,
    )
    base = version("x = 1\ny = 2\nz = 3\n")
    assert bench.files.writes == [("src/a.py", "x = 1\ny = 5\nz = 3\n", base)]
    assert bench.context.seen == {"src/a.py": version("x = 1\ny = 5\nz = 3\n")}


async def test_the_text_is_matched_and_handed_on_with_lf_line_ends() -> None:
    bench = workbench({"a": "1\r\n2\r\n3\r\n"})

    prepared = await bench.prepare("edit_file", path="a", old_text="1\r\n2\n", new_text="1\nzwei\n")
    await prepared.run()

    assert prepared.diff == (FileDiff(path="a", old_text="1\n2\n3\n", new_text="1\nzwei\n3\n"),)
    assert bench.files.writes == [("a", "1\nzwei\n3\n", version("1\r\n2\r\n3\r\n"))]


async def test_a_loose_match_is_reported_as_loose() -> None:
    bench = workbench({"a": "if x:  \n    y\n"})

    output = await bench.call("edit_file", path="a", old_text="if x:\n    y\n", new_text="z\n")

    assert output.content.startswith(
        "Edited a, line 1. Matched loosely, disregarding blanks at line ends: check the result.\n@@"
    )


async def test_several_edits_in_one_call() -> None:
    bench = workbench({"a": "1\n2\n3\n"})
    edits: list[JsonValue] = [
        {"old_text": "3", "new_text": "drei"},
        {"oldString": "1", "newString": "eins"},
    ]

    output = await bench.call("edit_file", path="a", edits=edits)

    assert output.summary == "Edited a, 2 places (lines 1, 3)."
    assert bench.files.texts == {"a": "eins\n2\ndrei\n"}


async def test_the_list_of_edits_may_be_written_as_a_string() -> None:
    bench = workbench({"a": "1\n"})

    await bench.call("edit_file", path="a", edits=json.dumps([{"old": "1", "new": "2"}]))

    assert bench.files.texts == {"a": "2\n"}


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ([], "'edits' is empty"),
        ("not json", "'edits': "),
        ([{"old_text": "1"}], r"edits\[0\]: 'new_text' is missing"),
    ],
)
async def test_a_bad_list_of_edits_is_refused(edits: JsonValue, message: str) -> None:
    with pytest.raises(InvalidArguments, match=message):
        await workbench({"a": "1\n"}).prepare("edit_file", path="a", edits=edits)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("old_text", "new_text"),
        ("old_string", "new_string"),
        ("oldText", "newText"),
        ("search", "replace"),
        ("old_str", "new_str"),
    ],
)
async def test_other_names_for_the_texts(old: str, new: str) -> None:
    bench = workbench({"a": "1\n"})

    await bench.call("edit_file", filename="a", **{old: "1", new: "2"})

    assert bench.files.texts == {"a": "2\n"}


async def test_replace_all() -> None:
    bench = workbench({"a": "x\nx\n"})

    output = await bench.call("edit_file", path="a", old_text="x", new_text="y", replace_all=True)

    assert output.summary == "Edited a, 2 places (lines 1, 2)."
    assert bench.files.texts == {"a": "y\ny\n"}


@pytest.mark.parametrize("texts", [{}, {"a": ""}])
async def test_an_empty_old_text_fills_a_missing_or_empty_file(texts: dict[str, str]) -> None:
    bench = workbench(texts)

    output = await bench.call("edit_file", path="a", old_text="", new_text="x\n")

    assert bench.files.texts == {"a": "x\n"}
    assert output.diff == (FileDiff(path="a", old_text=texts.get("a"), new_text="x\n"),)


async def test_an_empty_old_text_is_refused_where_there_is_text() -> None:
    with pytest.raises(EditRefused, match="old_text is empty, but a has text"):
        await workbench({"a": "1"}).prepare("edit_file", path="a", old_text="", new_text="x")


async def test_a_missing_file_names_files_like_it() -> None:
    with pytest.raises(ToolError, match=r"there is no file a\.py\. Did you mean src/a\.py\?"):
        await workbench({"src/a.py": "1"}).prepare(
            "edit_file", path="a.py", old_text="1", new_text="x"
        )


async def test_a_file_changed_since_the_model_read_it_is_refused() -> None:
    bench = workbench({"a": "1\n"})
    await bench.call("read_file", path="a")
    bench.files.texts["a"] = "1\n2\n"

    with pytest.raises(StaleFile, match="a has changed since you read it"):
        await bench.prepare("edit_file", path="a", old_text="1", new_text="x")


async def test_a_file_changed_after_approval_is_refused() -> None:
    bench = workbench({"a": "1\n"})
    prepared = await bench.prepare("edit_file", path="a", old_text="1", new_text="x")
    bench.files.texts["a"] = "1\n2\n"

    with pytest.raises(StaleFile):
        await prepared.run()
    assert bench.files.texts == {"a": "1\n2\n"}


async def test_a_link_is_edited_where_it_leads() -> None:
    bench = workbench({"real": "1\n"}, links={"link": "real"})

    prepared = await bench.prepare("edit_file", path="link", old_text="1", new_text="2")
    await prepared.run()

    assert prepared.title == "Edit link → real, line 1"
    assert prepared.access == Access("write", (PathFacts("real", exists=True, target="real"),))
    assert bench.files.texts == {"real": "2\n"}


@pytest.mark.parametrize("old", ["KEY=", "KEY=hunter3\n"])
@pytest.mark.parametrize("by", ["name", "rule"])
async def test_a_refusal_before_approval_quotes_nothing_that_reading_would_ask_for(
    old: str, by: str
) -> None:
    texts = {".env": "KEY=hunter2\nKEY=hunter2\n"}
    secrets = {".env"} if by == "name" else set[str]()
    bench = workbench(texts, secrets=secrets, readable=lambda path: path != ".env")

    with pytest.raises(EditRefused) as caught:
        await bench.prepare("edit_file", path=".env", old_text=old, new_text="x")
    assert "hunter2" not in str(caught.value)


async def test_the_answer_quotes_nothing_of_a_secret_around_the_edit() -> None:
    bench = workbench({".env": "KEY=hunter2\nB=1\n"}, secrets={".env"})

    output = await bench.call("edit_file", path=".env", old_text="B=1", new_text="B=2")

    assert output.content == "Edited .env, line 2."


async def test_a_model_cannot_approve_by_arguments() -> None:
    bench = workbench({"a": "1\n"})

    prepared = await bench.prepare(
        "edit_file", path="a", old_text="1", new_text="2", requires_approval=False, approved=True
    )

    assert prepared.access == Access("write", (PathFacts("a", exists=True),))
