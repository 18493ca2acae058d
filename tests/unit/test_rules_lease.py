"""rules/lease: what tickets say of holders, when to renew, what to tell, and what an event means."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules import lease as rules
from pursersd.rules.lease import Claim, Lease, LeaseKey, Standing

ME, OTHER = "AI-me", "AI-other"
WORK = LeaseKey("b", "T", "work", ME)
REVIEW = LeaseKey("b", "T", "review", ME)
NOW = 1000.0


def lease(key: LeaseKey = WORK, **fields: Any) -> Lease:
    return replace(Lease(key, "me", 900.0, NOW, NOW + 900), **fields)


def row(status: str = "claimed", holder: str | None = ME, reviewer: str | None = None, **fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"ticket_id": "T", "status": status, **fields}
    if holder is not None:
        found |= {"claimed_by_agent_id": holder, "claimed_by": "me", "ttl_s": 900}
    if reviewer is not None:
        found["review_lease"] = {"reviewer_agent_id": reviewer, "reviewer_agent_name": "me", "ttl_s": 900}
    return found


@pytest.mark.parametrize(
    ("ticket", "held"),
    [
        (row(), [WORK]),
        (row("in_progress"), [WORK]),
        (row("creating_report"), [WORK]),
        (row("open"), []),
        (row("submitted"), []),
        (row("claimed", None), []),
        (row("submitted", None, ME), [REVIEW]),
        (row("submitted", OTHER, ME), [REVIEW]),
        (row("closed", None, ME), []),
        (row("submitted", None, None, review_lease="nonsense"), []),
        ({"status": "claimed", "claimed_by_agent_id": ME}, []),
        ({}, []),
    ],
)
def test_who_holds_a_ticket(ticket: dict[str, Any], held: list[LeaseKey]) -> None:
    assert [claim.key for claim in rules.claims("b", ticket)] == held


@pytest.mark.parametrize(
    ("key", "ticket", "expected"),
    [
        (WORK, row(), "held"),
        (WORK, row("in_progress"), "held"),
        (WORK, row("claimed", OTHER), "lost"),
        (WORK, None, "ended"),
        (WORK, row("submitted"), "ended"),
        (WORK, row("closed"), "ended"),
        (WORK, row("canceled", None), "ended"),
        (WORK, row("needs_human", None), "ended"),
        (WORK, row("open", None, last_release_reason="explicit unclaim"), "ended"),
        (WORK, row("open", None, last_release_reason="review rejected"), "ended"),
        (WORK, row("open", None, last_release_reason="lease expired"), "lost"),
        (WORK, row("open", None), "lost"),
        (REVIEW, row("submitted", None, ME), "held"),
        (REVIEW, row("submitted", None, OTHER), "lost"),
        (REVIEW, row("submitted", None), "ended"),
        (REVIEW, row("open", None), "ended"),
        (REVIEW, row("rejected", None), "ended"),
        (REVIEW, row("claimed", OTHER), "lost"),
    ],
)
def test_how_a_lease_stands(key: LeaseKey, ticket: dict[str, Any] | None, expected: Standing) -> None:
    assert rules.standing(lease(key), ticket) == expected


@pytest.mark.parametrize(
    ("ttl_s", "seconds"), [(900, 300.0), (600, 240.0), (750, 300.0), (86400, 300.0), (10, 4.0), (1, 0.4), (0.1, 0.4)]
)
def test_renewals_are_due_at_forty_percent_and_never_later_than_five_minutes(ttl_s: float, seconds: float) -> None:
    assert rules.interval_s(ttl_s) == pytest.approx(seconds)


@pytest.mark.parametrize(("ttl_s", "setting", "limit"), [(900, None, 2700), (900, 60.0, 60), (0.5, None, 3)])
def test_the_idle_limit(ttl_s: float, setting: float | None, limit: float) -> None:
    assert rules.idle_limit_s(ttl_s, setting) == limit


@given(
    ttl_s=st.integers(1, 86400),
    left=st.floats(-2.0, 2.0),
    jitter=st.floats(0, 1),
    before=st.booleans(),
)
def test_a_lease_that_was_seen_is_renewed_while_most_of_it_is_left(
    ttl_s: int, left: float, jitter: float, before: bool
) -> None:
    """Whatever Central's clock says: never later than its own interval, and at once when little is left."""
    left_s = left * ttl_s
    known = lease(ttl_s=float(ttl_s), due=NOW + 5) if before else None
    seen = rules.seen(Claim(WORK, "me", float(ttl_s)), known, NOW, left_s=left_s, seq=None, jitter=jitter)
    assert NOW <= seen.due <= NOW + max(5.0, rules.interval_s(ttl_s) + 1)
    if left_s <= ttl_s - rules.interval_s(ttl_s):
        assert seen.due == NOW
    if 0 < left_s <= ttl_s:
        assert seen.due <= NOW + left_s + 1e-6


