"""A raw driver of a language server: frames in, frames out, nothing checked and nothing hidden.

For what a well-behaved client library would never send, and to see exactly what comes back.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]

SERVE = (sys.executable, "-m", "agentls", "serve")


def encode(message: object) -> bytes:
    """A message as one frame."""
    return frame(json.dumps(message).encode())


def frame(body: bytes) -> bytes:
    """A body as one frame."""
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class RawServer:
    """A server process and its stream of messages."""

    def __init__(
        self,
        workspace: Path,
        *,
        command: Sequence[str] = SERVE,
        arguments: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        read: bool = True,
        timeout_s: float = 20.0,
    ) -> None:
        """Start it. With `read` false nobody reads its output until `start_reading`."""
        self.timeout_s = timeout_s
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=workspace,
            env={**clean_environment(workspace), **(env or {})},
        )
        self.messages: list[Json] = []
        self._incoming: queue.Queue[Json | None] = queue.Queue()
        self._errors: list[bytes] = []
        self._next_id = 0
        self._may_read = threading.Event()
        self._may_read.set()
        self._threads = [threading.Thread(target=self._drain_errors, daemon=True)]
        self._threads[0].start()
        if read:
            self.start_reading()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._may_read.set()
        for thread in self._threads:
            thread.join()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    # --- sending -----------------------------------------------------------------------------

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        self.send_bytes(encode(message))

    def notify(self, method: str, params: object = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def send_request(self, method: str, params: object = None) -> int:
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}
        self.send(message)
        return self._next_id

    def answer(self, request: Json, result: object) -> None:
        self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    # --- receiving ---------------------------------------------------------------------------

    def start_reading(self) -> None:
        thread = threading.Thread(target=self._read, daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop_reading(self) -> None:
        """Take nothing more from the pipe, as a client does that hangs."""
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    def wait_for(self, wanted: Callable[[Json], bool], timeout_s: float | None = None) -> Json:
        """The next message that fits; all that come are kept in `messages`."""
        deadline = time.monotonic() + (timeout_s or self.timeout_s)
        while True:
            try:
                message = self._incoming.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no such message; {self.state()}") from None
            if message is None:
                raise AssertionError(f"the server ended; {self.state()}")
            self.messages.append(message)
            self.take(message)
            if wanted(message):
                return message

    def take(self, message: Json) -> None:
        """Look at each message as it is taken in."""

    def response(self, msg_id: int | str | None, timeout_s: float | None = None) -> Json:
        return self.wait_for(lambda m: "method" not in m and m.get("id") == msg_id, timeout_s)

    def request(self, method: str, params: object = None, timeout_s: float | None = None) -> Any:
        """Send a request and give its result."""
        response = self.response(self.send_request(method, params), timeout_s)
        assert "error" not in response, response
        return response["result"]

    def error(self, method: str, params: object = None) -> Json:
        """Send a request and give its error."""
        response = self.response(self.send_request(method, params))
        assert "result" not in response, response
        error: Json = response["error"]
        return error

    def call_from_server(self, method: str, timeout_s: float | None = None) -> Json:
        """The next request or notification of the server with this method."""
        return self.wait_for(lambda m: m.get("method") == method, timeout_s)

    def updates(self) -> list[Json]:
        """The session updates so far, without their session."""
        return [
            message["params"]["update"]
            for message in self.messages
            if message.get("method") == "agent/session/update"
        ]

    def state(self) -> str:
        return f"got {self.messages[-5:]}, stderr:\n{self.stderr()}"

    def stderr(self) -> str:
        return b"".join(self._errors).decode(errors="replace")

    def wait_for_exit(self, timeout_s: float) -> tuple[int, float]:
        """Exit status and how long it took, in seconds."""
        start = time.perf_counter()
        code = self.process.wait(timeout_s)
        return code, time.perf_counter() - start

    # --- common steps ------------------------------------------------------------------------

    def initialize(self, workspace: Path | None = None, **extra: Any) -> Json:
        """The handshake; `extra` replaces or adds members of the parameters."""
        folder = None if workspace is None else [{"uri": workspace.as_uri(), "name": "w"}]
        params = {
            "processId": os.getpid(),
            "rootUri": None,
            "workspaceFolders": folder,
            "capabilities": {},
            **extra,
        }
        result: Json = self.request("initialize", params)
        self.notify("initialized", {})
        return result

    def new_session(self, **params: Any) -> str:
        session_id: str = self.request("agent/session/new", params)["sessionId"]
        return session_id

    def send_prompt(self, session_id: str, text: str = "go", **extra: Any) -> int:
        params = {"sessionId": session_id, "prompt": [{"type": "text", "text": text}], **extra}
        return self.send_request("agent/session/prompt", params)

    # --- threads -----------------------------------------------------------------------------

    def _read(self) -> None:
        assert self.process.stdout is not None
        while (message := read_frame(self.process.stdout)) is not None:
            self._incoming.put(message)
            self._may_read.wait()
        self._incoming.put(None)

    def _drain_errors(self) -> None:
        assert self.process.stderr is not None
        while data := os.read(self.process.stderr.fileno(), 65536):
            self._errors.append(data)


def read_frame(stream: Any) -> Json | None:
    """One message, strictly: a header that is not exactly right fails."""
    header = stream.readline()
    if not header:
        return None
    name, _, length = header.partition(b": ")
    assert name == b"Content-Length", header
    assert stream.readline() == b"\r\n"
    message: Json = json.loads(stream.read(int(length)))
    assert message["jsonrpc"] == "2.0", message
    return message


def clean_environment(home: Path) -> dict[str, str]:
    """An environment without the settings and keys of whoever runs the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG") if name in os.environ}
    return {**kept, "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}


def wait_until(condition: Callable[[], bool], timeout_s: float = 5.0) -> float:
    """Wait for something outside the protocol; gives how long it took, in seconds."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < timeout_s, "it did not come about"
        time.sleep(0.005)
    return time.monotonic() - start
