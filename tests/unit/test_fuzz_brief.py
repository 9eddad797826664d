"""A brief run of the fuzzer, and proof that it would find what it looks for."""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentls.core.errors import StreamBroken
from agentls.core.events import BlockAbort, BlockStart, BlockStop, Event, Status, Usage
from agentls.core.messages import ToolCall
from fuzz import make_corpus, mutating, reading

_FOLDER = Path(reading.__file__).parent
_CORPUS = _FOLDER / "corpus"
_RUNS = 2_000
# What there are wheels for.
_HAS_ATHERIS = (
    sys.platform == "linux"
    and platform.machine() == "x86_64"
    and (3, 11) <= sys.version_info < (3, 14)
)


@pytest.mark.skipif(not _HAS_ATHERIS, reason="THE FUZZER DID NOT RUN: no atheris for this Python")
def test_some_thousand_inputs_break_no_promise(tmp_path: Path) -> None:
    assert importlib.util.find_spec("atheris") is not None, "atheris is missing from this setup"
    new = tmp_path / "new"
    new.mkdir()
    command = [
        sys.executable,
        str(_FOLDER / "decoders.py"),
        f"-runs={_RUNS}",
        "-seed=1",
        "-max_len=4096",
        f"-artifact_prefix={tmp_path}/",
        str(new),
        *(str(folder) for folder in sorted(_CORPUS.iterdir())),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert f"Done {_RUNS} runs" in done.stderr


@pytest.mark.parametrize("target", reading.TARGETS)
def test_the_seeds_break_no_promise(target: str) -> None:
    seeds = sorted((_CORPUS / target).iterdir())
    assert seeds
    for path in seeds:
        data = path.read_bytes()
        assert reading.TARGETS[data[0]] == target
        for seed in range(5):
            stream = data[reading.HEAD_BYTES :]
            reading.one_input(reading.headed(target, stream, seed))


@pytest.mark.parametrize("target", reading.TARGETS)
def test_seeds_that_wrong_servers_might_send_break_no_promise(target: str) -> None:
    changed = 0
    for path in sorted((_CORPUS / target).iterdir()):
        stream = path.read_bytes()[reading.HEAD_BYTES :]
        for seed in range(6):
            mutant = mutating.mutated(stream, seed)
            assert mutant == mutating.mutated(stream, seed)
            changed += mutant != stream
            reading.one_input(reading.headed(target, mutant, seed))
    assert changed > 15


def test_the_seeds_are_those_of_today_s_recordings() -> None:
    found = {path.relative_to(_CORPUS): path.read_bytes() for path in _CORPUS.rglob("*.bin")}
    assert found == make_corpus.seeds(), "run python tests/fuzz/make_corpus.py"


CALL = BlockStart(index=0, block="tool_call", call_id="a", name="f")
STOP = BlockStop(index=0, item=ToolCall(call_id="a", name="f"))
FINISHED = Status(state="finished", stop_reason="tool_use")
BROKEN = StreamBroken("it broke")


class Played:
    """A reader that gives events whatever it is fed, then perhaps an error."""

    patience_s = None

    def __init__(self, events: list[Event], error: Exception | None = None) -> None:
        self._events = events
        self._error = error

    def feed(self, data: bytes) -> Iterator[Event]:
        return iter(())

    def close(self) -> Iterator[Event]:
        yield from self._events
        if self._error is not None:
            raise self._error


class Counting(Played):
    """A reader whose events depend on the slices."""

    def feed(self, data: bytes) -> Iterator[Event]:
        yield Usage(input_tokens=len(data))


def test_a_reader_that_keeps_its_promises_passes() -> None:
    for played in (
        lambda: Played([CALL, STOP, Usage(), FINISHED]),
        lambda: Played([CALL, BlockAbort(index=0)], BROKEN),
    ):
        reading.judge_reader(played, b"abc", 1)


@pytest.mark.parametrize(
    ("reader", "finding"),
    [
        (Played([CALL], BROKEN), "never ends"),
        (Played([CALL, STOP], BROKEN), "although the reply is not"),
        (Played([CALL, STOP, STOP, Usage(), FINISHED]), "not open"),
        (Played([CALL, STOP, Usage()]), "one finished"),
        (Played([CALL, STOP, FINISHED]), "usage"),
        (Played([Usage(), FINISHED]), "0 calls"),
        (Played([FINISHED], BROKEN), "and then an error"),
        (Counting([], BROKEN), "slices gave"),
    ],
)
def test_a_promise_that_is_broken_is_found(reader: Played, finding: str) -> None:
    with pytest.raises(reading.Finding, match=finding):
        reading.judge_reader(lambda: reader, b"abc", 1)


def test_other_errors_are_not_swallowed() -> None:
    with pytest.raises(KeyError):
        reading.judge_reader(lambda: Played([], KeyError("x")), b"abc", 1)
