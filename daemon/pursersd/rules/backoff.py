"""How long to pause between attempts."""

from collections.abc import Callable, Iterator


def delays(first: float, cap: float, rng: Callable[[], float]) -> Iterator[float]:
    """Endless pauses in seconds, drawn from the upper half of a span that doubles from `first` up to `cap`.

    `rng` gives numbers from 0 up to 1, as random.random does. The lower half of the span is left out so that a crowd
    spreads but nobody hammers; no pause is above `cap`.
    """
    span = min(first, cap)
    while True:
        yield span * (0.5 + 0.5 * rng())
        span = min(span * 2, cap)
