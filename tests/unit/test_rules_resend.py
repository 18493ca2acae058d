"""rules/resend: what a second sending means, by tool."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.resend import Resend, read_only, remaining, resend_class


@pytest.mark.parametrize(
    ("tool", "found", "reads"),
    [
        ("project_registry_get", Resend.READ, True),
        ("a2a_wait", Resend.WAIT, True),
        ("something_else", Resend.MUTATING, False),
    ],
)
def test_classes(tool: str, found: Resend, reads: bool) -> None:
    assert resend_class(tool) is found
    assert read_only(tool) is reads


@pytest.mark.parametrize(("timeout_s", "age_s", "left"), [(30, 0, 30), (30, 10.5, 19.5), (30, 31, 0), (30, -5, 30)])
def test_remaining(timeout_s: float, age_s: float, left: float) -> None:
    assert remaining(timeout_s, age_s) == left


@given(st.floats(0, 1e6), st.floats(-1e6, 1e6))
def test_remaining_is_within_the_wait(timeout_s: float, age_s: float) -> None:
    assert 0 <= remaining(timeout_s, age_s) <= timeout_s
