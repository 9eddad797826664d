"""The items of one response's output, told apart.

Owns one question: which item is an event about? The format says `output_index` and `item_id`;
servers leave out one or both, count wrongly, repeat ids or make up a new one for every event. Knows
nothing of what is in an item.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agentls.llm.wire.fields import Object, text, whole_text

KINDS = {"message", "reasoning", "function_call"}
Part = tuple[str, int]
"""The name of a list of parts, and the place in it."""
Rank = tuple[int, int]
"""The place in the output; among those with the same place, the order they came in."""


@dataclass(slots=True, eq=False)
class Output:
    """One item. `waiting` is of a call that has no name yet; `said` is what came, by part."""

    kind: str
    index: int | None
    rank: Rank
    item_id: str = ""
    call_id: str = ""
    name: str = ""
    encrypted: str | None = None
    announced: bool = False
    done: bool = False  # nothing more comes
    whole: Object | None = None
    waiting: list[str] = field(default_factory=list)
    said: dict[Part, list[str]] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)  # the last part begun, by list

    def learn(self, given: Object) -> None:
        """Take what a whole item says of itself."""
        self.announced = True
        self.item_id = whole_text(given, "id") or self.item_id
        self.call_id = self.call_id or whole_text(given, "call_id")
        self.name = whole_text(given, "name") or self.name

    def part(self, channel: str, value: Object) -> Part:
        """The part that an event is about; the last one begun when it does not say."""
        number = value.get(f"{channel}_index")
        return channel, number if isinstance(number, int) else self.parts.get(channel, 0)

    def fits(self, index: int | None, item_id: str) -> bool:
        """Whether an event with this place and id, either of which may be missing, may be its."""
        if item_id and self.item_id and item_id != self.item_id:
            # Another id with every event: then the place says it all.
            return index is not None and index == self.index and self.announced and not self.done
        return index is None or self.index is None or index == self.index

    def is_named(self, given: Object) -> bool:
        """Whether a whole item has the id, or for calls the id of the call."""
        pairs = ((self.item_id, given.get("id")), (self.call_id, given.get("call_id")))
        return any(known and known == told for known, told in pairs)

    def is_other(self, given: Object) -> bool:
        """Whether a whole item contradicts what is known of this call."""
        pairs = ((self.call_id, given.get("call_id")), (self.name, given.get("name")))
        return any(known and told and known != told for known, told in pairs)


class Outputs:
    """All items, in the order they came."""

    def __init__(self) -> None:
        """No item."""
        self._items: list[Output] = []
        self._places: set[int] = set()

    def __iter__(self) -> Iterator[Output]:
        """In the order they came."""
        return iter(self._items)

    def foreign(self, value: Object) -> None:
        """Take the place of an item that is not ours to read."""
        if (index := _index(value)) is not None:
            self._places.add(index)

    def is_settled(self, rank: Rank) -> bool:
        """Whether no item before this one is open, or still to come; calls are open to the end."""
        before = (item for item in self._items if item.rank < rank)
        return all(item.done and item.kind != "function_call" for item in before) and all(
            place in self._places for place in range(rank[0])
        )

    def about(self, kind: str, value: Object, *, is_late: bool) -> Output:
        """The item that an event inside it is about; `is_late` events may follow its end."""
        index, item_id = _index(value), whole_text(value, "item_id")
        fitting = [i for i in self._items if i.kind == kind and i.fits(index, item_id)]
        named = [i for i in fitting if item_id and i.item_id == item_id]
        for found in ([i for i in named if not i.done], [i for i in fitting if not i.done]):
            if found:
                return found[-1]
        late = named or [i for i in fitting if index is not None]
        return late[-1] if is_late and late else self._new(kind, index, item_id)

    def beginning(self, value: Object, given: Object) -> Output:
        """The item that begins: a new one, unless pieces of it came first, or it began before."""
        index, item_id = _index(value), whole_text(given, "id")
        for item in self._fitting(index, item_id, given):
            is_known = bool(item_id) and item.item_id == item_id and item.index == index
            if not item.done and (is_known or not item.announced):
                return item
        return self._new(text(given, "type"), index, item_id)

    def ending(self, value: Object, given: Object) -> Output:
        """The item that is told whole: one that is open, one told so before, or a new one."""
        index, item_id = _index(value), whole_text(given, "id")
        fitting = self._fitting(index, item_id, given)
        still_open = [i for i in fitting if not i.done]
        named = [i for i in still_open if i.is_named(given)]
        again = [i for i in fitting if i.index == index and i.whole == given]
        for found in (named, still_open, again):
            if found:
                return found[0]
        return self._new(text(given, "type"), index, item_id)

    def left_out(self, output: list[Object]) -> Iterator[tuple[Output, Object]]:
        """Of the whole output, the items that were not told to their end.

        Those without a known id are taken in order, kind by kind.
        """
        given = [(n, each) for n, each in enumerate(output) if text(each, "type") in KINDS]
        left = sorted(self._items, key=_rank)
        found: dict[int, Output] = {}
        for by_name in (True, False):
            for n, each in given:
                same = [i for i in left if i.kind == each["type"]]
                if by_name:
                    same = [i for i in same if i.is_named(each)]
                if n not in found and same:
                    found[n] = same[0]
                    left.remove(same[0])
        for n, each in given:
            item = found.get(n) or self._new(text(each, "type"), n, "")
            if not item.done:
                yield item, each

    def _fitting(self, index: int | None, item_id: str, given: Object) -> list[Output]:
        return [
            item
            for item in self._items
            if item.kind == given["type"] and item.fits(index, item_id) and not item.is_other(given)
        ]

    def _new(self, kind: str, index: int | None, item_id: str) -> Output:
        came = len(self._items)
        item = Output(kind, index, (came if index is None else index, came), item_id)
        self._items.append(item)
        self._places.add(item.rank[0])
        return item


def _index(value: Object) -> int | None:
    index = value.get("output_index")
    return index if isinstance(index, int) and not isinstance(index, bool) and index >= 0 else None


def _rank(item: Output) -> Rank:
    return item.rank
