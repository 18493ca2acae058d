"""Which lines of a log are written: equal ones that come again and again are counted instead."""

from collections import OrderedDict
from dataclasses import dataclass

WINDOW = 60.0
"""Seconds in which equal lines are counted together."""

ALLOWED = 5
"""So many of them are written all the same: some events are equal and few."""

KNOWN = 256
"""So many different lines are remembered, those that came last."""


@dataclass(slots=True)
class _Line:
    since: float
    count: int = 0


class Repeated:
    """Counts equal lines."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, _Line] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Repeated {len(self._lines)} lines>"

    def admit(self, text: str, now: float) -> int | None:
        """How many equal ones were left out before this one, which is to be written; None if it is left out, too.

        `now` is in seconds, of a clock that never goes back.
        """
        line = self._lines.get(text)
        left_out = 0
        if line is None or now - line.since > WINDOW:
            left_out = max(line.count - ALLOWED, 0) if line is not None else 0
            line = self._lines[text] = _Line(now)
        self._lines.move_to_end(text)
        if len(self._lines) > KNOWN:
            self._lines.popitem(last=False)
        line.count += 1
        return left_out if line.count <= ALLOWED else None
