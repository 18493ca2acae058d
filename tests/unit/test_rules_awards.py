"""Work that only one of several waits on a seat may be woken by."""

import pytest

from pursersd.rules.awards import KEPT_S, LIMIT, Awards, is_for_one


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_first_who_asks_is_woken_and_stays_the_one() -> None:
    awards = Awards(clock=Clock())
    assert awards.award("seat", "work", "first")
    assert not awards.award("seat", "work", "second")
    assert awards.award("seat", "work", "first")


def test_other_work_and_other_seats_have_awards_of_their_own() -> None:
    awards = Awards(clock=Clock())
    assert awards.award("seat", "work", "first")
    assert awards.award("seat", "more work", "second")
    assert awards.award("another seat", "work", "second")


def test_work_that_is_still_open_after_a_while_may_wake_another() -> None:
    clock = Clock()
    awards = Awards(clock=clock)
    assert awards.award("seat", "work", "first")
    clock.now += KEPT_S - 0.1
    assert not awards.award("seat", "work", "second")
    clock.now += 0.1
    assert awards.award("seat", "work", "second")
    assert not awards.award("seat", "work", "first")


def test_the_memory_is_bounded() -> None:
    awards = Awards(clock=Clock())
    for number in range(LIMIT + 1):
        awards.award("seat", number, "first")
    assert repr(awards) == f"<Awards {LIMIT}/{LIMIT}>"
    assert awards.award("seat", 0, "second")


@pytest.mark.parametrize(
    ("kind", "reason", "expected"),
    [
        ("ticket_created", "broadcast", True),
        ("ticket_offered", "offer", True),
        ("review_offered", "reconciled", True),
        ("ticket_backlog", "broadcast", True),
        ("offer_expired", "offer", False),
        ("offer_revoked", "offer", False),
        ("ticket_annotated", "held_ticket_update", False),
        ("ticket_status_changed", "held_ticket_update", False),
    ],
)
def test_which_events_are_for_one(kind: str, reason: str, expected: bool) -> None:
    assert is_for_one({"kind": kind, "reason": reason}) is expected


def test_what_is_over_is_forgotten_with_the_next_award() -> None:
    """Whoever was woken long ago may have gone, and is not held on to."""
    clock = Clock()
    awards = Awards(clock=clock)
    for number in range(100):
        awards.award("seat", number, "first")
    clock.now += KEPT_S - 1
    awards.award("seat", 0, "first")
    clock.now += 1
    awards.award("seat", "work", "second")
    assert repr(awards) == f"<Awards 2/{LIMIT}>"
