"""Where a provider's requests go, and what they carry to be let in.

Owns base URL, key, headers and the choice of proxy and certificates. Sends nothing itself.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

import httpx
from pydantic import SecretStr

from agentls import __version__
from agentls.core.errors import SettingsError, Unauthorized
from agentls.core.redaction import Redactor, carries_key
from agentls.llm.wire.failures import Origin

_KEY_LENGTH = 16
"""A header as long as this may hold a key whatever its name is."""
_MAX_PORT = 65_535
_AUTHORIZATION = "Authorization"
_VERSION = re.compile(r"v\d\w*")
_LIMITS = httpx.Limits(keepalive_expiry=30.0)
"""Tools run for a while between two requests; a new TLS connection would take some 100 ms."""


class Endpoint:
    """A base URL and its credentials.

    User information in the URL is sent as basic authentication, in place of the key, and shows
    nowhere.
    """

    def __init__(
        self,
        base_url: str,
        *,
        provider: str,
        headers: Mapping[str, str] | None = None,
        api_key: SecretStr | None = None,
        key_header: str = _AUTHORIZATION,
        key_variable: str = "",
        uds: Path | None = None,
        secrets: Iterable[str] = (),
    ) -> None:
        """`headers` win over those made here; `uds` replaces the URL's host.

        `key_header` carries the key: as a bearer token in `Authorization`, else as it is. `secrets`
        are further texts that must not be shown.

        Raises:
            SettingsError: the URL cannot be one.
        """
        self._url, user, password = _parse(base_url, provider)
        self._uds = uds
        self._extra = dict(headers or {})
        key = api_key.get_secret_value().strip() if api_key else ""
        basic = base64.b64encode(f"{user}:{password}".encode()).decode() if user or password else ""
        self._authorization: dict[str, str] = {}
        if basic:
            self._authorization[_AUTHORIZATION] = f"Basic {basic}"
        elif key:
            bearer = key_header == _AUTHORIZATION
            self._authorization[key_header] = f"Bearer {key}" if bearer else key
        secret_headers = [
            part
            for name, value in self._extra.items()
            if carries_key(name) or len(value) >= _KEY_LENGTH
            for part in _secret_parts(name, value)
        ]
        self.redact = Redactor([key, basic, password, *secret_headers, *secrets])
        shown = self._url.copy_with(query=None)
        self.origin = Origin(
            provider=provider,
            url=str(shown) if uds is None else "a local socket",
            key_variable=key_variable,
            has_key=bool(key or basic) or any(map(carries_key, self._extra)),
            is_local=uds is not None or _is_loopback(self._url.host),
        )

    def url(self, path: str) -> httpx.URL:
        """The address of a path below the base URL; the queries of both are sent.

        A base URL that ends with the version the path begins with is taken as it is meant.
        """
        path, _, query = path.partition("?")
        base = self._url.path.rstrip("/")
        version, slash, rest = path[1:].partition("/")
        if slash and _VERSION.fullmatch(version) and base.endswith(f"/{version}"):
            path = f"/{rest}"
        url = self._url.copy_with(path=base + path)
        return url.copy_merge_params(dict(parse_qsl(query))) if query else url

    def headers(self) -> dict[str, str]:
        """Headers of every request.

        Raises:
            Unauthorized: a value cannot be sent; httpx would name it in its own error.
        """
        headers = {
            "Accept": "text/event-stream, application/json",
            # Compression makes a stream wait until a block is full.
            "Accept-Encoding": "identity",
            "User-Agent": f"agentls/{__version__}",
        }
        given = {name.lower() for name in self._extra}
        headers |= {name: v for name, v in self._authorization.items() if name.lower() not in given}
        headers |= self._extra
        texts = [text for pair in headers.items() for text in pair]
        if not all(text.isascii() and text.isprintable() for text in texts):
            raise Unauthorized(
                f"The key or a header for {self.origin.provider} holds characters that cannot be "
                "sent.",
                hint="Copy it again, without quotes or line ends.",
                provider=self.origin.provider,
            )
        return headers

    def open_client(self) -> httpx.AsyncClient:
        """A new client. Loopback and sockets know no proxy; elsewhere the environment says.

        Raises:
            SettingsError: the environment names a proxy that cannot be used.
        """
        if self._uds is not None:
            socket = httpx.AsyncHTTPTransport(
                uds=str(self._uds), verify=_no_certificates(), limits=_LIMITS
            )
            return httpx.AsyncClient(transport=socket, trust_env=False)
        if self.origin.is_local:
            verify = _no_certificates() if self._url.scheme == "http" else True
            return httpx.AsyncClient(verify=verify, limits=_LIMITS, trust_env=False)
        try:
            return httpx.AsyncClient(limits=_LIMITS)
        except (ImportError, ValueError, httpx.InvalidURL):
            raise proxy_error() from None


def proxy_error() -> SettingsError:
    """The proxy that the environment names is none. It is not quoted: it may hold a password."""
    return SettingsError(
        "A proxy of the environment cannot be used: its address or its kind is not supported.",
        hint="Check HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY.",
    )


def _parse(base_url: str, provider: str) -> tuple[httpx.URL, str, str]:
    """The URL without user information, the user and the password."""
    try:
        url = httpx.URL(base_url.strip())
        user, password = url.username, url.password
        url = url.copy_with(username=None, password=None, fragment=None)
    except (httpx.InvalidURL, ValueError):
        url, user, password = httpx.URL(""), "", ""
    port = url.port
    possible = port is None or 0 < port <= _MAX_PORT
    if url.scheme not in ("http", "https") or not url.host or not possible or "@" in url.path:
        # The text is not quoted: it may hold a password.
        raise SettingsError(
            f"The base URL for {provider} is no address of a server.",
            hint="It looks like https://api.example.com/v1 or http://localhost:8080/v1. "
            "In a password, / is written %2F and @ is written %40.",
        )
    return url, user, password


def _secret_parts(name: str, value: str) -> Iterator[str]:
    """A header's value, and the keys in it: behind `Bearer`, behind the `=` of a cookie."""
    yield value
    if carries_key(name):
        words = re.split(r"[\s;,]+", value)
        yield from words[1:]
        yield from (word.partition("=")[2] for word in words)


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _no_certificates() -> ssl.SSLContext:
    """Trusts no one, for connections without TLS: loading certificates takes some 40 ms."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
