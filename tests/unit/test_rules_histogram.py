"""rules.histogram: percentiles that are right to the width of a class, in bounded memory."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.histogram import BOUNDS, Histogram

durations = st.lists(st.floats(0.0011, 9_000), min_size=1, max_size=200)


def filled(values: list[float]) -> Histogram:
    found = Histogram()
    for value in values:
        found.add(value)
    return found


@given(durations, st.sampled_from([0.5, 0.95, 0.99, 1.0]))
def test_a_percentile_is_at_most_a_class_too_high_and_never_too_low(values: list[float], share: float) -> None:
    exact = sorted(values)[math.ceil(share * len(values)) - 1]
    assert exact <= filled(values).percentile(share) <= exact * 1.2501


@given(durations)
def test_it_knows_count_sum_and_the_longest(values: list[float]) -> None:
    found = filled(values)
    assert (found.count, found.max_s) == (len(values), max(values))
    assert found.sum_s == pytest.approx(sum(values))
    assert [found.within(bound) for bound in BOUNDS] == [sum(v <= bound for v in values) for bound in BOUNDS]


def test_bounds_rise_by_at_most_a_quarter() -> None:
    assert all(1 < after / before <= 1.2501 for before, after in itertools.pairwise(BOUNDS))
    assert (BOUNDS[0], BOUNDS[-1]) == (0.001, 10_000)


def test_of_nothing_everything_is_nothing() -> None:
    assert [Histogram().percentile(share) for share in (0.5, 0.99)] == [0, 0]


def test_what_is_beyond_the_bounds_counts_too() -> None:
    found = filled([-1.0, 0.0, 50_000.0])
    assert (found.percentile(0.5), found.percentile(1.0)) == (0.001, 50_000.0)
    assert found.within(BOUNDS[-1]) == 2


def test_it_stays_as_large_as_it_is() -> None:
    found = filled([0.01])
    before = len(found._counts)
    for number in range(10_000):
        found.add(number / 7)
    assert len(found._counts) == before
