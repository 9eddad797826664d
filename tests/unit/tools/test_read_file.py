"""read_file, over in-memory files."""

from __future__ import annotations

import pytest

from agentls.core.errors import InvalidArguments, PathRefused, StaleFile, ToolError
from agentls.core.ports import Access, PathFacts, ToolOutput
from agentls.tools.output import ToolLimits
from support.fake_ports import version
from support.tool_calls import workbench

TEN = "".join(f"line {n}\n" for n in range(1, 11))


async def test_a_file_is_given_as_it_is_and_remembered_as_seen() -> None:
    bench = workbench({"a.py": "x = 1\ny = 2\n"})

    output = await bench.call("read_file", path="a.py")

    assert output == ToolOutput("x = 1\ny = 2", summary="Read a.py")
    assert bench.context.seen == {"a.py": version("x = 1\ny = 2\n")}


async def test_preparing_opens_nothing() -> None:
    bench = workbench({"a.py": "x\n"})

    prepared = await bench.prepare("read_file", path="a.py", start_line=2)

    assert prepared.title == "Read a.py, lines 2 on"
    assert prepared.access == Access("read", (PathFacts("a.py", exists=True),))
    assert bench.context.seen == {}


async def test_the_model_sees_lf_line_ends_only() -> None:
    bench = workbench({"a": "1\r\n2\r3\n\x0c4\u2028\n"})

    assert (await bench.call("read_file", path="a")).content == "1\n2\n3\n\x0c4\u2028"


async def test_a_range_of_lines() -> None:
    bench = workbench({"a": TEN})

    output = await bench.call("read_file", path="a", start_line=3, end_line=4)

    assert output == ToolOutput("[lines 3-4 of 10]\nline 3\nline 4", summary="Read a, lines 3-4")


@pytest.mark.parametrize(("start", "end"), [(9, None), (9, -1), (9, 99), ("9", "10")])
async def test_a_range_up_to_the_end(start: int | str, end: int | str | None) -> None:
    bench = workbench({"a": TEN})

    output = await bench.call("read_file", path="a", start_line=start, end_line=end)

    assert output.content == "[lines 9-10 of 10]\nline 9\nline 10"


async def test_zero_means_the_start() -> None:
    output = await workbench({"a": TEN}).call("read_file", path="a", start_line=0, end_line=1)

    assert output.content == "[lines 1-1 of 10]\nline 1"


async def test_an_empty_file_is_said_to_be_empty() -> None:
    assert (await workbench({"a": ""}).call("read_file", path="a")).content == "[a is empty]"


async def test_a_start_beyond_the_end_says_how_long_the_file_is() -> None:
    bench = workbench({"a": TEN})

    with pytest.raises(ToolError, match=r"^a has only 10 lines; there is no line 11\.$"):
        await bench.call("read_file", path="a", start_line=11)
    assert bench.context.seen == {}


async def test_a_range_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(InvalidArguments, match="end_line 2 is before start_line 5"):
        await workbench({"a": TEN}).prepare("read_file", path="a", start_line=5, end_line=2)


async def test_a_long_file_is_cut_in_the_middle_and_says_how_to_read_on() -> None:
    bench = workbench({"a": "".join(f"line {n}\n" for n in range(1, 5001))})

    content = (await bench.call("read_file", path="a")).content

    lines = content.split("\n")
    assert (lines[0], lines[-1]) == ("line 1", "line 5000")
    (gap,) = [line for line in lines if line.startswith("[…")]
    first = int(lines[lines.index(gap) - 1].removeprefix("line ")) + 1
    last = int(lines[lines.index(gap) + 1].removeprefix("line ")) - 1
    assert gap == (
        f"[… lines {first}-{last} of 5000 left out: "
        f"read them with start_line={first}, end_line={last}]"
    )
    assert 9_500 < len(content.encode()) <= 10_000


@pytest.mark.parametrize("max_bytes", [500, 1_000, 10_000])
@pytest.mark.parametrize(
    "text", ["é" * 3_000_000, ("é" * 900 + "\n") * 500, "\n" * 100_000, "a\n" + "b" * 50_000]
)
async def test_an_answer_stays_within_its_limit(text: str, max_bytes: int) -> None:
    bench = workbench({"a": text}, limits=ToolLimits(max_output_bytes=max_bytes))

    content = (await bench.call("read_file", path="a")).content

    assert len(content.encode()) <= max_bytes + 100


async def test_a_long_line_is_cut_with_a_note() -> None:
    content = (await workbench({"a": "x" * 5_000_000}).call("read_file", path="a")).content

    assert content == "x" * 1000 + "[… 4999000 more characters]"


async def test_a_missing_file_names_files_like_it() -> None:
    bench = workbench({"src/app.py": "", "tests/app.py": "", "b": ""})

    with pytest.raises(ToolError) as caught:
        await bench.prepare("read_file", path="app.py")

    assert str(caught.value) == "there is no file app.py. Did you mean src/app.py or tests/app.py?"


async def test_a_missing_file_without_namesakes() -> None:
    with pytest.raises(ToolError, match=r"there is no file x\*y\. Use glob to list files\."):
        await workbench({"xzy": ""}).prepare("read_file", path="x*y")


async def test_a_path_outside_is_refused() -> None:
    with pytest.raises(PathRefused):
        await workbench({"a": ""}).prepare("read_file", path="../a")


async def test_a_secret_is_named_as_such() -> None:
    bench = workbench({".env": "KEY=1\n"}, secrets={".env"})

    prepared = await bench.prepare("read_file", path=".env")

    assert prepared.access == Access("read", (PathFacts(".env", exists=True, secret=True),))


async def test_a_link_is_shown_with_its_target() -> None:
    bench = workbench({"real": "x"}, links={"link": "real"})

    assert (await bench.prepare("read_file", path="link")).title == "Read link → real"
    assert (await bench.call("read_file", path="link")).content == "x"


async def test_a_link_swapped_after_the_check_is_refused() -> None:
    bench = workbench({"real": "x", ".env": "KEY=1"}, links={"link": "real"})
    prepared = await bench.prepare("read_file", path="link")
    bench.files.links["link"] = ".env"

    with pytest.raises(StaleFile, match="just been replaced"):
        await prepared.run()
    assert bench.context.seen == {}


async def test_hidden_characters_in_a_name_show_in_the_title() -> None:
    bench = workbench({"a\u202eb\n": "x"})

    title = (await bench.prepare("read_file", path="a\u202eb\n")).title

    assert title == "Read a\\u{202e}b ⏎  [contains hidden characters, shown as \\u{…}]"
