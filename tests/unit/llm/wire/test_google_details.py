"""Google's error details, alone and in the errors they lead to."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from agentls.core.errors import BadRequest, ModelError, RateLimited, Unauthorized
from agentls.core.redaction import Redactor
from agentls.llm.wire.failures import Origin, from_report, from_status
from agentls.llm.wire.google_details import rejects_key, retry_delay_s
from support.gemini_streams import failure

RPC = "type.googleapis.com/google.rpc."
QUOTA_SAID = "You exceeded your current quota, please check your plan and billing details."


def retry(delay: JsonValue) -> JsonValue:
    return {"@type": f"{RPC}RetryInfo", "retryDelay": delay}


def quota(name: str) -> JsonValue:
    return {"@type": f"{RPC}QuotaFailure", "violations": [{"quotaId": name}]}


def info(reason: JsonValue) -> JsonValue:
    return {"@type": f"{RPC}ErrorInfo", "reason": reason, "domain": "googleapis.com"}


def refused(
    status: int, said: str, message: str, *details: JsonValue, retry_after_s: float | None = None
) -> ModelError:
    origin = Origin("gemini", "http://h", has_key=True, key_variable="GEMINI_API_KEY")
    body = json.dumps(failure(status, said, message, *details)).encode()
    return from_status(origin, status, body, retry_after_s=retry_after_s, redact=Redactor())


@pytest.mark.parametrize(
    ("details", "delay_s"),
    [
        ([retry("17s")], 17.0),
        ([retry("0.5s")], 0.5),
        ([quota("RequestsPerMinutePerProject-FreeTier"), retry("26s")], 26.0),
        ([quota("RequestsPerDayPerProject-FreeTier"), retry("26s")], None),
        ([retry("-1s")], 0.0),
        ([retry("soon")], None),
        ([retry("nan")], None),
        ([retry("infs")], None),
        ([retry(None)], None),
        ([retry({"seconds": 5})], None),
        ([{"@type": f"{RPC}Help", "retryDelay": "5s"}], None),
        ([{"@type": f"{RPC}QuotaFailure", "violations": "x"}, 5, None, retry("3s")], 3.0),
        ("x", None),
        (None, None),
    ],
)
def test_delays(details: JsonValue, delay_s: float | None) -> None:
    assert retry_delay_s({"code": 429, "details": details}) == delay_s


@pytest.mark.parametrize("report", [None, "x", 5, [], {}, {"details": {}}])
def test_reports_of_others_say_nothing(report: object) -> None:
    assert retry_delay_s(report) is None
    assert not rejects_key(report)


@pytest.mark.parametrize(
    ("reason", "rejected"),
    [
        ("API_KEY_INVALID", True),
        ("API_KEY_EXPIRED", True),
        ("RATE_LIMIT_EXCEEDED", False),
        (["API_KEY_INVALID"], False),
    ],
)
def test_rejected_keys(reason: JsonValue, rejected: bool) -> None:
    assert rejects_key({"details": [info(reason)]}) is rejected


def test_a_rejected_key_is_a_400_that_means_401() -> None:
    error = refused(
        400, "INVALID_ARGUMENT", "API key not valid.", info("API_KEY_INVALID"), retry("5s")
    )
    assert isinstance(error, Unauthorized)
    assert (error.status, error.retryable) == (400, False)
    assert str(error) == (
        "gemini answered 400 (bad request): API key not valid. Check GEMINI_API_KEY."
    )
    report = failure(400, "INVALID_ARGUMENT", "x", info("API_KEY_INVALID"), wrapped=False)
    assert isinstance(from_report("gemini", report, Redactor()), Unauthorized)


def test_a_quota_that_comes_back_is_waited_for() -> None:
    error = refused(429, "RESOURCE_EXHAUSTED", QUOTA_SAID, retry("17s"))
    assert isinstance(error, RateLimited)
    assert (error.retryable, error.retry_after_s) == (True, 17.0)
    assert error.hint == "It asks to wait 17 s. Wait a little, or choose another model."
    header = refused(429, "RESOURCE_EXHAUSTED", QUOTA_SAID, retry("17s"), retry_after_s=3)
    assert (header.retryable, header.retry_after_s) == (True, 3)


@pytest.mark.parametrize(
    "details", [(), (quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"), retry("17s"))]
)
def test_a_quota_that_does_not_come_back_is_not(details: tuple[JsonValue, ...]) -> None:
    error = refused(429, "RESOURCE_EXHAUSTED", QUOTA_SAID, *details)
    assert (type(error), error.retryable, error.retry_after_s) == (RateLimited, False, None)


@pytest.mark.parametrize(
    ("status", "name", "kind", "retryable"),
    [
        (400, "INVALID_ARGUMENT", BadRequest, False),
        (400, "FAILED_PRECONDITION", BadRequest, False),
        (401, "UNAUTHENTICATED", Unauthorized, False),
        (403, "PERMISSION_DENIED", Unauthorized, False),
        (404, "NOT_FOUND", BadRequest, False),
        (429, "RESOURCE_EXHAUSTED", RateLimited, True),
        (500, "INTERNAL", ModelError, True),
        (503, "UNAVAILABLE", ModelError, True),
        (504, "DEADLINE_EXCEEDED", ModelError, True),
    ],
)
def test_statuses_as_answers_and_inside(
    status: int, name: str, kind: type[ModelError], retryable: bool
) -> None:
    inside = from_report("gemini", failure(status, name, "x", wrapped=False), Redactor())
    for error in (refused(status, name, "x"), inside):
        assert (type(error), error.retryable, error.status) == (kind, retryable, status)


@pytest.mark.parametrize(
    ("name", "status"),
    [("RESOURCE_EXHAUSTED", 429), ("UNAVAILABLE", 503), ("UNAUTHENTICATED", 401)],
)
def test_a_name_says_enough_without_a_code(name: str, status: int) -> None:
    assert from_report("gemini", {"status": name, "message": "x"}, Redactor()).status == status


@pytest.mark.parametrize(
    "said",
    [
        "The input token count (2551556) exceeds the maximum number of tokens allowed (1048576).",
        "The input token count exceeds the maximum number of tokens allowed 1048576.",
    ],
)
def test_a_prompt_that_is_too_long(said: str) -> None:
    error = refused(400, "INVALID_ARGUMENT", said)
    assert isinstance(error, BadRequest)
    assert "longer than the model's context" in error.hint
