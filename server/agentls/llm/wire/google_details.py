"""What Google adds to its error objects under `details`: when to come back, and what was wrong.

Reads https://cloud.google.com/apis/design/errors#error_details, which say more than the status:
a rejected key is a 400 there. Knows nothing of other providers' errors; what cannot be read says
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

_KEY_REASONS = {"API_KEY_INVALID", "API_KEY_EXPIRED"}


def retry_delay_s(report: object) -> float | None:
    """Seconds to wait before another try.

    None when nothing is said of it, or when what is used up is the quota of a whole day: the delay
    that comes with it is that of some other limit.
    """
    used_up = [
        str(violation.get("quotaId"))
        for detail in _details(report, "QuotaFailure")
        for violation in _objects(detail.get("violations"))
    ]
    if any("PerDay" in quota for quota in used_up):
        return None
    for detail in _details(report, "RetryInfo"):
        try:
            delay_s = float(str(detail.get("retryDelay")).removesuffix("s"))
        except ValueError:
            continue
        if math.isfinite(delay_s):
            return max(delay_s, 0.0)
    return None


def rejects_key(report: object) -> bool:
    """Whether the key was wrong, whatever the status says."""
    return any(
        detail.get("reason") in _KEY_REASONS
        for detail in _details(report, "ErrorInfo")
        if isinstance(detail.get("reason"), str)
    )


def _details(report: object, kind: str) -> Iterator[Mapping[str, object]]:
    if isinstance(report, Mapping):
        for detail in _objects(report.get("details")):
            if detail.get("@type") == f"type.googleapis.com/google.rpc.{kind}":
                yield detail


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, Mapping))
