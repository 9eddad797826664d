"""What a request cost. Pure."""

from __future__ import annotations

from agentls.core.events import Usage
from agentls.core.requests import Price

_PER = 1_000_000


def priced(usage: Usage, price: Price | None) -> Usage:
    """The usage with its cost, unless it has one already or the price is not known."""
    if price is None or usage.cost_usd is not None:
        return usage
    read, written = usage.cache_read_tokens, usage.cache_creation_tokens
    fresh = max(usage.input_tokens - read - written, 0)
    cost = (
        fresh * price.input
        + read * (price.input if price.cache_read is None else price.cache_read)
        + written * (price.input if price.cache_write is None else price.cache_write)
        + usage.output_tokens * price.output
    )
    return usage.model_copy(update={"cost_usd": cost / _PER})
