"""Which cues made from ticket state a waiter has had already (bridge.md §2.6, suppression and synthetic guard).

Both memories count only what was returned to a caller: a cue that was found and then left out is still new. Each
belongs to one conversation, so that a new chat on the same seat sees all open work again.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence

from pursersd.rules.events import is_synthetic, ticket_of
from pursersd.rules.relevance import Watcher

RESURFACE_S = 600.0
LIMIT = 500

Fingerprint = tuple[object, ...]
"""What makes a cue about the same ticket a new one: its status and the time of its last change."""


def fingerprint(cue: Mapping[str, object]) -> Fingerprint:
    """The fingerprint of a cue or of a ticket row."""
    return cue.get("status"), cue.get("updated_at")


class Suppression:
    """Withholds a cue for `resurface_s` after it was returned, unless its ticket changes or is in the journal."""

    def __init__(
        self, resurface_s: float = RESURFACE_S, *, clock: Callable[[], float] = time.monotonic, limit: int = LIMIT
    ) -> None:
        self._resurface_s = resurface_s
        self._clock = clock
        self._limit = limit
        self._surfaced: OrderedDict[tuple[str, str, str, str], tuple[Fingerprint, float]] = OrderedDict()
        """(board, view, agent id, ticket id) → what was returned and when; the least recently asked for first."""

    def __repr__(self) -> str:
        return f"<Suppression {len(self._surfaced)}/{self._limit}>"

    def should_surface(self, watcher: Watcher, ticket_id: str, mark: Fingerprint) -> bool:
        """Whether a cue about this ticket is news for the seat."""
        key = _key(watcher, ticket_id)
        before = self._surfaced.get(key)
        if before is None or before[0] != mark or self._clock() >= before[1] + self._resurface_s:
            return True
        self._surfaced.move_to_end(key)
        return False

    def suppressed_for(self, watcher: Watcher) -> Callable[[str, Fingerprint], bool]:
        """`should_surface` of one seat, the other way round, as `backlog_events` takes it."""
        return lambda ticket_id, mark: not self.should_surface(watcher, ticket_id, mark)

    def surfaced(self, watcher: Watcher, events: Sequence[Mapping[str, object]]) -> None:
        """Remember the synthetic ones among `events`; call it with what the caller of a wait was given."""
        for event in events:
            ticket_id = ticket_of(event)
            if ticket_id is not None and is_synthetic(event):
                self._remember(watcher, ticket_id, fingerprint(event))

    def told(self, watcher: Watcher, ticket: Mapping[str, object]) -> None:
        """The caller was given a journal event about this ticket: the ticket as it is now is no news either."""
        ticket_id = ticket_of(ticket)
        if ticket_id is not None:
            self._remember(watcher, ticket_id, fingerprint(ticket))

    def forget_ticket(self, board: str, ticket_id: str) -> None:
        """A journal event names the ticket: whatever was said about it on this board is out of date, for every seat."""
        for key in [key for key in self._surfaced if key[0] == board and key[3] == ticket_id]:
            del self._surfaced[key]

    def next_expiry(self, watcher: Watcher | None = None) -> float | None:
        """When, on the clock, the next withheld cue (of this seat) may come again; None if none is withheld."""
        now = self._clock()
        due = [
            at + self._resurface_s
            for key, (_, at) in self._surfaced.items()
            if watcher is None or key[:3] == _seat_key(watcher)
        ]
        return min((at for at in due if at > now), default=None)

    def _remember(self, watcher: Watcher, ticket_id: str, mark: Fingerprint) -> None:
        key = _key(watcher, ticket_id)
        self._surfaced[key] = (mark, self._clock())
        self._surfaced.move_to_end(key)
        while len(self._surfaced) > self._limit:
            self._surfaced.popitem(last=False)


class SyntheticGuard:
    """Keeps a wait from answering at once, again and again, with the same state.

    As long as the caller's cursor does not move, a synthetic cue ends a wait at its entry only once. What is withheld
    can still end the wait later, by a scan. The bridge withholds every synthetic cue after the first such answer; this
    one only those that were in it, so that work which has become visible since then is not held back.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._returned: OrderedDict[tuple[str, str, str], tuple[int, frozenset[Hashable]]] = OrderedDict()
        """(board, view, agent id) → the last cursor and the cues that were returned at it."""

    def __repr__(self) -> str:
        return f"<SyntheticGuard {len(self._returned)}/{self._limit}>"

    def admit(self, watcher: Watcher, cursor: int, events: Sequence[dict[str, object]]) -> list[dict[str, object]]:
        """`events` without the synthetic ones that were returned at this cursor before."""
        had = self._at(watcher, cursor)
        return [event for event in events if not (is_synthetic(event) and _cue_key(event) in had)]

    def returned(self, watcher: Watcher, cursor: int, events: Sequence[Mapping[str, object]]) -> None:
        """Remember the synthetic ones among `events`; call it with what the caller of a wait was given at its entry."""
        cues = frozenset(_cue_key(event) for event in events if is_synthetic(event))
        if not cues:
            return
        key = _seat_key(watcher)
        self._returned[key] = (cursor, cues | self._at(watcher, cursor))
        self._returned.move_to_end(key)
        while len(self._returned) > self._limit:
            self._returned.popitem(last=False)

    def _at(self, watcher: Watcher, cursor: int) -> frozenset[Hashable]:
        at, cues = self._returned.get(_seat_key(watcher), (cursor, frozenset()))
        return cues if at == cursor else frozenset()


def _seat_key(watcher: Watcher) -> tuple[str, str, str]:
    return watcher.board, watcher.view, watcher.agent_id


def _key(watcher: Watcher, ticket_id: str) -> tuple[str, str, str, str]:
    return (*_seat_key(watcher), ticket_id)


def _cue_key(event: Mapping[str, object]) -> Hashable:
    offer = event.get("offer")
    expires = offer.get("expires_at") if isinstance(offer, dict) else None
    return tuple(str(part) for part in (event.get("kind"), ticket_of(event), *fingerprint(event), expires))
