"""Who of several waits on one seat is woken by work that only one can take (design: shared seats).

Two conversations on one seat are one agent to Central: both could claim the same ticket, and both would succeed. So an
offer, or open work, wakes the one that asks first, which is the one that waits longest. Updates of work in hand go to all.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping

from pursersd.rules.events import OFFER_ENDED, kind_of

KEPT_S = 30.0
"""How long work belongs to the wait that was woken by it; if it is still open then, another may be woken."""

LIMIT = 500

_TO_ONE = ("offer", "broadcast", "reconciled")


def is_for_one(event: Mapping[str, object]) -> bool:
    """Whether a judged event tells of work that exactly one conversation should take."""
    return event.get("reason") in _TO_ONE and kind_of(event) not in OFFER_ENDED


class Awards:
    """Which wait was woken by which work, for a while. `seat` and `work` are whatever names them."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, limit: int = LIMIT) -> None:
        self._clock = clock
        self._limit = limit
        self._holders: OrderedDict[tuple[Hashable, Hashable], tuple[Hashable, float]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Awards {len(self._holders)}/{self._limit}>"

    def award(self, seat: Hashable, work: Hashable, wait: Hashable) -> bool:
        """Whether `wait` may be woken by this work: nobody else of the seat was, or too long ago."""
        now = self._clock()
        holder = self._holders.get((seat, work))
        if holder is not None and holder[0] != wait and now < holder[1] + KEPT_S:
            return False
        self._holders[seat, work] = (wait, now)
        self._holders.move_to_end((seat, work))
        self._forget(now)
        return True

    def _forget(self, now: float) -> None:
        """What is too old to count, and what is too much: a wait that has ended long ago is not held on to."""
        while self._holders:
            oldest, (_, at) = next(iter(self._holders.items()))
            if now < at + KEPT_S and len(self._holders) <= self._limit:
                return
            del self._holders[oldest]
