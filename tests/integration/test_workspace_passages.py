"""Questions about a real tree: this repository."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentls
from agentls.workspace.documents import Documents
from agentls.workspace.passages import KeywordPassages
from agentls.workspace.ripgrep import Ripgrep
from agentls.workspace.roots import Roots
from support.workspaces import EditorBuffers

PACKAGE = Path(agentls.__file__).parent


def passages(root: Path, buffers: EditorBuffers | None = None) -> KeywordPassages:
    roots = Roots(root)
    return KeywordPassages(roots, Ripgrep(roots), Documents(roots, buffers))


@pytest.mark.parametrize(
    ("question", "path"),
    [
        ("SlidingWindow", "memory/sliding.py"),
        ("ToolCall.parse", "core/messages.py"),
        ("Which exceptions does a tool raise? `PathRefused`", "core/errors.py"),
        ("What does workspace/writes.py do when a process dies?", "workspace/writes.py"),
        ("How are line ends restored when a file is written?", "workspace/line_ends.py"),
        ("How does a glob pattern become a regular expression?", "workspace/globs.py"),
        ("Which files hold secrets?", "workspace/sensitive.py"),
        ("How are orphans of a shell command adopted and killed?", "workspace/supervisor.py"),
        ("where is the dangling link decided", "workspace/links.py"),
    ],
)
async def test_the_right_file_is_among_the_first_three(question: str, path: str) -> None:
    found = await passages(PACKAGE).find(question)
    files = list(dict.fromkeys(passage.path for passage in found))
    assert path in files[:3]


async def test_the_first_question_of_the_readme_finds_code_and_not_the_readme() -> None:
    checkout = PACKAGE.parent.parent
    makefile = (checkout / "Makefile").read_text("utf-8")
    question = next(line for line in makefile.split("\n") if line.startswith("Q ?= "))
    found = [p.path for p in await passages(checkout).find(question.removeprefix("Q ?= "), limit=3)]
    assert "server/agentls/workspace/roots.py" in found
    assert not {"README.md", "Makefile"} & set(found)


async def test_what_was_asked_and_answered_before_is_no_answer(tmp_path: Path) -> None:
    session = "$ ask\nWhich file counts zebras?\nThe file zoo.py counts zebras, all zebras.\n"
    (tmp_path / "README.md").write_text(
        f"# Animals\n\n```console\n{session}```\n\nMany zebras live here.\n", "utf-8"
    )
    (tmp_path / "zoo.py").write_text("def count_zebras(zebras): ...\n", "utf-8")
    found = await passages(tmp_path).find("which file counts the zebras")
    assert {p.path: (p.end_line_no, p.text) for p in found} == {
        "zoo.py": (1, "def count_zebras(zebras): ..."),
        "README.md": (9, "# Animals" + "\n" * 8 + "Many zebras live here."),
    }


async def test_a_passage_is_what_the_file_says_there(tmp_path: Path) -> None:
    filler = "".join(f"filler {number}\n" for number in range(300))
    (tmp_path / "a.py").write_bytes(f"{filler}def find_me():\r\n    pass\r\n{filler}".encode())
    (tmp_path / "b.txt").write_text("nothing here\n")
    (found,) = await passages(tmp_path).find("Where is find_me defined?")
    lines = (tmp_path / "a.py").read_bytes().decode().replace("\r\n", "\n").split("\n")
    assert found.path == "a.py"
    assert found.start_line_no <= 301 <= found.end_line_no
    assert found.text == "\n".join(lines[found.start_line_no - 1 : found.end_line_no])


async def test_best_first_and_no_more_than_asked_for() -> None:
    engine = passages(PACKAGE)
    found = await engine.find("How does the workspace refuse a path?", limit=4)
    assert len(found) == 4
    scores = [passage.score for passage in found]
    assert scores == sorted(scores, reverse=True)
    assert tuple(await engine.find("How does the workspace refuse a path?", limit=2)) == found[:2]


async def test_secrets_and_ignored_files_are_never_shown(tmp_path: Path) -> None:
    for name in (".env", "id_custom", "ignored.txt", "seen.txt"):
        (tmp_path / name).write_text("the frobnicator password\n")
    (tmp_path / ".gitignore").write_text("ignored.txt\n")
    (tmp_path / "link.txt").symlink_to(".env")
    for question in ("frobnicator password?", "frobnicator in `.env`, `id_custom`, `link.txt`?"):
        found = await passages(tmp_path).find(question)
        assert {passage.path for passage in found} - {".gitignore"} == {"seen.txt"}


async def test_a_file_the_question_names_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("print(1)\n")
    (tmp_path / "other.py").write_text("import src.main  # src/main.py\n" * 50)
    found = await passages(tmp_path).find("What does src/main.py do?")
    assert [passage.path for passage in found] == ["src/main.py", "other.py"]
    assert found[0].text == "print(1)"


async def test_open_buffers_are_what_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("frobnicate = 1\n")
    buffers = EditorBuffers({tmp_path / "a.py": ("frobnicate = 2  # unsaved\n", 3)})
    (found,) = await passages(tmp_path, buffers).find("frobnicate")
    assert found.text == "frobnicate = 2  # unsaved"


@pytest.mark.parametrize(
    "question", ["", "???", "what is this", "\ud800 \0", "zzzqqq", "ab cd", "-x --pre=sh"]
)
async def test_questions_without_an_answer_find_nothing(tmp_path: Path, question: str) -> None:
    (tmp_path / "a.py").write_text("frobnicate = 1\n")
    assert tuple(await passages(tmp_path).find(question)) == ()
