"""Downloads weights from the model hub over HTTP, going on where an earlier attempt stopped.

Owns the reading of one file into a `.part` file. What the bytes are worth is decided by the caller,
by checksum.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import httpx

from agentls.llm.embedded.catalogue import CatalogueEntry
from agentls.llm.embedded.download import Progress, Report, SourceFailed, size_of

_HUB = "https://huggingface.co"
_ATTEMPTS, _FIRST_ATTEMPTS = 5, 2
"""Failures in a row before the hub is given up: once it has served something, and before."""
_TIMEOUT = httpx.Timeout(30.0, connect=8.0)
_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0
_REPORT_EVERY_BYTES = 64 * 1024
_MAGIC = b"GGUF"
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_TOTAL = re.compile(r"bytes (\d+)-\d+/(\d+)$")


class _Interrupted(Exception):
    """An attempt ended early; the next may go on."""


def fetch(entry: CatalogueEntry, part: Path, progress: Report, environ: Mapping[str, str]) -> None:
    """Make `part` as long as the file wanted.

    Connection failures and server errors are tried again as long as bytes are gained in between;
    a hub that cannot be reached at all is given up at once, because the wheels may be near.

    Raises:
        SourceFailed: the hub cannot be reached or does not serve this file.
        OSError: `part` cannot be written.
    """
    if environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        raise SourceFailed("The hub was left out, because HF_HUB_OFFLINE is set.")
    url = _url(entry, environ)
    gained = False
    failures = 0
    with _client() as client:
        while (before := size_of(part)) < entry.size_bytes:
            try:
                _attempt(client, url, entry, part, progress)
                reason = "it closed the connection early"
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
                if not gained:
                    raise _failed("it cannot be reached") from error
                reason = "it cannot be reached any more"
            except (httpx.HTTPError, _Interrupted) as error:
                reason = str(error) or type(error).__name__
            except httpx.InvalidURL as error:
                raise _failed("HF_ENDPOINT is no web address") from error
            if size_of(part) > before:
                gained, failures = True, 0
            else:
                failures += 1
            if failures >= (_ATTEMPTS if gained else _FIRST_ATTEMPTS):
                raise _failed(f"the download kept breaking off ({reason})")
            if size_of(part) < entry.size_bytes:
                time.sleep(min(_WAIT_S * 2.0**failures, _LONGEST_WAIT_S))


def _client() -> httpx.Client:
    try:
        return httpx.Client(timeout=_TIMEOUT, follow_redirects=True)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise _failed("a proxy of the environment cannot be used") from error


def _url(entry: CatalogueEntry, environ: Mapping[str, str]) -> str:
    base = environ.get("HF_ENDPOINT", "").strip().rstrip("/") or _HUB
    if not base.startswith(("https://", "http://")):
        raise _failed("HF_ENDPOINT is no web address")
    source = entry.hub
    return f"{base}/{source.repository}/resolve/{source.revision}/{source.file}"


def _attempt(
    client: httpx.Client, url: str, entry: CatalogueEntry, part: Path, progress: Report
) -> None:
    have = size_of(part)
    # Without compression, lengths and ranges mean the file's own bytes.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    with client.stream("GET", url, headers=headers) as response:
        start = _start(response, entry, have)
        with part.open("r+b" if part.exists() else "wb") as file:
            file.truncate(start)
            file.seek(start)
            _copy(response, file, start, entry, progress)


def _start(response: httpx.Response, entry: CatalogueEntry, have: int) -> int:
    """Where in the file the body begins.

    Raises:
        SourceFailed: the body is not the file.
        _Interrupted: another attempt may do better.
    """
    status = response.status_code
    if status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
        raise _failed("its file is shorter than the one in the catalogue")
    if status in _PASSING:
        raise _Interrupted(f"it answered {status}")
    if status not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
        raise _failed(f"it answered {status}")
    if response.headers.get("content-type", "").startswith("text/html"):
        raise _failed("something on the way answers with a web page")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise _failed("something on the way compresses the file")
    start, total = 0, response.headers.get("content-length", "")
    if status == httpx.codes.PARTIAL_CONTENT:
        span = _TOTAL.match(response.headers.get("content-range", ""))
        if span is None or int(span[1]) != have:
            raise _failed("it serves another part of the file than was asked for")
        start, total = have, span[2]
    if total.isdecimal() and int(total) != entry.size_bytes:
        raise _failed(f"its file has {total} bytes and not {entry.size_bytes}")
    return start


def _copy(
    response: httpx.Response, file: BinaryIO, start: int, entry: CatalogueEntry, progress: Report
) -> None:
    done = reported = start
    for block in response.iter_raw():
        if done == 0 and block[: len(_MAGIC)] != _MAGIC[: len(block)]:
            raise _failed("what it serves is not a GGUF file")
        if done + len(block) > entry.size_bytes:
            raise _failed(f"its file is longer than {entry.size_bytes} bytes")
        file.write(block)
        done += len(block)
        if done - reported >= _REPORT_EVERY_BYTES:
            file.flush()
            progress(Progress(done, entry.size_bytes, "downloading"))
            reported = done
    progress(Progress(done, entry.size_bytes, "downloading"))


def _failed(reason: str) -> SourceFailed:
    return SourceFailed(f"The hub did not serve it: {reason}.", provider="local")
