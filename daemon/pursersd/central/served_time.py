"""Central's own wall clock, as its answers tell it: whether an offer has expired is asked of that clock, never of ours.

Ours may be wrong, and may be set while we run. Between two answers Central's time goes on as our uptime does.
"""

import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime

from pursersd.clock import boottime
from pursersd.health import CLOCK_WRONG


class ServedTime:
    """What time it is at Central. Before its first answer our own clock stands in."""

    def __init__(self, *, clock: Callable[[], float] = boottime, wall: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._wall = wall
        self._ahead: float | None = None
        """Central's seconds since 1970 minus `clock`."""
        self._wrong_since: float | None = None
        """When (by `clock`) it was seen that our own clock is another one; None while it is not."""

    def told(self, date: str | None) -> None:
        """An answer had this Date header; it counts whole seconds."""
        if date is None:
            return
        try:
            self._ahead = parsedate_to_datetime(date).timestamp() - self._clock()
        except ValueError:
            return  # a proxy's own idea of a date: the last good one holds

    def now(self) -> float:
        """Seconds since 1970."""
        return self._wall() if self._ahead is None else self._clock() + self._ahead

    @property
    def ours_ahead_s(self) -> float:
        """By how much our own clock is ahead of Central's, in seconds; for people only."""
        return 0.0 if self._ahead is None else self._wall() - self.now()

    def wrong_for_s(self) -> float:
        """For how long our own clock has been seen to differ by more than CLOCK_WRONG; 0 while it does not."""
        if abs(self.ours_ahead_s) <= CLOCK_WRONG:
            self._wrong_since = None
            return 0.0
        if self._wrong_since is None:
            self._wrong_since = self._clock()
        return self._clock() - self._wrong_since
