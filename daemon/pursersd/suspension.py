"""Notice that time has passed in which this process did not run: the machine slept, or somebody stopped us.

Afterwards nothing that was open can be trusted: connections may have died unseen, Central may have given up on us.
"""

import logging
import time
from collections.abc import Callable

import anyio

from pursersd.clock import SleepWatch

log = logging.getLogger(__name__)

TICK = 5.0
"""Seconds between two looks at the clocks."""

LATE = 30.0
"""Seconds by which a look must be late to count as a stop: a busy machine makes it late, too, but never so much."""


class Suspension:
    """Calls `woke` after each sleep or stop. `run()` owns nothing but its timer."""

    def __init__(
        self,
        woke: Callable[[], None],
        *,
        watch: SleepWatch | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.count = 0
        """How often it happened."""
        self._woke = woke
        self._watch = watch or SleepWatch()
        self._clock = clock
        self._at: float | None = None
        self._looked = clock()

    def __repr__(self) -> str:
        return f"<Suspension {self.count}>"

    @property
    def since_s(self) -> float | None:
        """Seconds since we woke last; None if we never slept."""
        return None if self._at is None else self._clock() - self._at

    async def run(self) -> None:
        """Look at the clocks until cancelled."""
        while True:
            await anyio.sleep(TICK)
            self.look()

    def look(self) -> bool:
        """Whether we did not run between this look and the one before it; tells `woke` if so."""
        before, self._looked = self._looked, self._clock()
        late_s = self._looked - before - TICK
        slept = self._watch.slept()
        if not slept and late_s < LATE:
            return False
        self.count += 1
        self._at = self._looked
        why = "the machine slept, or its clock was set forward" if slept else f"stopped for {late_s:.0f} s"
        log.warning("time has passed without us (%s): every connection is tried anew", why)
        self._woke()
        return True
