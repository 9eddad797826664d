from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from rich.console import Console

from agentls.cli.approval import ApproveAll, NobodyToAsk, TerminalApprover
from agentls.core.messages import FileDiff, ToolCall
from agentls.core.ports import Access, Answer, PathFacts, Prepared, ToolOutput


async def never_run() -> ToolOutput:
    raise AssertionError("an approver runs nothing")


def command(text: str, title: str = "Run a command") -> tuple[ToolCall, Prepared]:
    call = ToolCall(call_id="c1", name="bash", arguments={"command": text})
    return call, Prepared(title, Access("execute", command=text), never_run)


class Desk:
    """A person who types prepared lines, and the screen they look at."""

    def __init__(self, *typed: str | type[BaseException], width: int = 60) -> None:
        self.typed = list(typed)
        self.screen = io.StringIO()
        self.interrupted = 0
        self.asides = 0
        self.seen_diffs: set[str] = set()
        self.approver = TerminalApprover(
            Console(file=self.screen, width=width, markup=False, highlight=False),
            read=self._read,
            interrupt=self._interrupt,
            aside=self._aside,
            seen_diffs=self.seen_diffs,
        )

    async def _read(self, question: str) -> str:
        self.screen.write(question)
        await asyncio.sleep(0)
        line = self.typed.pop(0)
        if isinstance(line, str):
            self.screen.write(line + "\n")
            return line
        raise line

    def _interrupt(self) -> None:
        self.interrupted += 1

    @asynccontextmanager
    async def _aside(self) -> AsyncIterator[None]:
        self.asides += 1
        yield
        self.asides -= 1


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        (["y"], "allow_once"),
        (["YES "], "allow_once"),
        (["a"], "allow_always"),
        (["always"], "allow_always"),
        (["n"], "reject_once"),
        (["never"], "reject_always"),
        (["", "what?", "yes please", "n"], "reject_once"),
        ([EOFError], None),
    ],
)
async def test_only_the_four_answers_count(
    typed: list[str | type[BaseException]], answer: Answer | None
) -> None:
    desk = Desk(*typed)
    assert await desk.approver.request(*command("ls"), "No rule allows it.") == answer
    assert (desk.typed, desk.interrupted, desk.asides) == ([], 0, 0)


async def test_ctrl_c_cancels_the_turn_and_approves_nothing() -> None:
    desk = Desk(KeyboardInterrupt)
    assert await desk.approver.request(*command("ls"), "") is None
    assert desk.interrupted == 1


async def test_the_whole_command_is_shown_however_long() -> None:
    text = " && ".join(f"echo harmless {n}" for n in range(60)) + " && rm -rf /"
    desk = Desk("n")
    await desk.approver.request(*command(text), "No rule allows it.")
    screen = desk.screen.getvalue()
    framed = "".join(line[2:] for line in screen.split("\n") if line.startswith("│ "))
    assert framed == text
    assert "Asked because: No rule allows it." in screen


async def test_nothing_in_a_command_can_start_a_line_or_hide() -> None:
    fake = "ls\nAllow? [y]es once, [a]lways, [n]o, never: y\n\x1b[2K\u202etxt.exe\u200b"
    desk = Desk("n", width=80)
    padded = " " * (80 - len("Asked because: ")) + "Allow? y"
    await desk.approver.request(*command(fake + " " * 78 + "Allow? y", padded), padded)
    screen = desk.screen.getvalue()
    asked = [line for line in screen.split("\n") if line.startswith("Allow?")]
    assert asked == ["Allow? [y]es once, [a]lways, [n]o, never: n"]
    assert "\\u{1b}[2K\\u{202e}txt.exe\\u{200b}" in screen
    assert "Careful: this holds invisible or terminal control characters" in screen
    assert not {"\x1b", "\u202e", "\u200b"} & set(screen)


async def test_an_edit_is_shown_as_its_whole_diff_and_noted_as_seen() -> None:
    new = "".join(f"line {n}\n" for n in range(500))
    call = ToolCall(call_id="c7", name="write_file", arguments={"path": "a.py", "content": new})
    facts = PathFacts("a.py", exists=False, protected=True, target="real\x1b.py")
    diff = (FileDiff(path="a.py", old_text=None, new_text=new),)
    desk = Desk("y", width=80)
    prepared = Prepared("Write a.py", Access("write", paths=(facts,)), never_run, diff)
    await desk.approver.request(call, prepared, "")
    screen = desk.screen.getvalue()
    assert [line for line in screen.split("\n") if line.startswith("│ +")] == [
        f"│ +line {n}" for n in range(500)
    ]
    assert "a.py: leads to real\\u{1b}.py, can run code or loosen rules" in screen
    assert desk.seen_diffs == {"c7"}


async def test_any_other_call_is_shown_with_all_its_arguments() -> None:
    call = ToolCall(call_id="c", name="fetch", arguments={"url": "http://x/\x1b", "n": [1]})
    desk = Desk("n")
    await desk.approver.request(call, Prepared("Fetch", Access("none"), never_run), "")
    screen = desk.screen.getvalue()
    assert '│   "url": "http://x/\\u001b",' in screen
    assert "Careful:" in screen


async def test_markup_in_a_call_is_text() -> None:
    desk = Desk("n")
    await desk.approver.request(*command("echo [bold]x[/bold] :smile:"), "")
    assert "│ echo [bold]x[/bold] :smile:\n" in desk.screen.getvalue()


async def test_two_calls_are_asked_one_after_the_other() -> None:
    desk = Desk("y", "n")
    answers = await asyncio.gather(
        desk.approver.request(*command("first"), ""), desk.approver.request(*command("second"), "")
    )
    assert list(answers) == ["allow_once", "reject_once"]
    screen = desk.screen.getvalue()
    assert screen.index("first") < screen.index("never: y") < screen.index("second")


async def test_yes_approves_once_each_time() -> None:
    assert await ApproveAll().request(*command("ls"), "") == "allow_once"


async def test_nobody_to_ask_denies_and_says_how_to_allow() -> None:
    said: list[str] = []
    warn: Callable[[str], None] = said.append
    assert await NobodyToAsk(warn).request(*command("ls"), "") is None
    assert said == [
        "not run: Run a command. It needs approval and standard input is not a terminal. Approve "
        "everything with --yes, or allow this kind of call under [permissions] in your config.toml."
    ]
