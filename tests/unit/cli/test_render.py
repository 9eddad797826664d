from __future__ import annotations

import asyncio
import io
from collections.abc import Callable

import pyte
import pytest

from agentls.agent.session import TurnResult
from agentls.cli.markdown import GrowingText
from agentls.cli.outcomes import Outcome
from agentls.cli.render import TerminalView
from agentls.cli.streams import Output, OutputLost
from agentls.core.errors import Unreachable
from agentls.core.events import BlockDelta, BlockStart, BlockStop, Event, Status, Usage
from agentls.core.messages import FileDiff, Message, Reasoning, ToolCall, ToolResult

WIDTH, HEIGHT = 60, 12


class Screen(io.StringIO):
    """A terminal: what is written becomes cells, lines that scroll away are kept."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.terminal = pyte.HistoryScreen(WIDTH, HEIGHT, history=10_000)
        self.terminal.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self.terminal)
        self.broken = False
        self.peak = 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.broken:
            raise BrokenPipeError
        self._stream.feed(text)
        return super().write(text)

    @property
    def lines(self) -> list[str]:
        """Everything a person can scroll to, without trailing blanks."""
        above = [
            "".join(row[x].data for x in range(WIDTH)).rstrip() for row in self.terminal.history.top
        ]
        return (
            "\n".join([*above, *(line.rstrip() for line in self.terminal.display)])
            .rstrip()
            .split("\n")
        )

    async def until(self, seen: Callable[[list[str]], bool]) -> None:
        async with asyncio.timeout(5):
            while not seen(self.lines):  # noqa: ASYNC110 - a screen has no event to wait for
                await asyncio.sleep(0.01)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    for name, value in {
        "TERM": "xterm-256color",
        "COLUMNS": str(WIDTH),
        "LINES": str(HEIGHT),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Screen()


def view_on(screen: Screen, seen_diffs: frozenset[str] = frozenset()) -> TerminalView:
    return TerminalView(Output(screen), Output(screen), seen_diffs=seen_diffs)


def ended(**changes: object) -> Outcome:
    values = {
        "session_id": "s",
        "text": "",
        "usage": Usage(),
        "files": (),
        "result": TurnResult("end_turn", Usage(), "", "", ()),
        **changes,
    }
    return Outcome(**values)  # type: ignore[arg-type]  # values of each field


async def show(view: TerminalView, *events: Event) -> None:
    for event in events:
        await view.take(event)


def text(index: int, *pieces: str) -> list[Event]:
    return [
        BlockStart(index=index, block="text"),
        *(BlockDelta(index=index, text=piece) for piece in pieces),
        BlockStop(index=index, item=Message.of("assistant", "".join(pieces))),
    ]


CALL = ToolCall(call_id="c", name="edit_file", arguments={"path": "a.py"})


def edited(is_error: bool = False) -> list[Event]:
    result = ToolResult(
        call_id="c",
        name="edit_file",
        content="Error: No \x1b such text." if is_error else "ok",
        summary="1 place",
        is_error=is_error,
        diff=() if is_error else (FileDiff(path="a.py", old_text="a = 1\n", new_text="a = 2\n"),),
    )
    return [
        BlockStart(index=5, block="tool_call", call_id="c", name="edit_file"),
        BlockStop(index=5, item=CALL),
        BlockStart(index=6, block="tool_result", call_id="c", name="edit_file"),
        BlockStop(index=6, item=result),
    ]


async def test_a_whole_turn(screen: Screen) -> None:
    view = view_on(screen)
    await show(
        view,
        Status(state="requesting", message="Reading a.py:1-9"),
        BlockStart(index=0, block="thinking"),
        BlockDelta(index=0, text="First I\nlook \x1b[2J"),
        BlockStop(index=0, item=Reasoning(text="First I\nlook")),
        *text(1, "I will edit **it**."),
        *edited(),
        Status(state="retrying", message="It broke."),
        *text(7, "Done:\n\n", "- one\n- 漢字 😀"),
    )
    view.close(ended())
    assert screen.lines == [
        "· Reading a.py:1-9",
        "∴ First I look \\u{1b}[2J",
        "",
        "I will edit it.",
        "",
        "✓ edit_file a.py - 1 place",
        "  edit a.py (+1 -1)",
        "  @@ -1,1 +1,1 @@",
        "  -a = 1",
        "  +a = 2",
        "! It broke.",
        "",
        "Done:",
        "",
        " • one",
        " • 漢字 😀",
    ]


async def test_a_failed_call_says_why_and_an_approved_change_is_not_shown_twice(
    screen: Screen,
) -> None:
    view = view_on(screen, frozenset({"c"}))
    await show(view, *edited(is_error=True), *edited())
    view.close(ended())
    assert screen.lines == [
        "✗ edit_file a.py - No \\u{1b} such text.",
        "✓ edit_file a.py - 1 place",
    ]


async def test_what_grows_is_drawn_in_place_and_ends_as_if_it_had_come_at_once(
    screen: Screen,
) -> None:
    """A long answer, drawn while it grows, leaves exactly the lines of the finished answer."""
    answer = "# Title\n\nSome words.\n\n" + "".join(f"- item {n}\n" for n in range(40))
    view = view_on(screen)
    await view.take(BlockStart(index=0, block="text"))
    for at in range(0, len(answer), 8):
        await view.take(BlockDelta(index=0, text=answer[at : at + 8]))
        if at in (16, 80, 160, 320):
            last = answer[: at + 8].rstrip("- \n").rsplit("\n", 1)[-1].lstrip("- ")
            await screen.until(lambda lines, last=last: any(last in line for line in lines))  # type: ignore[misc]  # bound
    view.close(ended())
    grown = screen.lines

    at_once = Screen()
    view = view_on(at_once)
    await show(view, *text(0, answer))
    view.close(ended())
    assert grown == at_once.lines
    assert sum(line.strip(" •") == "item 7" for line in grown) == 1


async def test_a_growing_block_never_draws_more_than_the_screen(screen: Screen) -> None:
    view = view_on(screen)
    await view.take(BlockStart(index=0, block="text"))
    await view.take(BlockDelta(index=0, text="```python\n"))
    for n in range(300):
        await view.take(BlockDelta(index=0, text=f"line{n} = {n}\n"))
    await screen.until(lambda lines: any("line299 = 299" in line for line in lines))
    assert len(screen.lines) < HEIGHT
    view.close(ended())
    shown = [line.strip() for line in screen.lines if "line" in line]
    assert shown == [f"line{n} = {n}" for n in range(300)]


async def test_waiting_and_running_are_shown_until_they_end(screen: Screen) -> None:
    view = view_on(screen)
    view.begin()
    await screen.until(lambda lines: "waiting for the model" in lines[-1])
    start, stop, running, done = edited()
    await show(view, start, stop, running)
    await screen.until(lambda lines: lines[-1].endswith("edit_file a.py"))
    await show(view, done)
    view.close(ended())
    assert screen.lines[0] == "✓ edit_file a.py - 1 place"
    assert "waiting" not in "\n".join(screen.lines)


async def test_pausing_leaves_the_terminal_clean_for_a_prompt(screen: Screen) -> None:
    view = view_on(screen)
    await show(view, Status(state="requesting"))
    await screen.until(lambda lines: "waiting" in lines[-1])
    view.pause()
    assert screen.lines == [""]
    assert not screen.terminal.cursor.hidden
    screen.write("Allow? ")
    await asyncio.sleep(0.25)
    assert screen.lines == ["Allow?"]


@pytest.mark.parametrize(
    ("end", "last"),
    [
        (ended(result=None, cancelled=True), "agentls: cancelled"),
        (ended(result=None, error=Unreachable("It is down.")), "agentls: error: It is down."),
    ],
)
async def test_a_turn_cut_short_keeps_what_was_said(
    screen: Screen, end: Outcome, last: str
) -> None:
    view = view_on(screen)
    await show(view, BlockStart(index=0, block="text"), BlockDelta(index=0, text="Half a"))
    view.close(end)
    assert screen.lines == ["Half a", last]
    assert not screen.terminal.cursor.hidden


async def test_a_terminal_that_is_gone_is_reported_with_the_next_event(screen: Screen) -> None:
    view = view_on(screen)
    await show(view, Status(state="requesting"))
    screen.broken = True
    with pytest.raises(OutputLost):
        async with asyncio.timeout(5):
            while True:
                await asyncio.sleep(0.01)
                await view.take(Status(state="requesting"))


async def test_a_defect_in_drawing_reaches_the_turn_and_not_only_a_log(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = view_on(screen)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(GrowingText, "tail", broken)
    await show(view, BlockStart(index=0, block="text"), BlockDelta(index=0, text="a"))
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(5):
            while True:
                await asyncio.sleep(0.01)
                await view.take(Status(state="requesting"))


async def test_a_block_that_ends_late_comes_before_the_next_and_loses_nothing(
    screen: Screen,
) -> None:
    view = view_on(screen)
    await show(
        view,
        BlockStart(index=0, block="thinking"),
        BlockDelta(index=0, text="a thought"),
        BlockStart(index=1, block="text"),
        BlockDelta(index=1, text="first"),
        BlockStop(index=0, item=Reasoning(text="a thought")),
        BlockStart(index=2, block="text"),
        BlockDelta(index=2, text="second"),
        BlockStop(index=1, item=Message.of("assistant", "first")),
        BlockStop(index=2, item=Message.of("assistant", "second")),
    )
    view.close(ended())
    said = [line.strip() for line in screen.lines if line.strip()]
    assert said == ["∴ a thought", "first", "second"]
