"""Boards that Central refused: nobody asks again for a while (bridge.md §2.8).

The bridge remembers the board alone, so that one credential's refusal hides the board from another; here a refusal
belongs to whoever was refused.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pursersd.rules.failures import understood

RETRY_S = 900.0
"""How long a refusal counts before somebody tries again."""

PROBE_S = 30.0
"""How long that try may take before the next one may."""

LIMIT = 1000
MAX_TEXT = 1000


class DenialKey(NamedTuple):
    """Who was refused where."""

    url: str
    credential: str
    """The fingerprint, never the credential."""
    role: str | None
    """The declared role; another one may be admitted."""
    board: str


@dataclass(slots=True)
class _Denial:
    text: str
    until: float


class Denials:
    """The refusals of all Centrals, bounded: the ones refused longest ago are forgotten first."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, limit: int = LIMIT) -> None:
        self._clock = clock
        self._limit = limit
        self._denials: OrderedDict[DenialKey, _Denial] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Denials {len(self._denials)}/{self._limit}>"

    def refusal(self, key: DenialKey) -> str | None:
        """The words of a refusal that still counts, or None: then this caller may join now.

        When it has run out, one caller may, who reports with `remember` or `forget`; to the others it counts until then.
        """
        denial = self._denials.get(key)
        if denial is None:
            return None
        now = self._clock()
        if now < denial.until:
            return denial.text
        denial.until = now + PROBE_S
        return None

    def remember(self, key: DenialKey, error: BaseException) -> bool:
        """A join failed with this error: remember it if it is a decision about rights, and say whether it is.

        After any other failure the next caller may join: nothing is known about the board's answer.
        """
        if understood(error).cause != "authorization":
            if (denial := self._denials.get(key)) is not None:
                denial.until = self._clock()
            return False
        self._denials[key] = _Denial(str(error)[:MAX_TEXT], self._clock() + RETRY_S)
        self._denials.move_to_end(key)
        while len(self._denials) > self._limit:
            self._denials.popitem(last=False)
        return True

    def forget(self, key: DenialKey) -> None:
        """A join succeeded."""
        self._denials.pop(key, None)
