from __future__ import annotations

import html
import json
import urllib.parse

import pytest

from agentls.core.redaction import Redactor, names_key, secrets_in
from agentls.llm.http.endpoint import Endpoint

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


ODD = 'Zq3+/x"Q\\7<-of-no-known-form=='


@pytest.mark.parametrize(
    "echoed",
    [
        ODD,
        json.dumps({"message": f"no: {ODD}"}),
        json.dumps(json.dumps({"message": ODD})),
        json.dumps(ODD).replace("/", "\\/"),
        repr(ODD),
        f"https://h/v1?k={urllib.parse.quote(ODD)}",
        urllib.parse.quote(ODD, safe=""),
        html.escape(ODD),
        f"{ODD[:16]}... is wrong",
        f"{ODD[:13]}****",
    ],
)
def test_a_key_is_taken_out_however_it_is_spelled(echoed: str) -> None:
    shown = Redactor([ODD])(echoed)
    assert "[key]" in shown
    assert "Zq3" not in shown
    assert "known-form" not in shown


@pytest.mark.parametrize(
    "said", ["Bearer token missing", "max_tokens: 123456789", "The token limit is 131072"]
)
def test_words_about_keys_stay(said: str) -> None:
    assert Redactor([ODD])(said) == said


def test_a_password_with_an_at_sign_goes_whole() -> None:
    assert Redactor()("no route to https://me:p@ss@w0rd@h:1/v1") == "no route to https://h:1/v1"


@pytest.mark.parametrize(
    "key",
    [
        "glpat-abcDEF123456",
        "AQ.Ab8RN6abcdefghijk",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.sig_na-ture",
    ],
)
def test_keys_are_known_by_their_form(key: str) -> None:
    assert Redactor()(f"wrong: {key}, try") == "wrong: [key], try"
