"""When to ask a provider again, and after how long.

Owns back-off and the reading of Retry-After. Which failures may go away by themselves is decided
by `failures`; nothing here does HTTP.
"""

from __future__ import annotations

import asyncio
import email.utils
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from agentls.core.errors import ModelError
from agentls.llm.wire.failures import Silent, Stalled


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with full jitter; a server's Retry-After takes its place.

    A server that asks for more than `longest_wait_s` is not waited for: better to say so at once.
    `random` gives numbers in [0, 1) and `sleep` waits for seconds; tests put their own in.
    """

    attempts: int = 4
    base_s: float = 0.5
    cap_s: float = 10.0
    longest_wait_s: float = 60.0
    random: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def delay_s(self, attempt: int, error: ModelError) -> float | None:
        """Seconds to wait after the failed attempt number `attempt` (from 1); None to give up.

        A reply that broke before it said anything is asked for again like one that never began.
        """
        if attempt >= self.attempts or not error.retryable:
            return None
        if isinstance(error, Silent | Stalled):
            return None
        if error.retry_after_s:
            return error.retry_after_s if error.retry_after_s <= self.longest_wait_s else None
        return self.random() * min(self.cap_s, self.base_s * 2.0 ** (attempt - 1))


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds a response asks to wait: `retry-after-ms`, seconds, or an HTTP date.

    None without a header and for anything that cannot be read. `headers` is looked up in lower
    case; `now` defaults to the clock.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            value = float(headers.get(name, "")) * unit_s
        except ValueError:
            continue
        if math.isfinite(value):
            return max(value, 0.0)
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max((date - (now or datetime.now(UTC))).total_seconds(), 0.0)
