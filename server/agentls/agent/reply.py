"""Collects one model reply from its events, and says what of a broken one is worth keeping."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container

from agentls.core.events import (
    BlockAbort,
    BlockDelta,
    BlockKind,
    BlockStart,
    BlockStop,
    Event,
    Status,
    StopReason,
)
from agentls.core.messages import Item, Message, ToolCall


class Overlap:
    """Holds back text that a repeated reply starts with and that was already shown.

    A model asked to continue after a broken stream may go on, or start over. While the new text is
    a prefix of the old it is held; once it covers all of the old only the rest is let through; when
    it differs it was a continuation and is let through whole.
    """

    def __init__(self, shown: str) -> None:
        """`shown` is the text that was already emitted."""
        self._shown = shown
        self._held = ""
        self._open = not shown

    def feed(self, text: str) -> str:
        """Text to let through now."""
        if self._open:
            return text
        self._held += text
        if self._held.startswith(self._shown):
            self._open = True
            return self._held[len(self._shown) :]
        if self._shown.startswith(self._held):
            return ""
        self._open = True
        return self._held

    def close(self) -> str:
        """At the end of the reply: held text that repeats too little to be a repetition."""
        held, self._held = self._held, ""
        return "" if self._open else held


class Reply:
    """The blocks of one reply.

    Renumbers block indices so that they are unique in the turn, and call ids so that they are
    unique in the history: several servers reuse `call_0`.
    """

    def __init__(
        self,
        next_index: Callable[[], int],
        used_call_ids: Container[str],
        shown: str = "",
        stopped: int = 0,
    ) -> None:
        """`shown` is text of earlier, broken attempts at the same reply.

        Its first `stopped` characters were in blocks that were complete.
        """
        self._next_index = next_index
        self._used = used_call_ids
        self._overlap = Overlap(shown)
        self._kinds: dict[int, BlockKind] = {}
        self._indices: dict[int, int] = {}
        self._call_ids: dict[int, str] = {}
        self._text = shown
        self._before = shown[:stopped]
        self.stopped = stopped
        self._items: dict[int, Item] = {}
        self.aborted_calls = 0
        self.stop_reason: StopReason | str | None = None

    @property
    def begun(self) -> bool:
        """Whether any block was opened."""
        return bool(self._indices)

    @property
    def text(self) -> str:
        """All text let through so far, whether its block is complete or not."""
        return self._text

    @property
    def calls(self) -> list[ToolCall]:
        """Complete calls with a name, in order; models emit nameless ones by mistake."""
        return [i for i in self._in_order() if isinstance(i, ToolCall) and i.name.strip()]

    def items(self) -> list[Item]:
        """The reply in its order: providers want their thinking back where it stood.

        Text that came behind a call goes before the first one, since results have to follow calls.
        Text of earlier attempts begins the reply.
        """
        texts = [Message.of("assistant", self._before), *self._in_order()]
        texts.append(Message.of("assistant", self._text[self.stopped :]))
        ordered: list[Item] = []
        first_call = 0
        for item in texts:
            if isinstance(item, Message):
                first_call += _insert_text(ordered, first_call, item)
            elif not isinstance(item, ToolCall) or item.name.strip():
                if first_call == len(ordered) and not isinstance(item, ToolCall):
                    first_call += 1
                ordered.append(item)
        return ordered

    def _in_order(self) -> list[Item]:
        """As the blocks began: calls all end with the reply, wherever they stood in it."""
        return [self._items[index] for index in sorted(self._items)]

    def take(self, event: Event) -> list[Event]:
        """Record an event and give what to pass on."""
        match event:
            case BlockStart(index=index, block=kind):
                return [self._start(event, index, kind)]
            case BlockDelta(index=index, text=text):
                if self._kinds.get(index) == "text":
                    text = self._overlap.feed(text)
                    self._text += text
                return [BlockDelta(index=self._indices[index], text=text)] if text else []
            case BlockStop(index=index, item=item):
                return self._stop(index, item)
            case BlockAbort(index=index):
                if self._kinds.get(index) == "tool_call":
                    self.aborted_calls += 1
                return [event.model_copy(update={"index": self._indices[index]})]
            case Status(state="finished", stop_reason=reason):
                self.stop_reason = reason
                return [event]
            case _:
                return [event]

    def _start(self, event: BlockStart, index: int, kind: BlockKind) -> BlockStart:
        self._kinds[index] = kind
        self._indices[index] = self._next_index()
        if kind == "tool_call":
            self._call_ids[index] = self._unique(event.call_id)
        return event.model_copy(
            update={
                "index": self._indices[index],
                "call_id": self._call_ids.get(index, event.call_id),
            }
        )

    def _stop(self, index: int, item: Item) -> list[Event]:
        events: list[Event] = []
        match item:
            case ToolCall():
                item = item.model_copy(update={"call_id": self._call_ids[index]})
            case Message():
                rest = self._overlap.close()
                self._text += rest
                if rest:
                    events.append(BlockDelta(index=self._indices[index], text=rest))
                # What belongs to no block that was told as complete before.
                item = Message.of("assistant", self._text[self.stopped :])
                self.stopped = len(self._text)
            case _:
                pass
        self._items[index] = item
        return [*events, BlockStop(index=self._indices[index], item=item)]

    def _unique(self, call_id: str) -> str:
        taken = set(self._call_ids.values())
        base = call_id or "call"
        candidates = itertools.chain(
            [base] if call_id else [], (f"{base}_{n}" for n in itertools.count(1))
        )
        return next(c for c in candidates if c not in self._used and c not in taken)


def _insert_text(items: list[Item], at: int, message: Message) -> int:
    """Put text into a reply, joined to text right before it; gives how many items came in."""
    if not message.text:
        return 0
    if at and isinstance(last := items[at - 1], Message):
        items[at - 1] = Message.of("assistant", last.text + message.text)
        return 0
    items.insert(at, message)
    return 1
