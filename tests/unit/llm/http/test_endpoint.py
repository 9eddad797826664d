from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from agentls.core.errors import SettingsError, Unauthorized
from agentls.llm.http.endpoint import Endpoint

KEY = SecretStr("not-a-pattern-42")


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1/chat/completions"),
        ("https://api.example.com/v1/", "https://api.example.com/v1/chat/completions"),
        (" http://localhost:8080 ", "http://localhost:8080/chat/completions"),
        ("http://[::1]:8080/", "http://[::1]:8080/chat/completions"),
        ("https://h/a b/v1?api-version=1#x", "https://h/a%20b/v1/chat/completions?api-version=1"),
        ("https://u:p@h/v1", "https://h/v1/chat/completions"),
    ],
)
def test_paths_are_appended(base_url: str, url: str) -> None:
    assert str(Endpoint(base_url, provider="p").url("/chat/completions")) == url


@pytest.mark.parametrize(
    "base_url", ["", "localhost:8080", "//h/v1", "ftp://h", "http://", "https://u:secret@", "a b", "http://h:x"]
)  # fmt: skip
def test_what_is_no_url(base_url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Endpoint(base_url, provider="p")
    assert "secret" not in str(caught.value)


def test_headers() -> None:
    endpoint = Endpoint("http://h", provider="p", api_key=KEY, headers={"X-Title": "t"})
    headers = endpoint.headers()
    assert headers.pop("User-Agent").startswith("agentls/")
    assert headers == {
        "Accept": "text/event-stream, application/json",
        "Accept-Encoding": "identity",
        "Authorization": "Bearer not-a-pattern-42",
        "X-Title": "t",
    }


def test_a_user_in_the_url_is_sent_as_basic_and_shown_nowhere() -> None:
    endpoint = Endpoint("https://me:p%40ss-word@h/v1?key=abc", provider="p", api_key=KEY)
    basic = base64.b64encode(b"me:p@ss-word").decode()
    assert endpoint.headers()["Authorization"] == f"Basic {basic}"
    assert endpoint.origin.url == "https://h/v1"
    assert endpoint.redact(f"p@ss-word {basic}") == "[key] [key]"


def test_own_headers_win() -> None:
    endpoint = Endpoint("http://h", provider="p", api_key=KEY, headers={"Authorization": "Own x"})
    assert endpoint.headers()["Authorization"] == "Own x"


@pytest.mark.parametrize(
    ("arguments", "has_key"),
    [
        ({}, False),
        ({"api_key": SecretStr("")}, False),
        ({"api_key": SecretStr(" \n")}, False),
        ({"api_key": KEY}, True),
        ({"headers": {"api-key": "x"}}, True),
        ({"headers": {"X-Title": "x"}}, False),
    ],
)
def test_whether_a_key_is_sent(arguments: dict[str, object], has_key: bool) -> None:
    endpoint = Endpoint("http://h", provider="p", **arguments)  # type: ignore[arg-type]  # table
    assert endpoint.origin.has_key == has_key
    if not arguments.get("headers"):
        assert ("Authorization" in endpoint.headers()) == has_key


def test_a_key_with_a_line_end_is_sent_without_it() -> None:
    endpoint = Endpoint("http://h", provider="p", api_key=SecretStr("abcdef\r\n"))
    assert endpoint.headers()["Authorization"] == "Bearer abcdef"


@pytest.mark.parametrize("key", ["abc\ndef", "schlüssel", "a\x00b", "‘quoted’"])
def test_a_key_that_cannot_be_sent_is_not_named(key: str) -> None:
    endpoint = Endpoint("http://h", provider="p", api_key=SecretStr(key))
    with pytest.raises(Unauthorized) as caught:
        endpoint.headers()
    assert key not in repr(caught.value)


def test_a_header_name_that_cannot_be_sent() -> None:
    with pytest.raises(Unauthorized):
        Endpoint("http://h", provider="p", headers={"X-Schlüssel": "a"}).headers()


def test_headers_that_may_hold_keys_are_taken_out_of_texts() -> None:
    headers = {"X-Title": "agentls", "api-key": "1234567", "X-Other": "abcdefghijklmnop"}
    redact = Endpoint("http://h", provider="p", headers=headers).redact
    assert redact("agentls 1234567 abcdefghijklmnop") == "agentls [key] [key]"


@pytest.mark.parametrize(
    ("base_url", "is_local"),
    [
        ("http://localhost:1", True),
        ("http://api.localhost:1", True),
        ("http://127.0.0.1:1", True),
        ("http://127.9.9.9:1", True),
        ("https://[::1]:1", True),
        ("http://0.0.0.0:1", True),
        ("http://localhost.example.com", False),
        ("http://192.168.0.1", False),
        ("https://api.example.com", False),
    ],
)
async def test_loopback_knows_no_proxy(
    base_url: str, is_local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "")
    endpoint = Endpoint(base_url, provider="p")
    async with endpoint.open_client() as client:
        proxied = client._transport_for_url(endpoint.url("/x")) is not client._transport
    assert (endpoint.origin.is_local, proxied) == (is_local, not is_local)


async def test_a_socket_knows_no_proxy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    endpoint = Endpoint("http://model/v1", provider="p", uds=tmp_path / "s")
    async with endpoint.open_client() as client:
        assert client._transport_for_url(endpoint.url("/x")) is client._transport
    assert endpoint.origin.url == "a local socket"


@pytest.mark.parametrize("proxy", ["gopher://proxy:1", "socks5://proxy:1"])
async def test_a_proxy_that_cannot_be_used(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(SettingsError, match="proxy"):
        await Endpoint("https://api.example.com", provider="p").open_client().aclose()


@pytest.mark.parametrize(
    "url", ["http://me:hun/ter2@h/v1", "http://me:h@h/v1/@x", "https://h/v1/me:hunter2@x"]
)
def test_half_a_password_is_never_taken_for_a_host(url: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Endpoint(url, provider="p")
    assert "%2F" in caught.value.hint
    assert "hun" not in str(caught.value)
