from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentls.core.errors import StaleFile
from agentls.lsp.client import Client, path_of
from agentls.lsp.editor import EditorBuffers
from agentls.lsp.failures import RpcError
from agentls.lsp.mirror import Mirror
from agentls.lsp.positions import Position, Range

ABLE = Client(applies_edits=True, versioned_edits=True)


class FakeEditor:
    """An editor with one open document; `obey` says what it does with an edit."""

    def __init__(self, path: Path, text: str, client: Client = ABLE) -> None:
        self.uri = path.as_uri()
        self.path = path
        self.mirror = Mirror(path_of)
        self.mirror.open(self.uri, 3, text)
        self.asked: list[Any] = []
        self.obey: Callable[[Any], object] = self.make_edit
        self.buffers = EditorBuffers(
            self, self.mirror, client, apply_timeout_s=0.01, change_timeout_s=0.02
        )

    async def ask(self, method: str, params: object, *, timeout_s: float) -> object:
        assert method == "workspace/applyEdit"
        self.asked.append(params)
        return self.obey(params)

    def make_edit(self, params: Any) -> object:
        """Apply the edits, tell about the change, and answer."""
        edit = params["edit"]
        edits = (
            edit["changes"][self.uri] if "changes" in edit else edit["documentChanges"][0]["edits"]
        )
        self.change(*((self.as_range(e["range"]), e["newText"]) for e in reversed(edits)))
        return {"applied": True}

    def change(self, *changes: tuple[Range | None, str]) -> None:
        document = self.mirror.get(self.uri)
        assert document is not None
        self.mirror.change(self.uri, document.version + 1, changes)

    @staticmethod
    def as_range(value: Any) -> Range:
        return Range(Position(**value["start"]), Position(**value["end"]))

    def text(self) -> str:
        document = self.mirror.get(self.uri)
        assert document is not None
        return document.text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


async def test_an_edit_goes_out_with_its_version_and_comes_back(path: Path) -> None:
    editor = FakeEditor(path, "one\ntwo\n")
    assert editor.buffers.open_text(path) == ("one\ntwo\n", 3)
    assert await editor.buffers.replace(path, "one\n2\n", base=3) == 4
    assert editor.buffers.open_text(path) == ("one\n2\n", 4)
    where = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 3}}
    assert editor.asked == [
        {
            "label": "agentls",
            "edit": {
                "documentChanges": [
                    {
                        "textDocument": {"uri": path.as_uri(), "version": 3},
                        "edits": [{"range": where, "newText": "2"}],
                    }
                ]
            },
        }
    ]


async def test_a_client_without_versions_gets_plain_changes(path: Path) -> None:
    editor = FakeEditor(path, "one", Client(applies_edits=True))
    assert await editor.buffers.replace(path, "one!", base=3) == 4
    assert list(editor.asked[0]["edit"]) == ["changes"]


async def test_what_is_not_open_is_not_held(path: Path, tmp_path: Path) -> None:
    editor = FakeEditor(path, "x")
    assert editor.buffers.open_text(tmp_path / "other") is None
    with pytest.raises(StaleFile):
        await editor.buffers.replace(tmp_path / "other", "y", base=3)
    assert editor.asked == []


async def test_the_same_text_needs_no_edit(path: Path) -> None:
    editor = FakeEditor(path, "x")
    assert await editor.buffers.replace(path, "x", base=3) == 3
    assert editor.asked == []


