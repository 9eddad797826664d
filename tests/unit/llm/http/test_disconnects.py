from __future__ import annotations

import socket
import ssl

import httpx
import pytest

from agentls.core.errors import BadRequest, ModelError, StreamBroken, Unreachable
from agentls.llm.http.disconnects import before_answer, midway
from agentls.llm.wire.failures import Origin, Silent

FAR = Origin(provider="p", url="https://h/v1")
NEAR = Origin(provider="p", url="http://localhost/v1", is_local=True)


def caused(error: httpx.HTTPError, *causes: BaseException) -> httpx.HTTPError:
    at: BaseException = error
    for cause in causes:
        at.__cause__ = cause
        at = cause
    return error


REFUSED = ConnectionRefusedError(111, "Connect call failed ('::1', 1)")
CERTIFICATE = ssl.SSLCertVerificationError(1, "[SSL: X] certificate verify failed (_ssl.c:1)")
CERTIFICATE.verify_message = "self-signed certificate"


FAR_OFF = "Could not reach p at https://h/v1: "
NEAR_BY = "Could not reach p at http://localhost/v1: "
NETWORK = " Check the network and the base URL."
CASES: list[tuple[Origin, httpx.HTTPError, type[ModelError], bool, str]] = [
    (
        FAR,
        httpx.ConnectTimeout(""),
        Unreachable,
        True,
        f"{FAR_OFF}the connection timed out.{NETWORK}",
    ),
    (
        NEAR,
        caused(httpx.ConnectError(""), OSError("All attempts failed"), REFUSED),
        Unreachable,
        True,
        f"{NEAR_BY}connection refused. Is it running?",
    ),
    (
        NEAR,
        caused(httpx.ConnectError(""), OSError(""), ExceptionGroup("", [OSError("x"), REFUSED])),
        Unreachable,
        True,
        f"{NEAR_BY}connection refused. Is it running?",
    ),
    (
        FAR,
        caused(httpx.ConnectError(""), socket.gaierror(-2, "Name or service not known")),
        Unreachable,
        True,
        f"{FAR_OFF}name or service not known.{NETWORK}",
    ),
    (FAR, httpx.ConnectError(""), Unreachable, True, f"{FAR_OFF}no connection.{NETWORK}"),
    (
        FAR,
        caused(httpx.ConnectError(""), CERTIFICATE),
        Unreachable,
        False,
        f"{FAR_OFF}its certificate or its TLS cannot be trusted (self-signed certificate). "
        "If your network has its own certificates, point SSL_CERT_FILE at them.",
    ),
    (
        FAR,
        httpx.ProxyError("407 secret"),
        Unreachable,
        True,
        f"{FAR_OFF}the proxy refused the connection. Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.",
    ),
    (
        FAR,
        httpx.LocalProtocolError("Illegal header name b'secret'"),
        BadRequest,
        False,
        "The request to p at https://h/v1 is not one that can be sent. "
        "Check the extra headers and the base URL.",
    ),
    (
        FAR,
        httpx.ReadTimeout(""),
        Silent,
        True,
        "p at https://h/v1 accepted the request, then said nothing for 9 s. "
        "A local model that reads a long prompt may need a longer read timeout.",
    ),
    *(
        (
            FAR,
            error,
            Unreachable,
            True,
            "p at https://h/v1 closed the connection before it answered.",
        )
        for error in (httpx.RemoteProtocolError("x"), httpx.ReadError("x"), httpx.WriteError("x"))
    ),
]


@pytest.mark.parametrize(("origin", "error", "kind", "retryable", "text"), CASES)
def test_before_an_answer(
    origin: Origin, error: httpx.HTTPError, kind: type[ModelError], retryable: bool, text: str
) -> None:
    told = before_answer(origin, error, idle_s=9.0)
    assert (type(told), told.retryable, told.provider, str(told)) == (kind, retryable, "p", text)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (httpx.ReadTimeout(""), "p stopped in the middle of its reply, silent for 9 s."),
        (httpx.RemoteProtocolError("x"), "The connection to p broke in the middle of the reply."),
        (httpx.ReadError("x"), "The connection to p broke in the middle of the reply."),
    ],
)
def test_midway(error: httpx.HTTPError, text: str) -> None:
    told = midway(FAR, error, idle_s=9.0)
    assert (isinstance(told, StreamBroken), told.retryable, str(told)) == (True, True, text)
