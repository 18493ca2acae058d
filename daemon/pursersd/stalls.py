"""How long one thing kept the event loop to itself, while everybody else waited.

It is measured where the loop looks for what has come: what lies between two looks is a stall. That costs two readings of the
clock for each look and no timer, so that a daemon with nothing to do is not woken for it.
"""

import logging
import selectors
import time
from collections.abc import Callable

log = logging.getLogger(__name__)

LONG = 1.0
"""Seconds from which on a stall is worth a line in the log."""


class StallWatch(selectors.DefaultSelector):
    """Let an event loop use it as its selector."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._looked_at: float | None = None
        self.longest_s = 0.0
        """The longest stall since `begin`."""

    def begin(self) -> None:
        """Forget what was before: a start may take its time."""
        self.longest_s, self._looked_at = 0.0, None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for what comes, as every selector does."""
        if self._looked_at is not None:
            stall_s = self._clock() - self._looked_at
            self.longest_s = max(self.longest_s, stall_s)
            if stall_s >= LONG:
                log.warning("the event loop stood still for %.1f s: whoever asked meanwhile has waited", stall_s)
        found = super().select(timeout)
        self._looked_at = self._clock()
        return found
