"""Vendors' own words for what is wrong with a request, an account or an answer, one by one."""

from __future__ import annotations

import json

import httpx
import pytest

from agentls.core.errors import BadRequest, ModelError, RateLimited, Unreachable
from agentls.core.redaction import Redactor
from agentls.llm import pool_faults
from agentls.llm.http.disconnects import before_answer
from agentls.llm.wire.failures import Origin, from_report, from_status

ORIGIN = Origin(provider="p", url="https://h/v1", has_key=True)


def refused(status: int, said: str, code: str = "") -> ModelError:
    body = json.dumps({"error": {"message": said, "type": "invalid_request_error", "code": code}})
    return from_status(ORIGIN, status, body.encode(), redact=Redactor())


@pytest.mark.parametrize(
    "said",
    [
        "Unable to submit request because the input token count is 1500000 but model only "
        "supports up to 1048576. Reduce the input token count and try again.",
        "The number of tokens to keep from the initial prompt is greater than the context length.",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        "prompt token count of 147058 exceeds the limit of 128000",
        "Your request exceeded model token limit: 262144 (requested: 283000)",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097.",
        "Prompt exceeds max length",
    ],
    ids=["vertex", "lmstudio", "vllm", "sglang", "xai", "copilot", "kimi", "tgi", "tgi sum", "zai"],
)
def test_a_conversation_that_is_too_long_is_told_as_such(said: str) -> None:
    report = {"message": said}
    for error in (refused(400, said), from_report("p", {"error": report}, Redactor())):
        assert (type(error), error.retryable) == (BadRequest, False)
        assert "longer than the model's context" in error.hint
        assert not pool_faults.is_everyones(error)  # another's may be longer


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens is too large: 200000. This model supports at most 16384 completion tokens.",
        "Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64.",
        "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum",
    ],
)
def test_what_else_is_too_long_is_not_blamed_on_the_conversation(said: str) -> None:
    assert refused(400, said).hint == ""


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (413, "Request exceeds the maximum size"),
        (400, "Request payload size exceeds the limit: 20971520 bytes."),
        (413, "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested "
              "8000. Need more tokens? Upgrade today at https://console.groq.com/settings/billing"),
        (429, "Request too large for m on tokens per min (TPM): Limit 30000, Requested 40000."),
    ],
)  # fmt: skip
def test_a_request_that_is_too_large_for_any_wait_is_not_sent_again(status: int, said: str) -> None:
    error = refused(status, said, "rate_limit_exceeded")
    assert (type(error), error.retryable, error.status) == (BadRequest, False, status)
    assert "start a new session, send less" in error.hint
    assert not pool_faults.is_account(error)


def test_an_address_about_billing_is_no_word_about_credit() -> None:
    error = refused(
        429,
        "Rate limit reached for model `m` on tokens per minute (TPM): Limit 6000, Used 5000, "
        "Requested 2000. Please try again in 7.66s. Need more tokens? Upgrade to Dev Tier today at "
        "https://console.groq.com/settings/billing",
        "rate_limit_exceeded",
    )
    assert (type(error), error.retryable) == (RateLimited, True)
    assert "credit" not in error.hint
    assert not pool_faults.is_account(error)
    spent = refused(429, "Your account is not active, please check your billing details.")
    assert (type(spent), spent.retryable) == (RateLimited, False)


@pytest.mark.parametrize("code", ["tool_use_failed", "json_validate_failed"])
def test_what_the_model_wrote_wrong_is_not_the_requests_fault(code: str) -> None:
    said = "Failed to call a function. Please adjust your prompt."
    report = {"error": {"message": said, "type": "invalid_request_error", "code": code}}
    for error in (refused(400, said, code), from_report("p", report, Redactor())):
        assert (type(error), error.status, error.retryable) == (ModelError, 400, True)
        assert not pool_faults.is_everyones(error)


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ({"success": False, "errors": [{"code": 7003, "message": "no route"}]}, "no route"),
        ({"message": "not valid", "errors": {"model": ["is missing"]}}, "not valid"),
        ({"error": True, "message": "not valid"}, "not valid"),
        ([{"error": {"message": "first"}}, {"error": {"message": "second"}}], "first"),
        ({"error": {"message": {"text": "nested"}}}, '{"text": "nested"}'),
        ([[[[[[[[[[["deep"]]]]]]]]]]], ""),
    ],
)
def test_shapes_of_error_bodies(document: object, told: str) -> None:
    error = from_status(ORIGIN, 400, json.dumps(document).encode(), redact=Redactor())
    assert error.message == "p answered 400 (bad request)" + (f": {told}." if told else ".")


@pytest.mark.parametrize("line", ["SSH-2.0-OpenSSH_9.6", "\x15\x03\x01\x00\x02\x02"])
def test_what_speaks_no_http_is_not_asked_again(line: str) -> None:
    error = before_answer(ORIGIN, httpx.RemoteProtocolError(f"illegal status line: {line!r}"), 9)
    assert (type(error), error.retryable) == (Unreachable, False)
    assert error.message == "p at https://h/v1 did not answer in HTTP."
    assert "https or http" in error.hint
