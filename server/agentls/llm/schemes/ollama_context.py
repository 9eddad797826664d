"""Whether Ollama read all of a conversation.

Servers of some versions cut what does not fit into the context, without a word; only the counts at
the end of a reply tell. Knows nothing of the rest of a request or reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from agentls.core.events import Event, Status, Usage

_LONGEST_TOKEN_BYTES = 8
"""On average no text has longer tokens: what is longer than this many bytes a token was cut."""
_HALF_SLACK = 8
"""Servers that cut a single message keep half the context and the few tokens of `num_keep`."""


@dataclass(frozen=True, slots=True)
class SentContext:
    """The context a request asks for, in tokens, and the bytes of text in its messages."""

    num_ctx: int | None
    size_bytes: int

    @classmethod
    def of(cls, body: Mapping[str, JsonValue]) -> SentContext:
        """Of a request's body."""
        options, messages = body.get("options"), body.get("messages")
        num_ctx = options.get("num_ctx") if isinstance(options, dict) else None
        texts = [
            str(message.get("content"))
            for message in (messages if isinstance(messages, list) else ())
            if isinstance(message, dict)
        ]
        size_bytes = sum(len(text.encode("utf-8", "replace")) for text in texts)
        return cls(num_ctx if isinstance(num_ctx, int) else None, size_bytes)

    def warning(self, usage: Usage, *, counts_cache: bool) -> Iterator[Event]:
        """What a person has to know of a reply with these counts.

        A low count alone may mean that the rest was cached, unless the server `counts_cache` too.
        """
        if self._was_cut(usage, counts_cache):
            limit = f" of {self.num_ctx} tokens" if self.num_ctx else ""
            yield Status(
                state="warning",
                message=f"Ollama cut the conversation: it does not fit its context{limit}. "
                "If there is memory for more, set llm.ollama.context_tokens higher; "
                "or start a new session.",
            )

    def _was_cut(self, usage: Usage, counts_cache: bool) -> bool:
        least = self.size_bytes / _LONGEST_TOKEN_BYTES
        read, written = usage.input_tokens, usage.output_tokens
        if self.num_ctx is None:
            return counts_cache and least > read
        halved = self.num_ctx // 2 <= read <= self.num_ctx // 2 + _HALF_SLACK
        filled = read + written >= self.num_ctx - 1 or least > self.num_ctx
        return filled or ((halved or counts_cache) and least > read)
