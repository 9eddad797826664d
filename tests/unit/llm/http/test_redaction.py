from __future__ import annotations

import pytest

from agentls.llm.http.endpoint import Endpoint
from agentls.llm.http.redaction import names_key, secrets_in

KEY = "Zq3x-no-known-prefix"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("api_key", True),
        ("apiKey", True),
        ("API-KEY", True),
        ("x-api-key", True),
        ("access_token", True),
        ("password", True),
        ("Authorization", True),
        ("max_tokens", False),
        ("token_limit", False),
        ("prompt_cache_key", False),
        ("monkey", False),
    ],
)
def test_names_of_keys(name: str, expected: bool) -> None:
    assert names_key(name) is expected


def test_keys_in_a_document_are_found_at_any_depth() -> None:
    body = {
        "top_p": 0.5,
        "password": "one",
        "servers": [{"token": "two", "max_tokens": 5, "url": "u"}, {"api_key": ["three", 4]}],
        "token": {"password": "four", "limit": 5},
    }
    assert list(secrets_in(body)) == ["one", "two", "three", "four"]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Authorization", f"Bearer {KEY}"),
        ("Authorization", f"Token token={KEY}, user=me"),
        ("X-Api-Key", KEY),
        ("Cookie", f"theme=dark; session={KEY}"),
        ("X-Any", KEY),
    ],
)
def test_the_key_in_a_header_is_taken_out_by_itself_too(header: str, value: str) -> None:
    redact = Endpoint("http://h", provider="p", headers={header: value}).redact
    assert redact(f"wrong: {KEY}, {value}").count("[key]") == 2
    assert KEY not in redact(f"wrong: {KEY}, {value}")


def test_the_words_of_an_ordinary_header_stay() -> None:
    redact = Endpoint("http://h", provider="p", headers={"X-Team": "people who make tools"}).redact
    assert redact("people make a request") == "people make a request"


def test_a_key_in_the_body_is_taken_out() -> None:
    redact = Endpoint("http://h", provider="p", secrets=secrets_in({"password": KEY})).redact
    assert redact(f"wrong: {KEY}") == "wrong: [key]"
