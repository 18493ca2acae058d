"""The tickets behind the events of a digest, as Central described them last; read again only when a digest needs them."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Ticket = Mapping[str, object]

LIMIT = 5000
"""Tickets kept of all boards; the one that nothing has happened to for longest goes first (bridge.md §5.1)."""


@dataclass(slots=True)
class _Known:
    ticket: Ticket = field(default_factory=dict)
    is_stale: bool = True
    changes: int = 0
    readers: set[str] = field(default_factory=set)


class Tickets:
    """The tickets of one pool: a ticket read is the same for all its seats (central.md §6.6)."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._known: OrderedDict[tuple[str, str], _Known] = OrderedDict()
        """By board and ticket id."""

    def __len__(self) -> int:
        return len(self._known)

    def changed(self, board: str, ticket_id: str, reader: str) -> None:
        """A reader has seen that something happened to a ticket."""
        known = self._known.setdefault((board, ticket_id), _Known())
        known.is_stale = True
        known.changes += 1
        known.readers.add(reader)
        self._known.move_to_end((board, ticket_id))
        while len(self._known) > self._limit:
            self._known.popitem(last=False)

    def stale(self, board: str) -> dict[str, int]:
        """The tickets of a board that must be read again; pass the numbers on to `read`."""
        return {ticket: known.changes for (of, ticket), known in self._known.items() if of == board and known.is_stale}

    def read(self, board: str, ticket_id: str, ticket: Ticket | None, changes: int) -> None:
        """Central was asked for a ticket when it had changed so often; None: there is none, or it is hidden."""
        known = self._known.get((board, ticket_id))
        if known is None:
            return
        known.is_stale = known.changes != changes
        known.ticket = known.ticket if ticket is None else ticket

    def seen(self, readers: Mapping[str, str]) -> Iterator[tuple[str, str, Ticket]]:
        """Board, id and content of the tickets to which the reader of each of these boards has seen something happen."""
        for (board, ticket_id), known in self._known.items():
            if readers.get(board) in known.readers:
                yield board, ticket_id, known.ticket

    def forget(self, board: str) -> None:
        """Another board has taken the place of this one."""
        for key in [key for key in self._known if key[0] == board]:
            del self._known[key]
