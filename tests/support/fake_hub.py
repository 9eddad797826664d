"""A model hub on loopback that misbehaves on demand, one behaviour a request."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Behaviour = Callable[["Request"], None]


class Request(BaseHTTPRequestHandler):
    """One request, as behaviours see it."""

    protocol_version = "HTTP/1.1"
    server: FakeHub

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Range", "")))
        behaviours = self.server.behaviours
        behaviour = behaviours.pop(0) if behaviours else served
        with contextlib.suppress(ConnectionError):
            behaviour(self)

    def log_message(self, format: str, *args: object) -> None:
        pass

    @property
    def data(self) -> bytes:
        """The file."""
        return self.server.data

    @property
    def start(self) -> int:
        """Where the asked range begins."""
        asked = self.headers.get("Range", "bytes=0-")
        return int(asked.removeprefix("bytes=").removesuffix("-"))

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        """Send a whole answer; `Content_Length` may lie."""
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class FakeHub(ThreadingHTTPServer):
    """Serves `data` under any path; `seen` are the paths and ranges asked for."""

    daemon_threads = True

    def __init__(self, data: bytes, behaviours: list[Behaviour]) -> None:
        super().__init__(("127.0.0.1", 0), Request)
        self.data = data
        self.behaviours = behaviours
        self.seen: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        """For HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextlib.contextmanager
def fake_hub(data: bytes, *behaviours: Behaviour) -> Iterator[FakeHub]:
    """A running hub; after its behaviours are used up it behaves."""
    hub = FakeHub(data, list(behaviours))
    thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        thread.join()
        hub.server_close()


# --- behaviours ------------------------------------------------------------------------------


def served(request: Request) -> None:
    """What was asked for, as it should be."""
    if "Range" not in request.headers:
        request.answer(200, request.data)
        return
    last = len(request.data) - 1
    span = f"bytes {request.start}-{last}/{len(request.data)}"
    request.answer(206, request.data[request.start :], Content_Range=span)


def range_ignored(request: Request) -> None:
    """The whole file whatever was asked for."""
    request.answer(200, request.data)


def closed_after(count: int) -> Behaviour:
    """The connection breaks after `count` bytes of the body."""

    def behave(request: Request) -> None:
        body = request.data[request.start :]
        headers = {"Content_Length": str(len(body))}
        if request.start:
            last = len(request.data) - 1
            headers["Content_Range"] = f"bytes {request.start}-{last}/{len(request.data)}"
        request.answer(206 if request.start else 200, body[:count], **headers)
        request.close_connection = True

    return behave


def unannounced(count: int) -> Behaviour:
    """A body without a length that ends after `count` bytes, as if that were all."""

    def behave(request: Request) -> None:
        request.send_response(200)
        request.send_header("Connection", "close")
        request.end_headers()
        request.wfile.write(request.data[:count])
        request.close_connection = True

    return behave


def status(code: int) -> Behaviour:
    """An error."""
    return lambda request: request.answer(code, b"no")


def web_page(request: Request) -> None:
    """What a captive portal says."""
    request.answer(200, b"<html>Log in</html>", Content_Type="text/html; charset=utf-8")


def other_bytes(data: bytes) -> Behaviour:
    """Another file."""
    return lambda request: request.answer(200, data)


def wrong_range(request: Request) -> None:
    """A part that was not asked for."""
    last = len(request.data) - 1
    span = f"bytes 0-{last}/{len(request.data)}"
    request.answer(206, request.data, Content_Range=span)
