"""rules/views: which view a role may have (bridge.md §2.4)."""

import pytest

from pursersd.errors import WaitPolicyError
from pursersd.rules.views import choose

AUTO = "wait_for='auto' is available only to worker or reviewer seats"
SUBMITTED = "wait_for='submitted' requires board:review authorization"


@pytest.mark.parametrize(
    ("wait_for", "role", "view"),
    [
        ("auto", "worker", "claimable"),
        ("auto", "reviewer", "submitted"),
        ("submitted", "reviewer", "submitted"),
        ("claimable", "worker", "claimable"),
        ("claimable", "reviewer", "claimable"),
        ("claimable", "coordinator", "claimable"),
        ("claimable", "orchestrator", "claimable"),
        ("claimable", None, "claimable"),
    ],
)
def test_granted(wait_for: str, role: str | None, view: str) -> None:
    assert choose(wait_for, role) == view


@pytest.mark.parametrize(
    ("wait_for", "role", "text"),
    [
        ("auto", "coordinator", AUTO),
        ("auto", "orchestrator", AUTO),
        ("auto", None, AUTO),
        ("submitted", "worker", SUBMITTED),
        ("submitted", "coordinator", SUBMITTED),
    ],
)
def test_refused(wait_for: str, role: str | None, text: str) -> None:
    with pytest.raises(WaitPolicyError) as refused:
        choose(wait_for, role)
    assert (str(refused.value), refused.value.code) == (text, "wait_configuration")
