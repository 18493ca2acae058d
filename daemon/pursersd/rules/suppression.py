"""Which cues made from ticket state a waiter has had already (bridge.md §2.6, suppression and synthetic guard).

Both memories count only what was returned to a caller: a cue that was found and then left out is still new. Each
belongs to one conversation, so that a new chat on the same seat sees all open work again.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence

from pursersd.rules.events import is_synthetic, ticket_of
from pursersd.rules.relevance import Watcher

RESURFACE_S = 600.0

TICKETS = 2000
"""Tickets that one conversation's memory holds, the ones told last. With more than these open it is told of the others
again and again, so there is room for more than anybody has; an entry takes about half a kilobyte."""

SEATS = 500
"""Seats whose last answer the guard remembers."""

Fingerprint = tuple[object, ...]
"""What makes a cue about the same ticket a new one: its status and the time of its last change."""

_Key = tuple[str, str, str, str]
"""Board, view, agent id, ticket id."""


def fingerprint(cue: Mapping[str, object]) -> Fingerprint:
    """The fingerprint of a cue or of a ticket row."""
    return cue.get("status"), cue.get("updated_at")


class Suppression:
    """Withholds a cue for `resurface_s` after it was returned, unless its ticket changes or is in the journal."""

    def __init__(
        self, resurface_s: float = RESURFACE_S, *, clock: Callable[[], float] = time.monotonic, limit: int = TICKETS
    ) -> None:
        self._resurface_s = resurface_s
        self._clock = clock
        self._limit = limit
        self._surfaced: OrderedDict[_Key, tuple[int, float]] = OrderedDict()
        """The hash of what was returned and when, in that order: the first ones may come again first."""
        self._about: dict[tuple[str, str], tuple[_Key, ...]] = {}
        """The same by board and ticket."""

    def __repr__(self) -> str:
        return f"<Suppression {len(self._surfaced)}/{self._limit}>"

    def should_surface(self, watcher: Watcher, ticket_id: str, mark: Fingerprint) -> bool:
        """Whether a cue about this ticket is news for the seat."""
        before = self._surfaced.get((*_seat_key(watcher), ticket_id))
        return before is None or before[0] != hash(mark) or self._clock() >= before[1] + self._resurface_s

    def suppressed_for(self, watcher: Watcher) -> Callable[[str, Fingerprint], bool]:
        """`should_surface` of one seat, the other way round, as `backlog_events` takes it."""
        return lambda ticket_id, mark: not self.should_surface(watcher, ticket_id, mark)

    def surfaced(self, watcher: Watcher, events: Sequence[Mapping[str, object]]) -> None:
        """Remember the synthetic ones among `events`; call it with what the caller of a wait was given."""
        for event in events:
            ticket_id = ticket_of(event)
            if ticket_id is not None and is_synthetic(event):
                self._remember((*_seat_key(watcher), ticket_id), fingerprint(event))

    def told(self, watcher: Watcher, ticket: Mapping[str, object]) -> None:
        """The caller was given a journal event about this ticket: the ticket as it is now is no news either."""
        ticket_id = ticket_of(ticket)
        if ticket_id is not None:
            self._remember((*_seat_key(watcher), ticket_id), fingerprint(ticket))

    def forget_ticket(self, board: str, ticket_id: str) -> None:
        """A journal event names the ticket: whatever was said about it on this board is out of date, for every seat."""
        for key in self._about.pop((board, ticket_id), ()):
            del self._surfaced[key]

    def next_expiry(self, watcher: Watcher | None = None) -> float | None:
        """When, on the clock, the next withheld cue (of this seat) may come again; None if none is withheld."""
        now = self._clock()
        for key, (_, at) in self._surfaced.items():
            if at + self._resurface_s > now and (watcher is None or key[:3] == _seat_key(watcher)):
                return at + self._resurface_s
        return None

    def _remember(self, key: _Key, mark: Fingerprint) -> None:
        now = self._clock()
        if key not in self._surfaced:
            self._about[key[0], key[3]] = (*self._about.get((key[0], key[3]), ()), key)
        self._surfaced[key] = (hash(mark), now)
        self._surfaced.move_to_end(key)
        while self._surfaced:
            oldest, (_, at) = next(iter(self._surfaced.items()))
            if len(self._surfaced) <= self._limit and now < at + self._resurface_s:
                break
            self._drop(oldest)

    def _drop(self, key: _Key) -> None:
        del self._surfaced[key]
        others = tuple(other for other in self._about.pop((key[0], key[3])) if other != key)
        if others:
            self._about[key[0], key[3]] = others


class SyntheticGuard:
    """Keeps a wait from answering at once, again and again, with the same state.

    As long as the caller's cursor does not move, a synthetic cue ends a wait at its entry only once. What is withheld
    can still end the wait later, by a scan. The bridge withholds every synthetic cue after the first such answer; this
    one only those that were in it, so that work which has become visible since then is not held back. And it does so for
    `resurface_s` only: a caller whose waits are too short for a scan would never be told again.
    """

    def __init__(
        self, resurface_s: float = RESURFACE_S, *, clock: Callable[[], float] = time.monotonic, limit: int = SEATS
    ) -> None:
        self._resurface_s = resurface_s
        self._clock = clock
        self._limit = limit
        self._returned: OrderedDict[tuple[str, str, str], tuple[int, dict[Hashable, float]]] = OrderedDict()
        """(board, view, agent id) → the last cursor, and when which cues were returned at it."""

    def __repr__(self) -> str:
        return f"<SyntheticGuard {len(self._returned)}/{self._limit}>"

    def admit(self, watcher: Watcher, cursor: int, events: Sequence[dict[str, object]]) -> list[dict[str, object]]:
        """`events` without the synthetic ones that were returned at this cursor before."""
        had, now = self._at(watcher, cursor), self._clock()
        return [
            event
            for event in events
            if not (is_synthetic(event) and now < had.get(_cue_key(event), -math.inf) + self._resurface_s)
        ]

    def returned(self, watcher: Watcher, cursor: int, events: Sequence[Mapping[str, object]]) -> None:
        """Remember the synthetic ones among `events`; call it with what the caller of a wait was given at its entry."""
        cues = dict.fromkeys((_cue_key(event) for event in events if is_synthetic(event)), self._clock())
        if not cues:
            return
        key = _seat_key(watcher)
        self._returned[key] = (cursor, self._at(watcher, cursor) | cues)
        self._returned.move_to_end(key)
        while len(self._returned) > self._limit:
            self._returned.popitem(last=False)

    def withdrawn(self, watcher: Watcher, cursor: int, events: Sequence[Mapping[str, object]]) -> None:
        """The caller did not get `events` after all."""
        had = self._at(watcher, cursor)
        for event in events:
            had.pop(_cue_key(event), None)

    def _at(self, watcher: Watcher, cursor: int) -> dict[Hashable, float]:
        at, cues = self._returned.get(_seat_key(watcher), (cursor, {}))
        return cues if at == cursor else {}


def _seat_key(watcher: Watcher) -> tuple[str, str, str]:
    return watcher.board, watcher.view, watcher.agent_id


def _cue_key(event: Mapping[str, object]) -> Hashable:
    offer = event.get("offer")
    expires = offer.get("expires_at") if isinstance(offer, dict) else None
    return tuple(str(part) for part in (event.get("kind"), ticket_of(event), *fingerprint(event), expires))
