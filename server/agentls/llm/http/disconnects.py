"""What a failure of the connection means: httpx's exceptions as errors a person can act on.

Knows nothing of statuses or bodies; see `failures` for those.
"""

from __future__ import annotations

import os
import re
import socket
import ssl

import httpx

from agentls.core.errors import BadRequest, ModelError, StreamBroken, Unreachable
from agentls.llm.wire.failures import Origin, Silent, Stalled

_NO_HTTP = re.compile(r"illegal (status|header) line")
"""What h11 says of bytes that are not HTTP."""


def before_answer(origin: Origin, error: httpx.HTTPError, idle_s: float) -> ModelError:
    """A request that got no first byte. Certificates and proxies do not heal by waiting."""
    where = f"{origin.provider} at {origin.url}"
    match error:
        case httpx.ConnectTimeout():
            return _unreachable(origin, "the connection timed out")
        case httpx.ProxyError():
            return Unreachable(
                f"Could not reach {where}: the proxy refused the connection.",
                hint="Check HTTPS_PROXY, HTTP_PROXY and NO_PROXY.",
                provider=origin.provider,
            )
        case httpx.ConnectError() if _find(error, ssl.SSLError):
            return Unreachable(
                f"Could not reach {where}: its certificate or its TLS cannot be trusted "
                f"({_reason(error)}).",
                hint="If your network has its own certificates, point SSL_CERT_FILE at them.",
                provider=origin.provider,
                retryable=False,
            )
        case httpx.ConnectError():
            return _unreachable(origin, _reason(error))
        case httpx.LocalProtocolError() | httpx.UnsupportedProtocol():
            return BadRequest(
                f"The request to {where} is not one that can be sent.",
                hint="Check the extra headers and the base URL.",
                provider=origin.provider,
            )
        case httpx.ReadTimeout():
            return Silent(
                f"{where} accepted the request, then said nothing for {idle_s:g} s.",
                hint="A local model that reads a long prompt may need a longer read timeout.",
                provider=origin.provider,
            )
        case httpx.RemoteProtocolError() if _NO_HTTP.search(str(error)):
            return Unreachable(
                f"{where} did not answer in HTTP.",
                hint="Check the base URL: https or http, and the port.",
                provider=origin.provider,
                retryable=False,
            )
        case _:
            return Unreachable(
                f"{where} closed the connection before it answered.", provider=origin.provider
            )


def midway(origin: Origin, error: httpx.HTTPError, idle_s: float) -> StreamBroken:
    """A stream that ended or stalled after its first byte."""
    if isinstance(error, httpx.ReadTimeout):
        return Stalled(
            f"{origin.provider} stopped in the middle of its reply, silent for {idle_s:g} s.",
            provider=origin.provider,
        )
    return StreamBroken(
        f"The connection to {origin.provider} broke in the middle of the reply.",
        provider=origin.provider,
    )


def packed(origin: Origin, packing: str) -> ModelError:
    """An answer that cannot be unpacked. None is asked to be compressed."""
    return ModelError(
        f"The answer of {origin.provider} is compressed ({packing}) and cannot be read.",
        hint="A proxy in between may compress what it passes on: switch that off for this address.",
        provider=origin.provider,
    )


def _unreachable(origin: Origin, reason: str) -> Unreachable:
    hint = "Is it running?" if origin.is_local else "Check the network and the base URL."
    return Unreachable(
        f"Could not reach {origin.provider} at {origin.url}: {reason}.",
        hint=hint,
        provider=origin.provider,
    )


def _find(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """The innermost cause of a kind; a group of attempts counts by its last."""
    found = None
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, kind):
            found = at
        at = (
            at.exceptions[-1]
            if isinstance(at, BaseExceptionGroup)
            else at.__cause__ or at.__context__
        )
    return found


def _reason(error: BaseException) -> str:
    match _find(error, OSError):
        case ssl.SSLCertVerificationError(verify_message=text):
            pass
        case ssl.SSLError(reason=reason):
            text = (reason or "TLS failed").replace("_", " ").lower()
        case socket.gaierror(strerror=text):
            pass
        case OSError(errno=int(number)):
            # asyncio's own text names the address over again.
            text = os.strerror(number)
        case _:
            text = ""
    text = text or "no connection"
    return (text[0].lower() + text[1:]).rstrip(".")
