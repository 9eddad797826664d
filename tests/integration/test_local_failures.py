"""The embedded engine's child process when it cannot start: a real child, an engine that fails."""

from __future__ import annotations

import json
import os
import stat
import sys
import textwrap
from pathlib import Path

import pytest

from agentls.core.errors import ModelError, NoModel
from agentls.llm.embedded import llama_process
from agentls.llm.embedded.llama_process import LlamaProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix sockets")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a stand-in for llama.cpp's module is written; the child imports it first."""
    folder = tmp_path / "engine"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder / "xllamacpp.py"


PARAMS = """\
import os, sys, time
class Any:
    def __getattr__(self, name):
        value = Any()
        setattr(self, name, value)
        return value
CommonParams = Any
"""


def server(body: str) -> str:
    return f"{PARAMS}def Server(params):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"


async def start(model: str = "m") -> LlamaProcess:
    return await LlamaProcess.start(
        Path("/weights.gguf"), model=model, context_tokens=512, threads=1
    )


def left_over(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("agentls-llm-")]


CORRUPT = """\
sys.stderr.write("0.00.065.339 E llama_model_load: error loading model: tensor 'x' data is not "
    "within the file bounds, model is corrupted or incomplete\\n"
    "0.00.065.360 E cmn  common_init_: failed to load model\\n")
raise RuntimeError("Failed to init server, please check the input params.")
"""
NO_MEMORY = """\
sys.stderr.write("0.00.238.733 E ggml_aligned_malloc: insufficient memory (attempted 8791 MB)\\n"
    "0.00.240.394 E llama_init_from_model: failed to initialize the context\\n")
raise RuntimeError("Failed to init server, please check the input params.")
"""


@pytest.mark.parametrize(
    ("body", "message", "hint"),
    [
        (
            CORRUPT,
            "could not be loaded: tensor 'x' data is not within the file bounds, model is "
            "corrupted or incomplete.",
            "delete it and run `agentls model pull m`",
        ),
        (NO_MEMORY, "could not be loaded: there is not enough memory for it.", "smaller model"),
        ("raise RuntimeError('odd')", "could not be loaded: odd", "damaged"),
        ("os.kill(os.getpid(), 9)", "killed by the system, most likely for want of memory", ""),
        ("os.kill(os.getpid(), 11)", "it crashed (SIGSEGV)", ""),
        ("os.kill(os.getpid(), 6)", "it crashed (SIGABRT)", ""),
        ("sys.stderr.write('bye\\n'); sys.stderr.flush(); os._exit(3)", "with code 3: bye.", ""),
        ("sys.stderr.write('x' * 3_000_000); os._exit(3)", "with code 3: xxx", ""),
    ],
)
async def test_a_failed_start_says_why(
    engine: Path, tmp_path: Path, body: str, message: str, hint: str
) -> None:
    engine.write_text(server(body))
    with pytest.raises(ModelError) as caught:
        await start()
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert len(str(caught.value)) < 700
    assert caught.value.provider == "local"
    assert left_over(tmp_path) == []


async def test_no_engine(engine: Path, tmp_path: Path) -> None:
    engine.write_text("raise ImportError('libgomp.so.1: cannot open shared object file')")
    with pytest.raises(NoModel, match=r"libgomp.*`pip install '\.\[local\]'`"):
        await start()
    assert left_over(tmp_path) == []


async def test_a_platform_without_unix_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("socket.AF_UNIX")
    with pytest.raises(NoModel, match="needs Unix sockets"):
        await start()


async def test_prints_of_the_engine_do_not_reach_the_report(engine: Path) -> None:
    engine.write_text(server("print('hello'); os.write(1, b'{}\\n'); return 1"))
    process = await start()
    try:
        assert process.running
    finally:
        await process.stop()
    assert not process.running


async def test_prints_before_the_worker_starts_do_not_reach_the_report(engine: Path) -> None:
    (engine.parent / "sitecustomize.py").write_text(
        "print('hello', flush=True); print('5', flush=True); print('x' * 200_000, flush=True)"
    )
    engine.write_text(server("return 1"))
    process = await start()
    try:
        assert process.running
    finally:
        await process.stop()


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"GOMP_SPINCOUNT": "500"}),
        ({"GOMP_SPINCOUNT": "9"}, {"GOMP_SPINCOUNT": "9"}),
        ({"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"}),
    ],
)
async def test_threads_soon_sleep_when_they_wait_unless_the_user_wants_otherwise(
    engine: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own: dict[str, str],
    expected: dict[str, str],
) -> None:
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    seen = tmp_path / "seen"
    engine.write_text(
        server(f"import json; json.dump(dict(os.environ), open({str(seen)!r}, 'w')); return 1")
    )
    process = await start()
    await process.stop()
    environ = json.loads(seen.read_text())
    assert {name: environ[name] for name in names if name in environ} == expected


async def test_the_child_sees_no_key_and_no_one_else_sees_its_socket(
    engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "secret-2")
    monkeypatch.setenv("PYTHON_INDEX_TOKEN", "secret-3")
    seen = tmp_path / "seen"
    engine.write_text(server(f"open({str(seen)!r}, 'w').write(repr(dict(os.environ))); return 1"))
    process = await start()
    try:
        folder = process.socket.parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.parent == tmp_path
    finally:
        await process.stop()
    assert "PATH" in seen.read_text()
    assert "secret" not in seen.read_text()
    assert left_over(tmp_path) == []


async def test_stopping_ends_a_child_that_does_not_listen(
    engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llama_process, "_END_S", 0.1)
    # Ready, but closed stdin goes unnoticed.
    engine.write_text(
        server("os.read = lambda *_: time.sleep(3600); sys.stderr.write('up'); return 1")
    )
    process = await start()
    await process.stop()
    await process.stop()
    assert not process.running


async def test_folders_of_killed_processes_are_swept(engine: Path, tmp_path: Path) -> None:
    dead = tmp_path / "agentls-llm-99999999-abc"
    alive = tmp_path / f"agentls-llm-{os.getppid()}-abc"
    for folder in (dead, alive):
        folder.mkdir()
    engine.write_text(server("return 1"))
    process = await start()
    await process.stop()
    assert left_over(tmp_path) == [alive.name]


async def test_a_long_temporary_path_still_gives_a_socket(
    engine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    engine.write_text(server("return 1"))
    process = await start()
    try:
        assert len(os.fsencode(process.socket)) <= 100
    finally:
        await process.stop()
