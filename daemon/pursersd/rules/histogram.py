"""How long something took, many times over, in bounded memory: a count for each class of durations. Pure."""

from bisect import bisect_left

_STEPS = ("1.0", "1.2", "1.5", "1.8", "2.2", "2.7", "3.3", "3.9", "4.7", "5.6", "6.8", "8.2")

BOUNDS: tuple[float, ...] = (*(float(f"{step}e{power}") for power in range(-3, 4) for step in _STEPS), 1e4)
"""Upper bounds of the classes, in seconds: twelve to each power of ten, from a millisecond to some hours.

Neighbours are at most 25 % apart, which is how far a percentile may be off.
"""


class Histogram:
    """Durations by class. It takes the same room however many there were."""

    __slots__ = ("_counts", "count", "max_s", "sum_s")

    def __init__(self) -> None:
        self.count = 0
        self.sum_s = 0.0
        self.max_s = 0.0
        self._counts = [0] * (len(BOUNDS) + 1)
        """The last one is of those beyond the last bound."""

    def __repr__(self) -> str:
        return f"<Histogram {self.count} up to {self.max_s:.3f} s>"

    def add(self, seconds: float) -> None:
        """Something took so long; less than nothing counts as nothing."""
        seconds = max(0.0, seconds)
        self.count += 1
        self.sum_s += seconds
        self.max_s = max(self.max_s, seconds)
        self._counts[bisect_left(BOUNDS, seconds)] += 1

    def percentile(self, share: float) -> float:
        """What the given share (0.95 for p95) of all took at most, up to the width of a class; 0 when there were none."""
        rank = share * self.count
        seen = 0
        for bound, count in zip((*BOUNDS, self.max_s), self._counts, strict=True):
            seen += count
            if count and seen >= rank:
                return min(bound, self.max_s)
        return self.max_s

    def within(self, bound: float) -> int:
        """How many took at most as long as this one of the BOUNDS."""
        return sum(self._counts[: BOUNDS.index(bound) + 1])
