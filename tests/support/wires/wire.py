"""What a test needs to know of one wire format to ask the same of all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from agentls.llm.wire.scheme import Scheme
from support.fake_server import Reply

Call = tuple[str, str, dict[str, object]]
"""Id, name, arguments. Formats without ids ignore the first."""


class Said(Protocol):
    """Builds the body of a reply."""

    def __call__(self, *pieces: str) -> bytes:
        """One delta a piece."""


@dataclass(frozen=True)
class Wire:
    """Bodies of replies in one wire format; all but `said` are whole and end as they should.

    Every reply counts 7 input and 3 output tokens. `scheme` is for the model "m" of the provider
    "fake". Each body can be cut into `frames`, which joined are the body again.
    """

    name: str
    scheme: Callable[[], Scheme]
    content_type: str
    frames: Callable[[bytes], list[bytes]]
    said: Said
    called: Callable[..., bytes]
    """`called(*calls: Call)`: calls in parallel, each in several fragments where the format can."""
    thought: Callable[[str, str], bytes]
    """Thinking, then text; signed where the format signs."""
    cut: Callable[[str], bytes]
    """Text that reached the token limit."""
    cut_call: Callable[[str, str], bytes]
    """The name and the beginning of the arguments of a call that reached the token limit."""
    refused: Callable[[str], bytes]
    """Text that the provider's filter, or the model, ended."""
    error: Callable[[str], bytes]
    """The frame of an error of the kind "overloaded" inside a stream, with this message."""
    ping: bytes
    """A frame that says nothing."""

    def reply(self, body: bytes, *, status: int = 200) -> Reply:
        """A reply whose frames come one HTTP chunk each."""
        return Reply(self.frames(body), status, {"Content-Type": self.content_type})
