"""The file descriptors of this daemon: as many as the system allows, and some always kept for what must go on."""

import os
import resource
import time
from collections.abc import Callable

from pursersd.rules.configuration import DEFAULTS

WANTED = DEFAULTS.descriptors
"""Descriptors that we ask for: a conversation takes three, its link and two watched processes."""

RESERVE = 32
"""Descriptors that no new conversation may take: for Central, for files, and for pursersctl."""

REFUSED_LATELY = 60.0
"""Seconds that a refusal is shown."""


def raise_limit(most: int | None = None) -> int:
    """Ask the system for up to `most` descriptors, WANTED if nobody said how many; returns how many we may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _finite(soft)
    wanted = min(most or WANTED, _finite(hard))
    if limit >= wanted:
        return limit
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # a system with a lower limit of its own
        return limit
    return wanted


class Descriptors:
    """How many are in use, and whether there is room for another conversation."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._refused_at: float | None = None

    @property
    def limit(self) -> int:
        """How many this process may have."""
        return _finite(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    @property
    def in_use(self) -> int:
        """How many it has."""
        return len(os.listdir("/dev/fd")) - 1  # without the one that looks

    def has_room(self) -> bool:
        """Whether another conversation may begin; one that may not is remembered for `refused_s`."""
        if self.in_use + RESERVE <= self.limit:
            return True
        self.refused()
        return False

    def refused(self) -> None:
        """Somebody could not be served for lack of descriptors."""
        self._refused_at = self._clock()

    @property
    def refused_s(self) -> float | None:
        """Seconds since somebody was refused, if that was lately."""
        since = None if self._refused_at is None else self._clock() - self._refused_at
        return since if since is not None and since < REFUSED_LATELY else None


def _finite(limit: int) -> int:
    return WANTED if limit == resource.RLIM_INFINITY else limit
