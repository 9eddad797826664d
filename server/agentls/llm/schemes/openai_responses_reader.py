"""Replies of `/responses`, streamed or whole, as events.

Owns the meaning of the stream's events; `openai_responses_items` says which item each is about.
Every piece may be told several times, in deltas, as the whole of a part, of an item, and of the
response: what was told already is not told again, and what was not is made up for. Only the event
that ends the response makes it whole.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from agentls.core.errors import ModelError
from agentls.core.events import BlockAbort, BlockStart, BlockStop, Event, Ping, Usage
from agentls.llm.schemes.openai_responses_items import KINDS, Output, Outputs, Part, Rank
from agentls.llm.wire.blocks import BROKE_OFF, Prose, ProseKind
from agentls.llm.wire.fields import (
    Malformed,
    Object,
    as_json,
    count,
    details,
    object_or_none,
    objects,
    text,
    whole_text,
)
from agentls.llm.wire.halves import without_halves
from agentls.llm.wire.reading import FILTERED, REFUSED, SAID_ALL, TOO_LONG, StreamReader

_ENDS = {"completed", "incomplete", "failed", "cancelled"}
_TEXTS = {  # item, list of its parts, field
    "response.output_text": ("message", "content", "text"),
    "response.refusal": ("message", "content", "refusal"),
    "response.reasoning_text": ("reasoning", "content", "text"),
    "response.reasoning_summary_text": ("reasoning", "summary", "text"),
}
_PARTS = {"response.content_part": "content", "response.reasoning_summary_part": "summary"}
_REQUEST_AT_FAULT = re.compile(r"image|policy|residency")


class ResponsesReader(StreamReader):
    """Reads one response; see `llm.wire.scheme.Reader`.

    Each item has a block of its own. All is told as it comes, whatever else is open; blocks end in
    the order of the output.
    """

    def __init__(self, provider: str, new_id: Callable[[], str]) -> None:
        """`new_id` makes ids for calls that have none."""
        super().__init__(provider, new_id=new_id)
        self._outputs = Outputs()
        self._texts = defaultdict[Output, Prose](lambda: Prose(self._numbers, provider))
        self._ranks: dict[int, Rank] = {}  # of blocks
        self._stops: list[BlockStop] = []  # that wait for a block before theirs
        self._refused = False
        self._cut = False

    # --- events of the stream ----------------------------------------------------------------

    def _object(self, value: Object) -> Iterator[Event]:
        kind = text(value, "type")
        if kind == "error":
            raise self._reported(value)
        if not kind:
            raise Malformed("no type")
        subject, _, act = kind.rpartition(".")
        if subject == "response" and act in _ENDS:
            yield from self._response(object_or_none(value, "response") or {}, act)
        elif subject == "response.output_item" and act in ("added", "done"):
            yield from self._item(value, is_done=act == "done")
        elif subject in _TEXTS and act in ("delta", "done"):
            yield from self._text(value, subject, is_done=act == "done")
        elif subject in _PARTS and act in ("added", "done"):
            yield from self._part(value, _PARTS[subject], is_done=act == "done")
        elif subject == "response.function_call_arguments" and act in ("delta", "done"):
            yield from self._argument(value, is_done=act == "done")
        else:
            yield Ping()  # the response began, or a tool of the server's own works

    def _item(self, value: Object, *, is_done: bool) -> Iterator[Event]:
        given = object_or_none(value, "item") or {}
        if text(given, "type") not in KINDS:
            self._outputs.foreign(value)  # the server's own tools are not ours to run
            yield Ping()
        elif is_done:
            yield from self._entire(self._outputs.ending(value, given), given)
        else:
            item = self._outputs.beginning(value, given)
            item.learn(given)
            yield from self._begin(item)

    def _text(self, value: Object, subject: str, *, is_done: bool) -> Iterator[Event]:
        kind, channel, key = _TEXTS[subject]
        item = self._outputs.about(kind, value, is_late=is_done)
        part = item.part(channel, value)
        if is_done:
            yield from self._rest(item, part, value, key)
        else:
            delta = text(value, "delta")
            self._refused = self._refused or (key == "refusal" and bool(delta))
            yield from self._say(item, part, delta)

    def _part(self, value: Object, channel: str, *, is_done: bool) -> Iterator[Event]:
        part = object_or_none(value, "part") or {}
        thought = channel == "summary" or text(part, "type") == "reasoning_text"
        item = self._outputs.about("reasoning" if thought else "message", value, is_late=is_done)
        if is_done:
            yield from self._rest(item, item.part(channel, value), part)
        else:
            item.parts[channel] = item.parts.get(channel, -1) + 1

    def _argument(self, value: Object, *, is_done: bool) -> Iterator[Event]:
        item = self._outputs.about("function_call", value, is_late=is_done)
        if is_done:
            yield from self._arguments(item, value)
        else:
            item.waiting.append(text(value, "delta"))
            yield from self._begin(item)

    # --- wholes ------------------------------------------------------------------------------

    def _document(self, value: object) -> Iterator[Event]:
        if not isinstance(value, dict):
            raise Malformed("not an object")
        if "output" not in value:
            raise self._reported(value)
        yield from self._response(value, text(value, "status") or "completed")

    def _response(self, response: Object, status: str) -> Iterator[Event]:
        """The whole response, which is its end."""
        said = text(response, "status")
        status = said if said in _ENDS - {"completed"} else status
        if status == "failed":
            error = object_or_none(response, "error") or {}
            at_fault = _REQUEST_AT_FAULT.search(str(error.get("code")))
            raise self._reported({"status": 400, **error} if at_fault else error)
        if status not in _ENDS - {"cancelled"}:
            raise self._broken(f"gave up on the reply ({status})")
        self._usage = _usage(details(response, "usage"))
        for item, given in self._outputs.left_out(objects(response, "output")):
            yield from self._entire(item, given)
        reason = text(details(response, "incomplete_details"), "reason")
        cut = self._cut or bool(reason) or status == "incomplete"
        self._ending = SAID_ALL if not cut else FILTERED if reason == "content_filter" else TOO_LONG
        yield from self._end()

    def _entire(self, item: Output, given: Object) -> Iterator[Event]:
        """An item with all that is in it."""
        if item.done:
            return
        item.learn(given)
        item.whole = given
        self._cut = self._cut or text(given, "status") == "incomplete"
        if item.kind == "function_call":
            item.done = True
            if item in self._calls:
                self._calls.set(item, name=item.name)
            yield from self._arguments(item, given)
            return
        if item.kind == "reasoning":
            item.encrypted = whole_text(given, "encrypted_content") or None
        for channel in ("summary", "content"):
            for number, part in enumerate(objects(given, channel)):
                yield from self._rest(item, (channel, number), part)
        yield from self._seal(item)

    def _rest(self, item: Output, part: Part, holder: Object, key: str = "") -> Iterator[Event]:
        """What of the whole of a part its deltas did not tell; one that differs comes too late."""
        key = key or ("refusal" if text(holder, "type") == "refusal" else "text")
        whole = whole_text(holder, key)
        said = without_halves("".join(item.said.get(part, ())))
        self._refused = self._refused or (key == "refusal" and bool(whole))
        if whole.startswith(said):
            yield from self._say(item, part, whole[len(said) :])

    # --- blocks ------------------------------------------------------------------------------

    def _say(self, item: Output, part: Part, piece: str) -> Iterator[Event]:
        if not piece:
            return
        if item not in self._texts:
            yield from self._seal_others()
        kind: ProseKind = "thinking" if item.kind == "reasoning" else "text"
        gap = "\n\n" if kind == "thinking" and item.said and part not in item.said else ""
        item.said.setdefault(part, []).append(piece)
        yield from self._told(item, self._texts[item].add(kind, gap + piece))
        if item.done:
            yield from self._seal(item)

    def _seal_others(self) -> Iterator[Event]:
        """A server that begins no items ends none either: the next one does."""
        for item in self._outputs:
            if item in self._texts and not item.announced:
                yield from self._seal(item)

    def _seal(self, item: Output) -> Iterator[Event]:
        """Nothing more comes of an item of text or thinking."""
        item.done = True
        prose, encrypted, item.encrypted = self._texts[item], item.encrypted, None
        seal = prose.sealed if encrypted and prose.kind is None else prose.stop
        yield from self._told(item, seal(encrypted=encrypted, item_id=item.item_id))
        yield from self._due()

    def _begin(self, item: Output, *, is_end: bool = False) -> Iterator[Event]:
        """Tell what is known of a call; it waits for its name."""
        if item.kind != "function_call" or not (item.name or is_end):
            return
        if item not in self._calls:
            yield from self._told(item, self._calls.start(item, item.call_id, item.name))
        for piece in item.waiting:
            yield from self._calls.add(item, piece)
        item.waiting = []

    def _arguments(self, item: Output, holder: Object) -> Iterator[Event]:
        """The whole arguments of a call, which count more than their pieces."""
        raw = holder.get("arguments")
        is_text = raw is None or isinstance(raw, str)
        whole = whole_text(holder, "arguments") if is_text else as_json(raw, "arguments")
        if whole and item not in self._calls:
            item.waiting = [whole]
        yield from self._begin(item)
        if item not in self._calls:
            return
        said = self._calls.arguments(item)
        if whole.startswith(said):
            yield from self._calls.add(item, whole[len(said) :])
        elif whole:
            self._calls.set(item, arguments=whole)

    def _told(self, item: Output, events: Iterator[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, BlockStart):
                self._ranks[event.index] = item.rank
            if isinstance(event, BlockStop):
                self._stops.append(event)
            else:
                yield event

    def _due(self) -> Iterator[Event]:
        """The stops of blocks that no other item comes before any more."""
        due = [stop for stop in self._stops if self._outputs.is_settled(self._rank(stop))]
        self._stops = [stop for stop in self._stops if stop not in due]
        yield from sorted(due, key=self._rank)

    # --- the end -----------------------------------------------------------------------------

    def _before_end(self) -> Iterator[Event]:
        if self._refused and self._ending is SAID_ALL:
            self._ending = REFUSED
        for item in self._outputs:
            if item.kind == "function_call":
                yield from self._begin(item, is_end=True)
            else:
                yield from self._seal(item)

    def _end(self) -> Iterator[Event]:
        *events, usage, status = super()._end()
        yield from self._ends_last(events)
        yield from (usage, status)

    def _or_abort(self, events: Iterator[Event]) -> Iterator[Event]:
        try:
            yield from super()._or_abort(events)
        except ModelError:
            aborts = (prose.abort(BROKE_OFF) for prose in self._texts.values())
            yield from self._ends_last(chain.from_iterable(aborts))
            raise

    def _ends_last(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events, and then the ends among them and those that waited, in order."""
        ends: list[BlockStop | BlockAbort] = [*self._stops]
        self._stops = []
        for event in events:
            if isinstance(event, BlockStop | BlockAbort):
                ends.append(event)
            else:
                yield event
        yield from sorted(ends, key=self._rank)

    def _rank(self, end: BlockStop | BlockAbort) -> Rank:
        return self._ranks[end.index]


def _usage(usage: Object) -> Usage:
    sent, made = details(usage, "input_tokens_details"), details(usage, "output_tokens_details")
    return Usage(
        input_tokens=count(usage.get("input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        cache_read_tokens=count(sent.get("cached_tokens")),
        cache_creation_tokens=count(sent.get("cache_write_tokens")),
        reasoning_tokens=count(made.get("reasoning_tokens")),
    )
