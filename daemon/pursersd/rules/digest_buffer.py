"""The events that digests are made of: the newest of all boards of one credential, each kept once for all its readers.

A reader is a seat, by its agent id: pages are filtered by seat, so that two readers need not have seen the same events.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pursersd.rules.events import seq_of

Event = dict[str, object]

LIMIT = 5000
"""Events kept of all boards; the one that came first goes first (bridge.md §5.1)."""


@dataclass(slots=True)
class _Kept:
    event: Event
    readers: set[str] = field(default_factory=set)


class Buffer:
    """The events of one pool."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        """By board and event id."""
        self._dropped: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<Buffer {len(self._kept)}/{self._limit} events>"

    def add(self, board: str, reader: str, events: Sequence[Mapping[str, object]]) -> list[Event]:
        """A page of the reader's journal: keep its events, and return those that the reader had not seen."""
        new = []
        for event in events:
            identity = str(event.get("id") or f"EV-{board}-{event.get('seq')}")
            kept = self._kept.get((board, identity))
            if kept is None:
                kept = self._kept[board, identity] = _Kept({**event, "board_id": board, "id": identity})
            if reader not in kept.readers:
                kept.readers.add(reader)
                new.append(kept.event)
        while len(self._kept) > self._limit:
            (dropped_of, _), dropped = self._kept.popitem(last=False)
            self._dropped[dropped_of] = max(self.dropped(dropped_of), seq_of(dropped.event) or 0)
        return new

    def events(self, readers: Mapping[str, str], since: Mapping[str, int]) -> list[Event]:
        """What the reader of each of these boards has seen after these places, in the order in which it happened."""
        found = [
            kept.event
            for (board, _), kept in self._kept.items()
            if board in readers and readers[board] in kept.readers and (seq_of(kept.event) or 0) > since[board]
        ]
        return sorted(found, key=lambda event: (str(event.get("occurred_at", "")), seq_of(event) or 0))

    def dropped(self, board: str) -> int:
        """Up to which place in a board's journal events may have been dropped; 0 if none was."""
        return self._dropped.get(board, 0)

    def forget(self, board: str) -> None:
        """Another journal has taken the place of this board's: what was seen of it means nothing."""
        for key in [key for key in self._kept if key[0] == board]:
            del self._kept[key]
        self._dropped.pop(board, None)
