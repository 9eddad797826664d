from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from agentls.core.errors import (
    BadRequest,
    ModelError,
    RateLimited,
    StreamBroken,
    Unauthorized,
)
from agentls.core.redaction import Redactor
from agentls.llm.wire.failures import Origin, from_report, from_status

ORIGIN = Origin(
    provider="groq",
    url="https://api.example.com/v1",
    has_key=True,
    key_variable="GROQ_API_KEY",
)
NOTHING = Redactor()


def refused(status: int, body: JsonValue = None, **more: float) -> ModelError:
    data = b"" if body is None else json.dumps(body).encode()
    retry_after_s = more.get("retry_after_s")
    return from_status(ORIGIN, status, data, retry_after_s=retry_after_s, redact=NOTHING)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, BadRequest, False),
        (401, Unauthorized, False),
        (402, RateLimited, False),
        (403, Unauthorized, False),
        (404, BadRequest, False),
        (408, ModelError, True),
        (413, BadRequest, False),
        (422, BadRequest, False),
        (425, ModelError, True),
        (429, RateLimited, True),
        (500, ModelError, True),
        (501, ModelError, False),
        (502, ModelError, True),
        (503, ModelError, True),
        (504, ModelError, True),
        (529, ModelError, True),
        (599, ModelError, False),
        (302, BadRequest, False),
    ],
)
def test_statuses(status: int, kind: type[ModelError], retryable: bool) -> None:
    error = refused(status)
    assert (type(error), error.retryable) == (kind, retryable)
    assert (error.provider, error.status) == ("groq", status)
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (
            401,
            {"error": {"message": "Bad key."}},
            "groq answered 401 (unauthorized): Bad key. Check GROQ_API_KEY.",
        ),
        (
            429,
            {"error": "slow down"},
            "groq answered 429 (too many requests): slow down. "
            "Wait a little, or choose another model.",
        ),
        (400, {"detail": [{"msg": "x"}]}, 'groq answered 400 (bad request): [{"msg": "x"}].'),
        (400, [{"error": {"message": "in a list"}}], "groq answered 400 (bad request): in a list."),
        (
            418,
            {"message": "a\n  b\u202e\x1b[31m"},
            "groq answered 418 (i'm a teapot): a b\\u{202e}\\u{1b}[31m.",
        ),
        (
            529,
            None,
            "groq answered 529 (overloaded). "
            "The server has a problem: try again later, or choose another model.",
        ),
        (400, {}, "groq answered 400 (bad request)."),
        (400, 5, "groq answered 400 (bad request)."),
    ],
)
def test_texts(status: int, body: JsonValue, text: str) -> None:
    assert str(refused(status, body)) == text


def test_no_key_at_all() -> None:
    origin = Origin(provider="my-host", url="http://h")
    error = from_status(origin, 401, b"", redact=NOTHING)
    assert error.hint == "No key was sent: set api_key of my-host in your settings."


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("http://h:1/v1", "Check the model's name and the base URL http://h:1/v1."),
        (
            "http://h:1",
            "Check the model's name and the base URL http://h:1, "
            "which for most servers ends in /v1.",
        ),
    ],
)
def test_not_found(url: str, hint: str) -> None:
    error = from_status(Origin(provider="p", url=url), 404, b"<html>", redact=NOTHING)
    assert (error.message, error.hint) == ("p answered 404 (not found).", hint)


def test_a_redirect_names_its_target_without_secrets() -> None:
    error = from_status(ORIGIN, 307, b"", location="https://u:p@x.example/v1", redact=NOTHING)
    assert error.hint == (
        "Redirects to https://x.example/v1 are not followed: set the final address as the base URL."
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": "context_length_exceeded", "message": "Too long"}}),
        (400, {"error": {"message": "This model's maximum context length is 8192 tokens."}}),
        (
            400,
            {
                "error": {
                    "type": "exceed_context_size_error",
                    "message": "request (931 tokens) exceeds the available context size "
                    "(512 tokens), try increasing it",
                }
            },
        ),
        (500, {"error": {"message": "the context size has been exceeded"}}),
        (413, {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}),
    ],
)
def test_context_length(status: int, body: JsonValue) -> None:
    error = refused(status, body)
    assert (type(error), error.retryable) == (BadRequest, False)
    assert "longer than the model's context" in error.hint


def test_a_word_about_context_is_not_enough() -> None:
    assert refused(400, {"error": {"message": "unknown field context_window"}}).hint == ""


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}},
        {"error": {"message": "check your plan and billing details"}},
    ],
)
def test_an_empty_account_is_not_worth_a_retry(body: JsonValue) -> None:
    error = refused(429, body)
    assert (type(error), error.retryable) == (RateLimited, False)
    assert "no credit" in error.hint


def test_retry_after_is_kept_and_told() -> None:
    error = refused(503, retry_after_s=90)
    assert (error.retry_after_s, error.hint[:23]) == (90, "It asks to wait 90 s. T")


def test_a_long_body_is_cut_and_a_page_left_out() -> None:
    long = from_status(ORIGIN, 400, b"x" * 10_000, redact=NOTHING)
    assert long.message == f"groq answered 400 (bad request): {'x' * 599}…."
    page = from_status(ORIGIN, 400, b" <!doctype html><p>secret", redact=NOTHING)
    assert page.message == "groq answered 400 (bad request)."
    junk = from_status(ORIGIN, 400, b"\xff\xfe{", redact=NOTHING)
    assert junk.message == "groq answered 400 (bad request): \ufffd\ufffd{."


def test_a_status_without_a_name() -> None:
    assert refused(599).message == "groq answered 599."


def test_reports_without_a_kind_are_broken_streams() -> None:
    reports: list[object] = ["boom", {"message": "boom"}, {"code": "oops", "message": "boom"}, None]
    errors = [from_report("p", report, NOTHING) for report in reports]
    assert [type(error) for error in errors] == [StreamBroken] * 4
    assert errors[-1].message == "p reported an error: no reason given."


def test_a_report_of_context_is_a_bad_request() -> None:
    error = from_report("p", {"message": "maximum context length is 5"}, NOTHING)
    assert isinstance(error, BadRequest)


# --- redaction -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdef1234567890.",
        "Incorrect API key provided: sk-abc***********xyz9.",
        "Authorization: Bearer abc.def-ghi123",
        'got {"authorization": "bearer abcdefgh"}',
        "Basic dXNlcjpwYXNzd29yZA==",
        "gsk_1234567890abcdef",
        "AIzaSyA1234567890abcdefg",
        "api_key=abcdef123456&x=1",
        "x-api-key: 'abcdef123456'",
    ],
)
def test_what_looks_like_a_key_is_taken_out(text: str) -> None:
    shown = Redactor()(text)
    assert "[key]" in shown
    for part in ("abc", "1234", "dXNl"):
        assert part not in shown


def test_known_secrets_are_taken_out_wherever_they_are() -> None:
    redact = Redactor(["hunter22secret", "hunter22secret-longer", " padded-key\n", "abc", ""])
    assert redact("<hunter22secret-longer|hunter22secret|padded-key|abc>") == (
        "<[key]|[key]|[key]|abc>"
    )
    assert "hunter" not in repr(redact)


def test_users_in_urls_are_taken_out_and_the_rest_stays() -> None:
    assert Redactor()("at https://me:pw@host/v1?a=b: the tokens: 512, key question") == (
        "at https://host/v1?a=b: the tokens: 512, key question"
    )
