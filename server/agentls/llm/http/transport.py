"""HTTP to one provider: sends a request, checks the status, gives the bytes as they come.

Owns the httpx client. Knows nothing of wire formats, and tries nothing twice: `http_model` does,
by this transport's policy. Bodies and keys are never logged. httpx itself logs request lines at
INFO; the application holds its logger at WARNING.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from pathlib import Path

import httpx
from pydantic import JsonValue, SecretStr

from agentls.core.errors import BadRequest, ModelError, Unreachable
from agentls.llm.http import disconnects
from agentls.llm.http.endpoint import Endpoint, proxy_error
from agentls.llm.http.retry import RetryPolicy, retry_after_s
from agentls.llm.wire import failures
from agentls.llm.wire.failures import Origin

_log = logging.getLogger(__name__)

_MAX_ERROR_BYTES = 64 * 1024
_MAX_JSON_BYTES = 16 * 1024 * 1024
_UNPACKED = {"gzip", "deflate"}
"""What httpx reads without further packages."""
_ERROR_BODY_S = 5.0
"""Time limit for the body of an error: its status is known already."""


class Transport:
    """Talks to one base URL. Redirects are never followed, so that a key goes nowhere else."""

    def __init__(
        self,
        base_url: str,
        *,
        provider: str,
        headers: Mapping[str, str] | None = None,
        api_key: SecretStr | None = None,
        key_header: str = "Authorization",
        key_variable: str = "",
        uds: Path | None = None,
        secrets: Iterable[str] = (),
        retry: RetryPolicy | None = None,
        client: httpx.AsyncClient | None = None,
        connect_s: float = 10.0,
        idle_s: float = 120.0,
    ) -> None:
        """Nothing is opened yet.

        Args:
            base_url: as the OpenAI SDK takes it, usually ending in /v1; paths are appended.
            provider: the name used in messages.
            headers: sent with every request; they win over the defaults.
            api_key: sent in `key_header`; there as a bearer token if that is `Authorization`.
            key_header: see above.
            key_variable: the environment variable that a person would set, for messages.
            uds: a Unix socket to connect to instead of the URL's host.
            secrets: further texts that no error may show, such as a key in the body.
            retry: when `HttpModel` asks again.
            client: used instead of an own one; it stays its owner's to close.
            connect_s: time limit for a connection.
            idle_s: longest silence before a byte of the answer; there is no limit in total.

        Raises:
            SettingsError: the URL cannot be one.
        """
        self.endpoint = Endpoint(
            base_url,
            provider=provider,
            headers=headers,
            api_key=api_key,
            key_header=key_header,
            key_variable=key_variable,
            uds=uds,
            secrets=secrets,
        )
        self.retry = retry or RetryPolicy()
        self.redact = self.endpoint.redact
        self._origin = self.endpoint.origin
        self._client = client
        self._owns_client = client is None
        self._timeout = httpx.Timeout(connect=connect_s, read=idle_s, write=idle_s, pool=None)
        self._idle_s = idle_s

    @contextlib.asynccontextmanager
    async def post_stream(
        self, path: str, body: Mapping[str, JsonValue]
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Send one request and give the bytes of its answer.

        Leaving the context closes the response and, unless it was read to its end, the socket;
        so does cancelling.

        Raises:
            ModelError: before the first byte, by what happened.
            StreamBroken: while reading, after the first byte.
        """
        response = await self._send("POST", path, _encode(body, self._origin.provider))
        try:
            async with contextlib.aclosing(self._chunks(response)) as chunks:
                yield chunks
        finally:
            await response.aclose()

    async def get_json(self, path: str, *, timeout_s: float) -> JsonValue:
        """Ask for a JSON document, once, within `timeout_s` seconds.

        Raises:
            ModelError: unreachable, refused, too slow, or not JSON.
        """
        return await self._json("GET", path, None, timeout_s)

    async def post_json(
        self, path: str, body: Mapping[str, JsonValue], *, timeout_s: float
    ) -> JsonValue:
        """As `get_json`, with a question."""
        return await self._json("POST", path, _encode(body, self._origin.provider), timeout_s)

    async def _json(
        self, method: str, path: str, content: bytes | None, timeout_s: float
    ) -> JsonValue:
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._send(method, path, content)
                try:
                    value: JsonValue = json.loads(await self._read(response, _MAX_JSON_BYTES))
                finally:
                    await response.aclose()
        except TimeoutError:
            raise Unreachable(
                f"{self._origin.provider} at {self._origin.url} did not answer within "
                f"{timeout_s:g} s.",
                provider=self._origin.provider,
            ) from None
        except (ValueError, RecursionError):
            raise _no_api(self._origin) from None
        return value

    async def aclose(self) -> None:
        """Close every connection. Closing again does nothing."""
        if self._client is not None and self._owns_client:
            await self._client.aclose()

    async def _send(self, method: str, path: str, content: bytes | None) -> httpx.Response:
        """The response, with its status checked and its body unread."""
        if self._client is None:
            self._client = self.endpoint.open_client()
        headers = self.endpoint.headers()
        if content is not None:
            headers["Content-Type"] = "application/json"
        request = self._client.build_request(
            method,
            self.endpoint.url(path),
            headers=headers,
            content=content,
            timeout=self._timeout,
        )
        try:
            response = await self._client.send(request, stream=True, follow_redirects=False)
        except httpx.HTTPError as error:
            raise disconnects.before_answer(self._origin, error, self._idle_s) from error
        except (OverflowError, ExceptionGroup):
            # What httpx lets through: a port of a proxy that no address can have.
            raise proxy_error() from None
        _log.debug("%s %s: %s", method, self._origin.provider, response.status_code)
        try:
            if not response.is_success:
                raise await self._refusal(response)
            if response.headers.get("content-type", "").lower().startswith("text/html"):
                raise _no_api(self._origin)
            if packing := _packing(response.headers) - _UNPACKED:
                raise disconnects.packed(self._origin, ", ".join(sorted(packing)))
        except BaseException:
            await response.aclose()
            raise
        return response

    async def _refusal(self, response: httpx.Response) -> ModelError:
        body = b""
        with contextlib.suppress(TimeoutError, ModelError):  # then the status alone has to do
            async with asyncio.timeout(_ERROR_BODY_S):
                body = await self._read(response, _MAX_ERROR_BYTES)
        if _packing(response.headers) - _UNPACKED:
            body = b""
        return failures.from_status(
            self._origin,
            response.status_code,
            body,
            retry_after_s=retry_after_s(response.headers),
            location=response.headers.get("location", ""),
            redact=self.redact,
        )

    async def _read(self, response: httpx.Response, max_bytes: int) -> bytes:
        body = bytearray()
        async with contextlib.aclosing(self._chunks(response)) as chunks:
            async for chunk in chunks:
                body += chunk
                if len(body) >= max_bytes:
                    break
        return bytes(body[:max_bytes])

    async def _chunks(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        begun = False
        try:
            async for chunk in response.aiter_bytes():
                if chunk:
                    begun = True
                    yield chunk
        except httpx.DecodingError as error:
            packing = ", ".join(sorted(_packing(response.headers)))
            raise disconnects.packed(self._origin, packing) from error
        except httpx.HTTPError as error:
            meaning = disconnects.midway if begun else disconnects.before_answer
            raise meaning(self._origin, error, self._idle_s) from error


def _encode(body: Mapping[str, JsonValue], provider: str) -> bytes:
    try:
        text = json.dumps(body, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        raise BadRequest(
            "The request holds a value JSON does not have.", provider=provider
        ) from None
    # Half a character (a lone surrogate) has no UTF-8, and servers refuse it as an escape.
    return text.encode("utf-8", "replace")


def _packing(headers: Mapping[str, str]) -> set[str]:
    """How an answer is compressed, although none was asked to be."""
    named = headers.get("content-encoding", "").lower().split(",")
    return {name for each in named if (name := each.strip()) and name != "identity"}


def _no_api(origin: Origin) -> BadRequest:
    return BadRequest(
        f"{origin.provider} at {origin.url} did not answer as an API does.",
        hint="Is the base URL right? For most servers it ends in /v1.",
        provider=origin.provider,
    )
