"""How often each named lossy window opened since this daemon began. One object for the whole daemon."""

import logging
import time
from collections import Counter
from collections.abc import Callable

from pursersd.api import LossyWindow
from pursersd.rules.windows import WINDOWS

log = logging.getLogger(__name__)


class Windows:
    """The counts. A crash takes them along: the next daemon begins at nothing and invents no number."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: Counter[str] = Counter()
        self._last: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Windows {dict(self._counts)}>"

    def opened(self, name: str, what: str, count: int = 1) -> None:
        """Something may have been lost: `count` things, `what` of them for the log."""
        window = WINDOWS[name]
        self._counts[name] += count
        self._last[name] = self._clock()
        log.warning("%s (%s): %s. %s", name, window.lost, what, window.recovery)

    def snapshot(self) -> list[LossyWindow]:
        """Every window, also those that never opened."""
        now = self._clock()
        return [
            LossyWindow(
                name=name,
                counter=window.counter,
                count=self._counts[name],
                last_s=round(now - self._last[name], 3) if name in self._last else None,
                text=f"May be lost: {window.lost}. {window.recovery}",
            )
            for name, window in WINDOWS.items()
        ]
