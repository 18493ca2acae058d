"""Time that goes on while the machine sleeps.

`time.monotonic` stands still during a suspend on Linux and macOS, and with it every timer of the event loop. What must
not outlive a sleep (a lease, the idleness of a model) is measured here.
"""

import time
from collections.abc import Callable

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
_MONOTONIC: int | None = getattr(time, "CLOCK_MONOTONIC", None)

NOTICED = 1.0
"""Seconds by which one clock must outrun the other to count: they are not read in the same instant."""


def boottime() -> float:
    """Monotonic seconds that include suspended time, where the system can tell (Linux, macOS)."""
    # macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC goes on in a sleep, while Python's own monotonic clock does not.
    number = _BOOTTIME if _BOOTTIME is not None else _MONOTONIC
    return time.monotonic() if number is None else time.clock_gettime(number)


class SleepWatch:
    """Says whether time has passed that the timers did not count: the machine slept, or its clock was set forward.

    A virtual machine that was paused wakes with a wall clock that jumps; a clock that is set back means nothing.
    """

    def __init__(
        self,
        *,
        boot: Callable[[], float] = boottime,
        wall: Callable[[], float] = time.time,
        awake: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clocks = (boot, wall)
        self._awake = awake
        self._ahead = self._read()

    def slept(self) -> bool:
        """Whether a sleep lies between this call and the one before it."""
        before, self._ahead = self._ahead, self._read()
        return any(now - then > NOTICED for now, then in zip(self._ahead, before, strict=True))

    def _read(self) -> list[float]:
        return [clock() - self._awake() for clock in self._clocks]