def test_who_does_not_know_what_is_left_asks_at_once_or_as_planned() -> None:
    claim = Claim(WORK, "me", 900.0)
    assert rules.seen(claim, None, NOW, left_s=None, seq=7, jitter=0).due == NOW
    assert rules.seen(claim, lease(due=NOW + 9), NOW, left_s=None, seq=7, jitter=0).due == NOW + 9
    far = rules.seen(claim, lease(due=NOW + 9), NOW, left_s=5000.0, seq=7, jitter=0)
    assert far.due == NOW + 9, "more than there can be: the clocks disagree"


@given(ttl_s=st.integers(1, 86400), jitter=st.floats(0, 1))
def test_a_renewed_lease_is_due_early_enough_and_clean(ttl_s: int, jitter: float) -> None:
    worn = lease(is_paused=True, is_resumed=True, has_failed=True)
    fresh = rules.renewed(worn, NOW, float(ttl_s), jitter)
    assert (fresh.is_paused, fresh.is_resumed, fresh.has_failed) == (False, False, False)
    interval = rules.interval_s(ttl_s)
    assert NOW + interval * (1 - rules.JITTER) - 1e-6 <= fresh.due <= NOW + interval + 1e-6
    assert fresh.expires == NOW + ttl_s


@pytest.mark.parametrize(
    ("ttl_s", "refused", "pause"), [(900, False, 30.0), (60, False, 6.0), (2, False, 0.4), (900, True, 300.0)]
)
def test_without_an_answer_it_is_tried_again_soon(ttl_s: float, refused: bool, pause: float) -> None:
    again = rules.unanswered(lease(ttl_s=float(ttl_s)), NOW, refused=refused)
    assert again.due == pytest.approx(NOW + pause)
    assert not again.has_failed, "nothing is known, so nothing is told"


FAILED = {
    "kind": "lease_keepalive_failed",
    "source": "bridge_keepalive",
    "board_id": "b",
    "ticket_id": "T",
    "lease_kind": "work",
    "error": "no",
}


@pytest.mark.parametrize(
    ("before", "stands", "is_kept", "is_told"),
    [
        ({}, "ended", False, False),
        ({}, "held", True, True),
        ({}, "lost", False, True),
        ({}, None, False, True),
        ({"has_failed": True}, "held", True, False),
        ({"has_failed": True}, "lost", False, False),
        ({"is_resumed": True}, "lost", False, False),
        ({"is_resumed": True}, "held", True, True),
        ({"is_resumed": True}, None, False, False),
    ],
)
def test_what_a_refused_renewal_means(
    before: dict[str, bool], stands: Standing | None, is_kept: bool, is_told: bool
) -> None:
    kept, cue = rules.not_renewed(lease(**before), stands, NOW, "no")
    assert cue == (FAILED if is_told else None)
    assert (kept is not None) == is_kept
    if kept is not None:
        assert (kept.due, kept.has_failed) == (NOW + 5.0, True)


def test_the_cue_of_a_pause_has_the_bridges_fields_in_its_order() -> None:
    assert list(rules.paused_cue(lease(REVIEW), 2700).items()) == [
        ("kind", "lease_keepalive_paused"),
        ("source", "bridge_keepalive"),
        ("board_id", "b"),
        ("ticket_id", "T"),
        ("lease_kind", "review"),
        ("reason", "keepalive paused: model idle"),
        ("idle_limit_s", 2700.0),
    ]


