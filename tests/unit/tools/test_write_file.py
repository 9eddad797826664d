"""write_file, over in-memory files."""

from __future__ import annotations

import pytest

from agentls.core.errors import InvalidArguments, StaleFile
from agentls.core.messages import FileDiff
from agentls.core.ports import Access, PathFacts, ToolOutput
from support.fake_ports import version
from support.tool_calls import workbench


async def test_a_new_file_is_created() -> None:
    bench = workbench()

    prepared = await bench.prepare("write_file", path="src/a.py", content="x\ny\n")

    assert bench.files.texts == {}
    assert prepared.title == "Create src/a.py (2 lines)"
    assert prepared.access == Access("write", (PathFacts("src/a.py", exists=False),))
    diff = (FileDiff(path="src/a.py", old_text=None, new_text="x\ny\n"),)
    assert prepared.diff == diff
    said = "Created src/a.py (2 lines)."
    assert await prepared.run() == ToolOutput(said, summary=said, diff=diff)
    assert bench.files.writes == [("src/a.py", "x\ny\n", None)]
    assert bench.context.seen == {"src/a.py": version("x\ny\n")}


async def test_a_file_is_replaced_from_the_version_that_was_compared() -> None:
    bench = workbench({"a": "1\n2\n3\n"})

    prepared = await bench.prepare("write_file", path="a", content="1\nzwei\n3\n")

    diff = (FileDiff(path="a", old_text="1\n2\n3\n", new_text="1\nzwei\n3\n"),)
    assert (prepared.title, prepared.diff) == ("Write a (+1 -1 lines)", diff)
    assert await prepared.run() == ToolOutput(
        "Wrote a (+1 -1 lines).\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3",
        summary="Wrote a (+1 -1 lines).",
        diff=diff,
    )
    assert bench.files.writes == [("a", "1\nzwei\n3\n", version("1\n2\n3\n"))]
    assert bench.context.seen == {"a": version("1\nzwei\n3\n")}


async def test_content_that_is_there_already_is_not_written() -> None:
    bench = workbench({"a": "1\r\n2\r\n"})

    prepared = await bench.prepare("write_file", path="a", content="1\n2\n")

    assert (prepared.title, prepared.access.effect) == ("Write a (no change)", "read")
    said = "a has exactly this content already; nothing was written."
    assert await prepared.run() == ToolOutput(said, summary=said)
    assert bench.files.writes == []


async def test_a_file_changed_since_the_model_read_it_is_refused() -> None:
    bench = workbench({"a": "1\n"})
    await bench.call("read_file", path="a")
    bench.files.texts["a"] = "2\n"

    with pytest.raises(StaleFile, match=r"^a has changed since you read it\. Read it again\.$"):
        await bench.prepare("write_file", path="a", content="3\n")
    await bench.call("read_file", path="a")
    await bench.call("write_file", path="a", content="3\n")
    assert bench.files.texts == {"a": "3\n"}


async def test_a_file_changed_after_approval_is_refused() -> None:
    bench = workbench({"a": "1\n"})
    prepared = await bench.prepare("write_file", path="a", content="3\n")
    bench.files.texts["a"] = "2\n"

    with pytest.raises(StaleFile):
        await prepared.run()
    assert bench.files.texts == {"a": "2\n"}


async def test_a_file_that_came_up_after_approval_is_refused() -> None:
    bench = workbench()
    prepared = await bench.prepare("write_file", path="a", content="3\n")
    bench.files.texts["a"] = "2\n"

    with pytest.raises(StaleFile):
        await prepared.run()
    assert bench.files.texts == {"a": "2\n"}


async def test_a_model_may_go_on_from_what_it_wrote_itself() -> None:
    bench = workbench()
    await bench.call("write_file", path="a", content="1\n")
    await bench.call("write_file", path="a", content="2\n")
    await bench.call("edit_file", path="a", old_text="2", new_text="3")

    assert bench.files.texts == {"a": "3\n"}


async def test_the_answer_quotes_nothing_of_a_secret() -> None:
    bench = workbench({".env": "KEY=hunter2\nB=1\n"}, secrets={".env"})

    output = await bench.call("write_file", path=".env", content="KEY=hunter2\nB=2\n")

    assert output.content == "Wrote .env (+1 -1 lines)."


async def test_content_must_be_given() -> None:
    with pytest.raises(InvalidArguments, match="'content' is missing"):
        await workbench().prepare("write_file", path="a")


@pytest.mark.parametrize("key", ["contents", "text", "file_text"])
async def test_other_names_for_the_content(key: str) -> None:
    bench = workbench()

    await bench.call("write_file", file_path="a", **{key: ""})

    assert bench.files.texts == {"a": ""}
