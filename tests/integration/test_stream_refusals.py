"""What goes wrong before the first word of a reply, the same for every wire format.

Waits are noted instead of waited: the base is 0.5 s, doubled each time, without jitter.
"""

from __future__ import annotations

import json
import logging
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from agentls.core.errors import (
    BadRequest,
    ModelError,
    RateLimited,
    StreamBroken,
    Unauthorized,
    Unreachable,
)
from agentls.core.events import Event, Ping
from support.fake_server import FakeServer
from support.fault_proxy import FaultProxy
from support.faults import ErrorUnder200, Fault, Nothing, Reset, Status, Truncate
from support.openai_rig import HELLO, KEY, Rig, retrying
from support.wires.all_wires import WIRES
from support.wires.wire import Wire

pytestmark = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)

ASKED = tuple[list[Event], ModelError | None, list[float], int]


async def asked(wire: Wire, *faults: Fault) -> ASKED:
    """Events, error, waits and the number of requests for a reply behind faults."""
    body = wire.said("hello", " world")
    async with (
        FakeServer(*[wire.reply(body)] * 5) as server,
        FaultProxy(server.url, *faults) as proxy,
    ):
        rig = Rig(proxy.url, wire.scheme())
        events, error = await rig.ask()
    said: list[Event] = [event for event in events if not isinstance(event, Ping)]
    return said, error, rig.waits, len(proxy.exchanges)


def bodies() -> dict[str, bytes]:
    """Error bodies as vendors, gateways and proxies write them."""
    documents = {
        "openai": {"error": {"message": "so busy", "type": "server_error", "code": None}},
        "anthropic": {
            "type": "error",
            "error": {"type": "overloaded_error", "message": "so busy"},
            "request_id": "req_1",
        },
        "gemini": {"error": {"code": 503, "message": "so busy", "status": "UNAVAILABLE"}},
        "gemini list": [{"error": {"code": 503, "message": "so busy", "status": "UNAVAILABLE"}}],
        "ollama": {"error": "so busy"},
        "fastapi": {"detail": "so busy"},
    }
    return {name: json.dumps(document).encode() for name, document in documents.items()}


# --- statuses that pass ----------------------------------------------------------------------


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503, 504, 529])
async def test_a_status_that_may_pass_is_tried_again(wire: Wire, code: int) -> None:
    events, error, waits, count = await asked(wire, Status(code), Status(code), Nothing())
    assert (error, events[2:], waits, count) == (None, HELLO, [0.5, 1.0], 3)
    first, second = retrying(events)
    assert first.startswith(f"fake answered {code}")
    assert first.endswith("Trying again in 0.5 s (attempt 2 of 4).")
    assert second.endswith("Trying again in 1.0 s (attempt 3 of 4).")


@pytest.mark.parametrize("code", [429, 503, 529])
async def test_four_attempts_and_no_more(wire: Wire, code: int) -> None:
    for said in bodies().values():
        events, error, waits, count = await asked(wire, Status(code, body=said))
        assert (len(events), waits, count) == (3, [0.5, 1.0, 2.0], 4)
        assert error is not None
        assert (error.status, error.retryable, error.provider) == (code, True, "fake")
        assert error.message.endswith(": so busy.")


DATES = {"in 20 s": (20, 15, 20), "past": (-20, 0.5, 0.5)}


@pytest.mark.parametrize("code", [429, 503, 529])
@pytest.mark.parametrize(
    ("value", "wait_s"),
    [("3", 3.0), ("2.5", 2.5), ("0", 0.5), ("-1", 0.5), ("soon", 0.5), ("", 0.5), ("nan", 0.5),
     ("inf", 0.5), ("1e400", 0.5), ("60", 60.0), ("Fri, 99 Foo 2026", 0.5)],
)  # fmt: skip
async def test_retry_after_in_seconds_or_garbage(
    wire: Wire, code: int, value: str, wait_s: float
) -> None:
    events, error, waits, count = await asked(wire, Status(code, retry_after=value), Nothing())
    assert (error, events[1:], waits, count) == (None, HELLO, [wait_s], 2)


@pytest.mark.parametrize("name", DATES)
async def test_retry_after_as_a_date(wire: Wire, name: str) -> None:
    away_s, low, high = DATES[name]
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=away_s), usegmt=True)
    events, error, waits, count = await asked(wire, Status(429, retry_after=date), Nothing())
    assert (error, events[1:], count) == (None, HELLO, 2)
    (waited,) = waits
    assert low <= waited <= high


async def test_retry_after_in_milliseconds_wins(wire: Wire) -> None:
    fault = Status(429, retry_after="9", headers=(("retry-after-ms", "1250"),))
    events, error, waits, _ = await asked(wire, fault, Nothing())
    assert (error, events[1:], waits) == (None, HELLO, [1.25])


async def test_a_wait_too_long_fails_at_once(wire: Wire) -> None:
    events, error, waits, count = await asked(wire, Status(429, retry_after="3600"))
    assert (events, waits, count, type(error)) == ([], [], 1, RateLimited)
    assert "It asks to wait 3600 s." in str(error)


