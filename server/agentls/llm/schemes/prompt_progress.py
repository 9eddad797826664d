"""What llama.cpp says while it reads a prompt, put into words for people.

Sent in chunks when a request has `return_progress`; see "prompt_progress" in
https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md. Knows nothing of clocks:
the time is the engine's own, counted from where it began to read.
"""

from __future__ import annotations

from agentls.core.events import Status

_EVERY_MS = 5000
"""A terminal shows a line for each, and short prompts need none."""


class PromptProgress:
    """Follows the reading of one prompt; says nothing in its first seconds and at its end."""

    def __init__(self) -> None:
        """Nothing was said yet."""
        self._said_ms = 0

    def read(self, chunk: object) -> Status | None:
        """A status to show, if the chunk tells of progress and it is time to say so."""
        progress = chunk.get("prompt_progress") if isinstance(chunk, dict) else None
        if not isinstance(progress, dict):
            return None
        total, done, cached, time_ms = (
            _count(progress.get(key)) for key in ("total", "processed", "cache", "time_ms")
        )
        if not cached <= done < total or time_ms - self._said_ms < _EVERY_MS:
            return None
        self._said_ms = time_ms
        # What the cache knew took no time and would make the rest look faster than it is.
        percent = 100 * (done - cached) // (total - cached)
        return Status(state="requesting", message=f"reading the prompt, {percent} %")


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