async def test_another_version_is_refused_before_anything_is_sent(path: Path) -> None:
    editor = FakeEditor(path, "x")
    for base in (2, 4):
        with pytest.raises(StaleFile, match=r"changed in the editor\. Read it again\."):
            await editor.buffers.replace(path, "y", base=base)
    assert editor.asked == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            {"applied": False, "failureReason": "moved\u202e"},
            "refused to edit a.txt: moved\\u{202e}",
        ),
        ({"applied": False}, "refused to edit a.txt."),
        ({"applied": "yes"}, "refused"),
        ({"applied": 1}, "refused"),
        (None, "refused"),
        (RpcError(-1, "broken"), "could not edit a.txt: broken"),
        (TimeoutError(), "did not answer"),
    ],
)
async def test_an_edit_that_was_not_applied_is_stale(
    path: Path, answer: object, message: str
) -> None:
    editor = FakeEditor(path, "x")

    def refuse(_: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    editor.obey = refuse
    with pytest.raises(StaleFile) as raised:
        await editor.buffers.replace(path, "y", base=3)
    assert message in str(raised.value)
    assert editor.text() == "x"


async def test_applied_without_any_change_is_not_believed(path: Path) -> None:
    editor = FakeEditor(path, "x")
    editor.obey = lambda _: {"applied": True}
    with pytest.raises(StaleFile, match="did not show the edit"):
        await editor.buffers.replace(path, "y", base=3)


async def test_applied_with_only_the_users_own_change_is_not_believed(path: Path) -> None:
    editor = FakeEditor(path, "x")

    def drop_it(_: object) -> object:
        editor.change((None, "x typed"))
        return {"applied": True}

    editor.obey = drop_it
    with pytest.raises(StaleFile, match="did not show the edit"):
        await editor.buffers.replace(path, "y", base=3)
    assert editor.text() == "x typed"


async def test_a_change_that_comes_after_the_answer_counts(path: Path) -> None:
    editor = FakeEditor(path, "x")

    def later(params: Any) -> object:
        asyncio.get_running_loop().call_later(0.005, editor.make_edit, params)
        return {"applied": True}

    editor.obey = later
    assert await editor.buffers.replace(path, "y", base=3) == 4


async def test_typing_right_after_the_edit_leaves_it_made(path: Path) -> None:
    editor = FakeEditor(path, "x")

    def and_type(params: Any) -> object:
        answer = editor.make_edit(params)
        editor.change((None, "y typed"))
        return answer

    editor.obey = and_type
    # The version of the edit, not of the typing: a write on top of it is refused as stale.
    assert await editor.buffers.replace(path, "y", base=3) == 4
    with pytest.raises(StaleFile):
        await editor.buffers.replace(path, "z", base=4)


async def test_an_editors_own_line_ends_are_no_difference(path: Path) -> None:
    editor = FakeEditor(path, "one\r\ntwo\r\n")

    def normalise(_: object) -> object:
        editor.change((None, "1\r\n2\r\n"))
        return {"applied": True}

    editor.obey = normalise
    assert await editor.buffers.replace(path, "1\n2\n", base=3) == 4


async def test_a_document_closed_or_out_of_step_meanwhile_is_stale(path: Path) -> None:
    for happens in (Mirror.close, lambda mirror, uri: mirror.distrust(uri, "x")):
        editor = FakeEditor(path, "x")

        def obey(_: object, editor: FakeEditor = editor, happens: Any = happens) -> object:
            happens(editor.mirror, editor.uri)
            return {"applied": True}

        editor.obey = obey
        with pytest.raises(StaleFile):
            await editor.buffers.replace(path, "y", base=3)


async def test_a_document_out_of_step_is_neither_read_nor_edited(path: Path) -> None:
    editor = FakeEditor(path, "x")
    editor.mirror.distrust(editor.uri, "version 1 came after version 3")
    with pytest.raises(StaleFile, match="version 1 came after version 3"):
        editor.buffers.open_text(path)
    with pytest.raises(StaleFile):
        await editor.buffers.replace(path, "y", base=3)
    assert editor.asked == []


@pytest.fixture
def link(path: Path) -> Path:
    path.write_text("x")
    link = path.with_name("link.txt")
    link.symlink_to(path)
    return link


async def test_a_file_open_twice_with_different_texts_is_refused(path: Path, link: Path) -> None:
    editor = FakeEditor(path, "x")
    editor.mirror.open(link.as_uri(), 1, "x")
    assert editor.buffers.open_text(path) == ("x", 3)
    editor.change((None, "changed"))
    with pytest.raises(StaleFile, match="open twice"):
        editor.buffers.open_text(path)


async def test_an_editor_that_takes_no_edits_is_never_written_past(path: Path) -> None:
    editor = FakeEditor(path, "x", Client())
    assert editor.buffers.open_text(path) == ("x", 3)
    with pytest.raises(StaleFile, match="takes no edits"):
        await editor.buffers.replace(path, "y", base=3)
    assert editor.asked == []


async def test_edits_of_one_document_are_made_one_at_a_time(path: Path) -> None:
    class Slow(FakeEditor):
        """Knows no versions and takes its time, like some editors."""

        async def ask(self, method: str, params: object, *, timeout_s: float) -> object:
            await asyncio.sleep(0)
            return await super().ask(method, params, timeout_s=timeout_s)

    editor = Slow(path, "one\ntwo\nthree\n", Client(applies_edits=True))
    results = await asyncio.gather(
        editor.buffers.replace(path, "two\nthree\n", base=3),
        editor.buffers.replace(path, "one\nTWO\nthree\n", base=3),
        return_exceptions=True,
    )
    assert results[0] == 4
    assert isinstance(results[1], StaleFile)
    assert editor.text() == "two\nthree\n"
    assert len(editor.asked) == 1


async def test_a_document_whose_lines_the_editor_counts_otherwise_is_not_edited(
    path: Path,
) -> None:
    editor = FakeEditor(path, "x\ra\nb\n")
    editor.mirror.splits_at_cr = False
    assert editor.buffers.open_text(path) == ("x\ra\nb\n", 3)
    with pytest.raises(StaleFile, match="carriage return"):
        await editor.buffers.replace(path, "x\ra\nB\n", base=3)
    assert editor.asked == []
