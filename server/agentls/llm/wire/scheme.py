"""The seam between a provider's wire format and the HTTP that carries it.

A scheme turns a request into a provider's JSON and a provider's bytes into events. It does no I/O;
`http_model` joins it to a transport.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from pydantic import JsonValue

from agentls.core.events import Event
from agentls.core.requests import ModelRequest, Option


class Reader(Protocol):
    """Turns the bytes of one response into events; any slicing gives the same events.

    Both methods are generators: they give every event that came before a fault, a `BlockAbort` for
    each open block, and then raise. After that the reader is used up.
    """

    @property
    def patience_s(self) -> float | None:
        """How long more bytes are worth waiting for; None while the reply is not whole.

        Servers leave connections open behind a whole reply: it must not wait for them.
        """

    def feed(self, data: bytes) -> Iterator[Event]:
        """Events that are complete with these bytes.

        Raises:
            ModelError: the provider reported an error; `StreamBroken` for bytes that make no sense.
        """

    def close(self) -> Iterator[Event]:
        """Events left at the end of the bytes: at least `Status(state="finished")`, unless given.

        Raises:
            StreamBroken: the reply is not whole.
        """


class Scheme(Protocol):
    """A provider's wire format."""

    @property
    def path(self) -> str:
        """Where requests go, below the base URL; starts with a slash and may end with a query."""

    @property
    def options(self) -> frozenset[Option]:
        """What the format can carry of what a request may set."""

    def build(self, request: ModelRequest) -> dict[str, JsonValue]:
        """The request body, with no option but those in `options`.

        Raises:
            BadRequest: the request holds something the format cannot carry.
        """

    def reader(self, body: Mapping[str, JsonValue], /) -> Reader:
        """A new reader, for the response to a request with this body."""