def event(kind: str = "ticket_status_changed", seq: int | None = 10, **fields: Any) -> dict[str, Any]:
    return {"kind": kind, "ticket_id": "T", **({} if seq is None else {"seq": seq}), **fields}


@pytest.mark.parametrize("status", ["open", "submitted", "closed", "rejected", "canceled", "terminated"])
@pytest.mark.parametrize("key", [WORK, REVIEW])
def test_a_lease_ends_with_its_tickets_state(key: LeaseKey, status: str) -> None:
    held = lease(key, seen_seq=9, due=NOW + 99)
    assert rules.after_event(held, event(status_to=status), NOW) is None
    assert rules.after_event(held, event(status_to=status, seq=9), NOW) is held, "that was before we saw it held"
    unknown = rules.after_event(replace(held, seen_seq=None), event(status_to=status), NOW)
    assert unknown is not None
    assert unknown.due == NOW, "who cannot tell which was first asks"


@pytest.mark.parametrize(
    ("key", "told", "is_dropped"),
    [
        (WORK, event(status_to="claimed"), False),
        (WORK, event("ticket_annotated"), False),
        (WORK, event("review_lease_expired", reviewer_agent_id=ME), False),
        (REVIEW, event("review_lease_expired", reviewer_agent_id=ME), True),
        (REVIEW, event("review_lease_released", reviewer_agent_id=ME), True),
        (REVIEW, event("review_lease_released"), True),
        (REVIEW, event("review_lease_expired", reviewer_agent_id=OTHER), False),
        (REVIEW, event("ticket_review_claimed"), False),
        (WORK, {**event(status_to="open"), "ticket_id": "other"}, False),
    ],
)
def test_which_events_end_which_lease(key: LeaseKey, told: dict[str, Any], is_dropped: bool) -> None:
    held = lease(key, seen_seq=1)
    assert rules.after_event(held, told, NOW) is (None if is_dropped else held)


def test_another_ttl_is_told_and_pulls_the_next_renewal_forward() -> None:
    assert rules.changed_ttl({"kind": "board_claim_ttl_changed", "claim_ttl_to": 60}) == 60
    for wrong in ({"claim_ttl_to": None}, {"claim_ttl_to": True}, {"claim_ttl_to": -1}, {}):
        assert rules.changed_ttl({"kind": "board_claim_ttl_changed", **wrong}) is None
    assert rules.changed_ttl({"kind": "ticket_created", "claim_ttl_to": 60}) is None
    assert rules.ttl_changed(lease(due=NOW + 300), NOW, 60.0).due == NOW + 24
    assert rules.ttl_changed(lease(due=NOW + 3), NOW, 60.0).due == NOW + 3


def test_pause_and_resume() -> None:
    asleep = rules.paused(lease(due=NOW - 1))
    assert asleep.is_paused
    awake = rules.resumed(asleep, NOW + 50)
    assert (awake.is_paused, awake.is_resumed, awake.due) == (False, True, NOW + 50)
    assert not rules.held(awake).is_resumed


def test_what_a_join_renewed() -> None:
    answer = {
        "agent_id": ME,
        "agent_name": "me",
        "renewed_leases": [
            {"ticket_id": "T", "lease_kind": "work", "ttl_s": 900, "lease_expires_at": "2026-11-30T08:00:00+00:00"},
            {"ticket_id": "R", "lease_kind": "review", "ttl_s": 900},
            {"lease_kind": "work"},
            "nonsense",
        ],
    }
    work, review = rules.joined_claims("b", answer)
    assert (work.key, work.ttl_s, work.expires_at) == (WORK, 900.0, 1796025600.0)
    assert (review.key, review.expires_at) == (replace(REVIEW, ticket_id="R"), None)
    assert rules.joined_claims("b", {"agent_id": ME}) == []


@pytest.mark.parametrize("text", [None, 5, "", "yesterday", "2026-11-30T08:00:00", "2026-11-30"])
def test_a_time_that_nobody_can_place_is_none(text: object) -> None:
    assert rules.moment(text) is None
