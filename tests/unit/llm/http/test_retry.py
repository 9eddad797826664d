from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agentls.core.errors import BadRequest, ModelError, RateLimited, Unreachable
from agentls.llm.http.retry import RetryPolicy, retry_after_s
from agentls.llm.wire.failures import Silent, Stalled

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def limited(seconds: float | None) -> RateLimited:
    error = RateLimited("slow down")
    error.retry_after_s = seconds
    return error


def test_full_jitter_doubles_up_to_the_cap() -> None:
    most = RetryPolicy(attempts=9, random=lambda: 1.0)
    least = RetryPolicy(attempts=9, random=lambda: 0.0)
    error = Unreachable("gone")
    assert [most.delay_s(n, error) for n in range(1, 10)] == [
        0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, None,
    ]  # fmt: skip
    assert [least.delay_s(n, error) for n in (1, 5)] == [0.0, 0.0]


def test_four_attempts_by_default() -> None:
    policy = RetryPolicy(random=lambda: 0.5)
    assert [policy.delay_s(n, Unreachable("gone")) for n in (1, 2, 3, 4)] == [0.25, 0.5, 1.0, None]


@pytest.mark.parametrize(
    ("seconds", "delay_s"),
    [(None, 0.5), (0.0, 0.5), (0.2, 0.2), (7.0, 7.0), (60.0, 60.0), (60.1, None), (1e9, None)],
)
def test_retry_after(seconds: float | None, delay_s: float | None) -> None:
    assert RetryPolicy(random=lambda: 1.0).delay_s(1, limited(seconds)) == delay_s


@pytest.mark.parametrize(
    "error",
    [
        BadRequest("no"),
        Silent("nothing came"),
        Stalled("nothing more came"),
        ModelError("501", retryable=False),
        RateLimited("no credit", retryable=False),
    ],
)
def test_what_is_not_tried_again(error: ModelError) -> None:
    assert RetryPolicy().delay_s(1, error) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "9"}, 9.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:35 GMT"}, 30.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:35"}, 30.0),
        ({"retry-after": "Fri, 02 Jan 2026 05:04:35 +0200"}, 30.0),
        ({"retry-after": "Fri, 02 Jan 2020 03:04:35 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Fri, 99 Jan 99999 03:04:35 GMT"}, None),
        ({"retry-after": "1e999"}, None),
    ],
)
def test_reading_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, NOW) == seconds