# --- statuses that stay ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, BadRequest),
        (401, Unauthorized),
        (402, RateLimited),
        (403, Unauthorized),
        (404, BadRequest),
        (405, BadRequest),
        (413, BadRequest),
        (422, BadRequest),
        (501, ModelError),
    ],
)
async def test_a_status_that_stays_is_told_at_once(
    wire: Wire, code: int, kind: type[ModelError]
) -> None:
    for said in (b"", b"<html>", *bodies().values()):
        events, error, waits, count = await asked(wire, Status(code, "1", said))
        assert (events, waits, count) == ([], [], 1)
        assert error is not None
        assert type(error) is kind
        assert (error.status, error.retryable, error.provider) == (code, False, "fake")


# --- connections -----------------------------------------------------------------------------


@pytest.mark.parametrize("end", [Reset(0), Truncate(0)])
async def test_a_connection_that_ends_before_the_first_byte(wire: Wire, end: Fault) -> None:
    events, error, waits, count = await asked(wire, end, end, Nothing())
    assert (error, events[2:], waits, count) == (None, HELLO, [0.5, 1.0], 3)
    assert all("closed the connection before it answered" in said for said in retrying(events))
    events, error, waits, count = await asked(wire, end)
    assert (len(retrying(events)), waits, count) == (3, [0.5, 1.0, 2.0], 4)
    assert isinstance(error, Unreachable)


async def test_nobody_listens(wire: Wire) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, so that nobody else listens there
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        rig = Rig(url, wire.scheme())
        events, error = await rig.ask()
    assert (len(retrying(events)), rig.waits) == (3, [0.5, 1.0, 2.0])
    assert isinstance(error, Unreachable)
    assert str(error) == f"Could not reach fake at {url}: connection refused. Is it running?"


# --- errors under status 200 -----------------------------------------------------------------


async def test_an_error_of_the_format_under_status_200_is_tried_again(wire: Wire) -> None:
    fault = ErrorUnder200(wire.ping + wire.error("so busy"), wire.content_type)
    events, error, waits, count = await asked(wire, fault, fault, Nothing())
    assert (error, events[2:], waits, count) == (None, HELLO, [0.5, 1.0], 3)
    assert all("so busy" in said for said in retrying(events))
    events, error, waits, count = await asked(wire, fault)
    assert error is not None
    assert (len(events), waits, count) == (3, [0.5, 1.0, 2.0], 4)
    assert (error.retryable, error.provider) == (True, "fake")
    assert error.status in (503, 529)


@pytest.mark.parametrize("name", bodies())
async def test_an_error_document_under_status_200_is_no_reply(wire: Wire, name: str) -> None:
    for content_type in ("application/json", wire.content_type):
        fault = ErrorUnder200(bodies()[name], content_type)
        events, error, waits, count = await asked(wire, fault, Nothing())
        assert (error, events[1:], waits, count) == (None, HELLO, [0.5], 2)
        # A list is Gemini's; a line of NDJSON that says nothing known is skipped until the end.
        if (name, wire.name) != ("fastapi", "ollama") and (
            name != "gemini list" or wire.name == "gemini"
        ):
            assert "so busy" in retrying(events)[0]


@pytest.mark.parametrize(
    "report",
    [
        {"error": {"message": "unknown model", "code": 404}},
        {"type": "error", "error": {"type": "not_found_error", "message": "unknown model"}},
        {"error": {"code": 404, "status": "NOT_FOUND", "message": "unknown model"}},
    ],
)
async def test_an_error_under_status_200_that_stays(wire: Wire, report: object) -> None:
    events, error, waits, count = await asked(wire, ErrorUnder200(json.dumps(report).encode()))
    assert (events, waits, count, type(error)) == ([], [], 1, BadRequest)
    assert error is not None
    assert error.status == 404


async def test_garbage_under_status_200_is_no_reply(wire: Wire) -> None:
    for body in (b"\x00\x01\x02", b"upstream connect error", b"{", b"[]", b"null", b"{}", b"17"):
        fault = ErrorUnder200(body, "text/plain")
        events, error, waits, count = await asked(wire, fault)
        assert isinstance(error, StreamBroken), body
        assert (waits, count, error.provider) == ([0.5, 1.0, 2.0], 4, "fake"), body
        assert events == [event for event in events if event.type == "status"], body


# --- keys ------------------------------------------------------------------------------------


async def test_an_echoed_key_shows_nowhere(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "agentls")
    shown = ""
    told = f"bad key {KEY} and sk-abcdef123456 and AIzaSyA1234567890"
    for document in ({"error": {"message": told}}, {"error": told}, [{"error": {"message": told}}]):
        body = json.dumps(document).encode()
        for code in (400, 401, 403, 429, 500):
            headers = (("x-echo", KEY), ("location", f"http://h/?key={KEY}"))
            events, error, _, _ = await asked(wire, Status(code, None, body, headers))
            shown += f"{error!r} {error} {error and error.hint} {events}"
        events, error, _, _ = await asked(wire, ErrorUnder200(body))
        shown += f"{error!r} {error} {events}"
    within = b"".join(wire.frames(wire.said("one"))[:-1]) + wire.error(told)
    events, error, _, _ = await asked(wire, ErrorUnder200(within, wire.content_type))
    shown += f"{error!r} {error} {events}"
    events, error, _, _ = await asked(wire, Status(307, None, b"", headers))
    shown += f"{error!r} {error} {events}"
    shown += "".join(record.getMessage() for record in caplog.records)
    assert "bad key [key]" in shown
    for secret in (KEY, "abcdef123456", "SyA1234567890"):
        assert secret not in shown
