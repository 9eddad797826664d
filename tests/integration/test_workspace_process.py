"""Real shell commands: what they print, how they end, and that nothing of them stays alive."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from agentls.core.errors import InvalidArguments, ToolError
from agentls.core.ports import CommandResult
from agentls.workspace import supervisor
from agentls.workspace.process import Subprocesses

LINUX = sys.platform == "linux"


@pytest.fixture
def shell(tmp_path: Path) -> Subprocesses:
    return Subprocesses(tmp_path)


@pytest.fixture
def mark() -> str:
    """Something that tells the processes of one test from all others: an odd length of sleep."""
    return f"1000{uuid.uuid4().int % 10**8}"


def sleepers(mark: str) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [])[:2] == ["sleep", mark]
    ]


def wait_for(mark: str, number: int) -> None:
    deadline = time.monotonic() + 20
    while len(sleepers(mark)) < number:
        assert time.monotonic() < deadline, "the processes did not start"
        time.sleep(0.01)


def wait_for_end(mark: str, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while sleepers(mark):
        assert time.monotonic() < deadline, "the processes did not end"
        time.sleep(0.01)


async def run(shell: Subprocesses, command: str, timeout_s: float = 20.0) -> CommandResult:
    return await shell.run(command, timeout_s=timeout_s)


# --- results ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "exit_code", "output"),
    [
        ("echo out; echo err >&2; echo out", 0, "out\nerr\nout\n"),
        ("exit 3", 3, ""),
        ("kill -9 $$", 137, ""),
        ("true | false", 1, ""),
        ("printf 'gr\\303\\274n \\377'", 0, "grün \ufffd"),
        ("-x 2>/dev/null", 127, ""),
        ("cat; echo done", 0, "done\n"),
        ("read line || echo nothing to read", 0, "nothing to read\n"),
        ("[[ a == a ]] && echo bash", 0, "bash\n"),
        ("tty", 1, "not a tty\n"),
        ("yes | head -1", 0, "y\n"),
        ("cat <<'X'\na\nb\nX", 0, "a\nb\n"),
    ],
)
async def test_output_and_exit_code(
    shell: Subprocesses, command: str, exit_code: int, output: str
) -> None:
    assert await run(shell, command) == CommandResult(exit_code=exit_code, output=output)


async def test_commands_run_in_the_workspace(shell: Subprocesses, tmp_path: Path) -> None:
    result = await run(shell, "pwd; echo x > made")
    assert result.output == f"{tmp_path}\n"
    assert (tmp_path / "made").read_text() == "x\n"


@pytest.mark.parametrize("command", ["", " \n", "a\0b", "\ud800", "x" * 200_000])
async def test_a_command_that_cannot_be_one_is_refused(shell: Subprocesses, command: str) -> None:
    with pytest.raises(InvalidArguments):
        await run(shell, command)


async def test_a_workspace_that_is_gone_says_so(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="could not be started: No such file or directory"):
        await run(Subprocesses(tmp_path / "gone"), "true")


async def test_the_longest_command_runs(shell: Subprocesses) -> None:
    text = "x" * 130_000
    result = await run(shell, f"echo {text} | wc -c")
    assert result.output.strip() == "130001"


# --- environment -----------------------------------------------------------------------------


async def test_commands_see_no_secrets_and_nothing_asks(
    shell: Subprocesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")
    monkeypatch.setenv("AGENTLS_SCRIPT", "hunter2")
    monkeypatch.setenv("INNOCENT_URL", "https://user:hunter2@host/")
    monkeypatch.setenv("BASH_ENV", "/dev/null/hunter2")
    monkeypatch.setenv("KEPT", "kept")
    result = await run(shell, "env; cat /proc/self/environ /proc/$PPID/environ 2>/dev/null")
    assert "hunter2" not in result.output
    assert "KEPT=kept\n" in result.output
    asked = await run(shell, "echo $TERM $PAGER $GIT_TERMINAL_PROMPT; git config --get core.pager")
    assert asked.output == "dumb cat 0\n"


async def test_git_does_not_wait_for_a_password_or_an_editor(
    shell: Subprocesses, tmp_path: Path
) -> None:
    result = await run(
        shell,
        "git init -q . && git -c user.name=a -c user.email=a@b commit --allow-empty; "
        "git credential fill <<< $'protocol=https\\nhost=nowhere.invalid\\n'",
    )
    assert "could not read Username" in result.output
    assert "terminal prompts disabled" in result.output


async def test_a_python_inside_the_workspace_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("python", "python3", "bash", "sh"):
        (tmp_path / name).write_text("#!/bin/sh\ntouch ran\n")
        (tmp_path / name).chmod(0o755)
    for name in ("os.py", "select.py", "sitecustomize.py", "ctypes.py", "time.py"):
        (tmp_path / name).write_text("open('ran', 'w')\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert await run(Subprocesses(tmp_path), "echo fine") == CommandResult(0, "fine\n")
    assert not (tmp_path / "ran").exists()


# --- output without end ----------------------------------------------------------------------


async def test_endless_output_is_capped_and_memory_stays_flat(tmp_path: Path) -> None:
    shell = Subprocesses(tmp_path, max_output_bytes=30_000)
    await run(shell, "true")
    before = psutil.Process().memory_info().rss
    result = await run(shell, "echo first; yes 0123456789", timeout_s=2.0)
    grown = psutil.Process().memory_info().rss - before
    assert result.timed_out
    assert result.output.startswith("first\n0123456789\n")
    assert "bytes left out …]" in result.output
    assert len(result.output) < 31_000
    assert grown < 20_000_000


async def test_the_loop_stays_free_while_a_command_floods(shell: Subprocesses) -> None:
    flooding = asyncio.create_task(run(shell, "yes", timeout_s=1.5))
    longest = 0.0
    while not flooding.done():
        start = time.perf_counter()
        await asyncio.sleep(0.005)
        longest = max(longest, time.perf_counter() - start)
    assert longest < 0.5


async def test_the_end_of_long_output_is_kept(tmp_path: Path) -> None:
    shell = Subprocesses(tmp_path, max_output_bytes=3_000)
    result = await run(shell, "seq 1 100000; echo the end; exit 4")
    assert result.exit_code == 4
    assert result.output.startswith("1\n2\n3\n")
    assert result.output.endswith("99999\n100000\nthe end\n")


# --- ends ------------------------------------------------------------------------------------

FAMILIES = {
    "child": "sleep {mark}",
    "grandchild": "bash -c 'sleep {mark}; true'; true",
    "background": "sleep {mark} & sleep {mark}",
    "pipeline": "sleep {mark} | sleep {mark}",
    "own group": "set -m; sleep {mark} & wait",
    "nohup": "nohup sleep {mark} & wait",
    "deaf": "trap '' TERM INT HUP; sleep {mark}; sleep {mark}",
    "deaf child": "bash -c \"trap '' TERM; sleep {mark}; sleep {mark}\" & wait",
    "stopped": "sleep {mark} & sleep 0.2; kill -STOP $!; wait",
}
SESSIONS = {
    "own session": "setsid sleep {mark} & wait",
    "orphan": "(setsid sleep {mark} &) ; sleep {mark}",
    "daemon": "(setsid bash -c '(sleep {mark} &)' &) ; (sleep {mark} &) ; sleep {mark}",
    "deaf daemon": "(setsid bash -c \"trap '' TERM; sleep {mark}; sleep {mark}\" &) ; sleep {mark}",
}
ALL = FAMILIES | (SESSIONS if LINUX else {})


@pytest.mark.parametrize("family", ALL)
async def test_at_the_time_limit_nothing_stays(shell: Subprocesses, mark: str, family: str) -> None:
    start = time.perf_counter()
    result = await run(shell, "echo begun; " + ALL[family].format(mark=mark), timeout_s=0.4)
    took = time.perf_counter() - start
    assert (result.exit_code, result.timed_out) == (None, True)
    assert result.output.startswith("begun\n")
    assert sleepers(mark) == []
    assert took < 2.4


@pytest.mark.parametrize("family", ALL)
async def test_after_a_cancel_nothing_stays(shell: Subprocesses, mark: str, family: str) -> None:
    running = asyncio.create_task(run(shell, ALL[family].format(mark=mark)))
    await asyncio.to_thread(wait_for, mark, 1)
    start = time.perf_counter()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sleepers(mark) == []
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize("family", ["background", "deaf"])
async def test_where_orphans_cannot_be_adopted_the_process_group_ends(
    tmp_path: Path, mark: str, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere.py"
    elsewhere.write_text(
        "import runpy, sys\nsys.platform = 'darwin'\n"
        f"runpy.run_path({supervisor.__file__!r}, run_name='__main__')\n"
    )
    monkeypatch.setattr(supervisor, "__file__", str(elsewhere))
    shell = Subprocesses(tmp_path)
    assert await run(shell, "echo fine; exit 3") == CommandResult(3, "fine\n")
    left = await run(shell, f"sleep {mark} & sleep 0.1; echo fine")
    assert left.output == "fine\n\n[1 background process was stopped when the command ended]\n"
    await run(shell, FAMILIES[family].format(mark=mark), timeout_s=0.4)
    assert sleepers(mark) == []


@pytest.mark.skipif(not LINUX, reason="elsewhere nobody can see what a supervisor left behind")
@pytest.mark.parametrize("family", ["background", "deaf", "deaf daemon", "own group"])
async def test_a_supervisor_that_does_not_get_to_run_leaves_nothing_behind(
    shell: Subprocesses, mark: str, family: str
) -> None:
    """As on a machine with far too much to do."""
    running = asyncio.create_task(run(shell, ALL[family].format(mark=mark)))
    await asyncio.to_thread(wait_for, mark, 1)
    (supervising,) = [
        process
        for process in psutil.Process().children()
        if supervisor.__file__ in process.cmdline() and mark in process.cmdline()[-1]
    ]
    supervising.suspend()
    start = time.perf_counter()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sleepers(mark) == []
    assert not supervising.is_running()
    assert time.perf_counter() - start < 5.0


async def test_cancelling_a_plain_command_ends_it_in_time(shell: Subprocesses, mark: str) -> None:
    running = asyncio.create_task(run(shell, f"sleep {mark}"))
    await asyncio.to_thread(wait_for, mark, 1)
    start = time.perf_counter()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert time.perf_counter() - start < 0.4


async def test_a_cancel_at_any_moment_leaves_nothing(shell: Subprocesses, mark: str) -> None:
    for steps in range(12):
        running = asyncio.create_task(run(shell, f"setsid sleep {mark} & sleep {mark}"))
        for _ in range(steps * 3):
            await asyncio.sleep(0.002)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert sleepers(mark) == []


@pytest.mark.parametrize(
    ("command", "number"),
    [
        ("sleep {mark} &", 1),
        ("sleep {mark} & sleep {mark} &", 2),
        *([("setsid sleep {mark} &", 1), ("(setsid sleep {mark} &);", 1)] if LINUX else []),
    ],
)
async def test_a_command_that_leaves_a_child_with_the_pipe_returns_at_once(
    shell: Subprocesses, mark: str, command: str, number: int
) -> None:
    start = time.perf_counter()
    result = await run(shell, "echo printed; " + command.format(mark=mark) + " sleep 0.2; exit 5")
    assert time.perf_counter() - start < 2.0
    processes = "process was" if number == 1 else "processes were"
    note = f"\n[{number} background {processes} stopped when the command ended]\n"
    assert result == CommandResult(exit_code=5, output=f"printed\n{note}")
    assert sleepers(mark) == []


async def test_nothing_is_said_of_children_that_ended_by_themselves(shell: Subprocesses) -> None:
    result = await run(shell, "(true &); true & wait; (setsid true &); sleep 0.2; echo fine")
    assert result == CommandResult(exit_code=0, output="fine\n")


def test_when_the_loop_ends_its_commands_end(tmp_path: Path, mark: str) -> None:
    async def leave() -> None:
        shell = Subprocesses(tmp_path)
        running.add(asyncio.create_task(run(shell, f"setsid sleep {mark} & sleep {mark}")))
        await asyncio.to_thread(wait_for, mark, 2)

    running: set[asyncio.Task[CommandResult]] = set()
    asyncio.run(leave())
    assert sleepers(mark) == []


async def test_commands_run_side_by_side(shell: Subprocesses, mark: str) -> None:
    async def one(number: int) -> str:
        return (await run(shell, f"sleep 0.3; setsid sleep {mark} & echo {number}")).output

    start = time.perf_counter()
    outputs = await asyncio.gather(*(one(number) for number in range(6)))
    assert [output.split("\n")[0] for output in outputs] == [str(number) for number in range(6)]
    assert time.perf_counter() - start < 4.0
    assert sleepers(mark) == []


SERVER = """
import asyncio, pathlib, sys
from agentls.workspace import supervisor
from agentls.workspace.process import Subprocesses
asyncio.run(Subprocesses(pathlib.Path(sys.argv[1])).run(sys.argv[2], timeout_s=100))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("family", ["deaf", *(["deaf daemon"] if LINUX else [])])
async def test_when_the_server_dies_its_commands_die(
    tmp_path: Path, mark: str, family: str, number: signal.Signals
) -> None:
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(tmp_path), ALL[family].format(mark=mark)
    )
    await asyncio.to_thread(wait_for, mark, 1)
    server.send_signal(number)
    await server.wait()
    await asyncio.to_thread(wait_for_end, mark, 2.0)


async def test_no_descriptor_task_or_child_is_left(shell: Subprocesses, mark: str) -> None:
    await run(shell, "true")
    descriptors, tasks = psutil.Process().num_fds(), len(asyncio.all_tasks())
    for command in ("echo hi", f"sleep {mark}", f"sleep {mark} &", "yes"):
        await run(shell, command, timeout_s=0.3)
    with pytest.raises(ToolError):
        await run(Subprocesses(Path("/nowhere")), "true")
    assert psutil.Process().num_fds() == descriptors
    assert len(asyncio.all_tasks()) == tasks
    assert psutil.Process().children(recursive=True) == []
