"""Whose turn it is when several want more than there is: each in turn, and nobody above its share."""

from collections import Counter, OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class FairQueue(Generic[T]):
    """A line for `slots` places, of which one party holds at most `share`.

    Entries of one party are served in their order; of the parties that wait, each gets one entry before any gets the next.
    """

    def __init__(self, slots: int, share: int) -> None:
        self._slots = slots
        self._share = share
        self._waiting: OrderedDict[Hashable, deque[T]] = OrderedDict()
        """The parties in the order in which their turns come."""
        self._holders: dict[T, Hashable] = {}
        self._held: Counter[Hashable] = Counter()

    def __repr__(self) -> str:
        waiting = sum(len(line) for line in self._waiting.values())
        return f"<FairQueue {len(self._holders)} of {self._slots} held, {waiting} waiting>"

    @property
    def is_empty(self) -> bool:
        """Whether nobody holds a place or waits for one."""
        return not self._holders and not self._waiting

    def enter(self, party: Hashable, entry: T) -> list[T]:
        """Get into line; returns the entries whose turn it is now, each of which holds a place until it leaves."""
        self._waiting.setdefault(party, deque()).append(entry)
        return self._admit()

    def leave(self, party: Hashable, entry: T) -> list[T]:
        """Give back its place, or its position in the line; returns the entries whose turn it is now."""
        if self._holders.pop(entry, None) is not None:
            self._held[party] -= 1
            if not self._held[party]:
                del self._held[party]
        elif party in self._waiting:
            self._waiting[party].remove(entry)
            if not self._waiting[party]:
                del self._waiting[party]
        return self._admit()

    def _admit(self) -> list[T]:
        admitted = []
        while len(self._holders) < self._slots:
            party = next((p for p in self._waiting if self._held[p] < self._share), None)
            if party is None:
                break
            entry = self._waiting[party].popleft()
            self._waiting.move_to_end(party)
            if not self._waiting[party]:
                del self._waiting[party]
            self._holders[entry] = party
            self._held[party] += 1
            admitted.append(entry)
        return admitted
