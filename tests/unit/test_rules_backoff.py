"""rules/backoff: pauses grow, spread and stay below their cap."""

import random
from itertools import islice, pairwise

from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.backoff import delays


def test_the_span_doubles_up_to_the_cap() -> None:
    assert list(islice(delays(0.5, 5.0, lambda: 1.0), 6)) == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert list(islice(delays(0.5, 5.0, lambda: 0.0), 6)) == [0.25, 0.5, 1.0, 2.0, 2.5, 2.5]
    assert next(delays(9.0, 5.0, lambda: 1.0)) == 5.0


@given(st.floats(0.01, 10), st.floats(0.01, 60), st.integers())
def test_pauses_are_positive_and_bounded_for_ever(first: float, cap: float, seed: int) -> None:
    pauses = list(islice(delays(first, cap, random.Random(seed).random), 2000))
    assert all(0 < pause <= cap for pause in pauses)
    assert pauses[-1] >= cap / 2
    assert all(later <= earlier * 4 for earlier, later in pairwise(pauses))


def test_two_daemons_do_not_keep_step() -> None:
    one, other = (list(islice(delays(1, 30, random.Random(seed).random), 20)) for seed in (1, 2))
    assert not set(one) & set(other)
