"""rules/relevance: the table of bridge.md §2.6, row by row, and what holds for every event."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.events import ACCEPTED, KEPT, View, fits
from pursersd.rules.relevance import (
    Watcher,
    ends,
    is_past,
    is_relevant_ticket,
    judge,
    needs_ticket,
    ticket_project,
)

ME, YOU = "AI-me", "AI-you"
CREATED = {"kind": "ticket_created", "seq": 5, "ticket_id": "T", "actor": "AI-boss", "status_to": "open"}
OPEN = {"ticket_id": "T", "status": "open", "target_url": "alpha/readme"}
SUBMITTED = {"ticket_id": "T", "status": "submitted", "target_url": "alpha/readme"}


def watcher(view: View = "claimable", *, only_mine: bool = True, project: str | None = None) -> Watcher:
    return Watcher("b", ME, "me", "PR-1", view, only_mine, project)


def event(kind: str, **fields: object) -> dict[str, object]:
    return {"kind": kind, "seq": 5, "ticket_id": "T", "actor": "AI-boss", **fields}


def reason(judged: dict[str, object] | None) -> object:
    return judged and judged["reason"]


# --- which tickets are work for me ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "only_mine", "relevant"),
    [
        ({}, True, True),
        ({"claimed_by_agent_id": YOU}, True, False),
        ({"claimed_by_agent_id": YOU}, False, True),
        ({"claimed_by_agent_id": ME, "status": "claimed"}, True, True),
        ({"created_by_agent_id": ME, "status": "closed"}, True, True),
        ({"status": "claimed"}, True, False),
        ({"assigned_to_agent_id": YOU}, True, False),
        ({"assigned_to_agent_id": ME, "status": "claimed"}, True, True),
        ({"assigned": {"agent_id": YOU, "kind": "agent_id"}}, True, False),
        ({"assigned": {"agent_id": ME, "kind": "agent_id"}}, True, True),
        ({"assigned": {"agent_name": "codex", "agent_id": None, "kind": "agent_platform"}}, True, True),
        ({"assigned": None}, True, True),
    ],
)
def test_tickets_of_a_board_without_dispatch(fields: dict[str, object], only_mine: bool, relevant: bool) -> None:
    assert is_relevant_ticket({**OPEN, **fields}, watcher(only_mine=only_mine)) is relevant


@pytest.mark.parametrize(
    ("fields", "free"),
    [
        ({}, True),
        ({"review_lease": {"reviewer_agent_id": YOU}}, False),
        ({"review_lease": None}, True),
        ({"review_state": "unclaimed", "review_lease": {"reviewer_agent_id": YOU}}, True),
        ({"review_state": " Expired "}, True),
        ({"review_state": "claimed_by_other"}, False),
        ({"review_state": "claimed_by_me"}, False),
        ({"review_state": {}}, True),
        ({"review_state": {"status": "unclaimed", "holder_agent_id": YOU}}, False),
        ({"review_state": {"reviewer_agent_id": YOU}}, False),
        ({"review_state": {"claimed_by_agent_id": YOU}}, False),
        ({"review_state": {"status": "expired", "holder_agent_id": YOU}}, True),
        ({"review_state": {"status": "claimed"}}, False),
        ({"review_state": 5}, False),
        ({"status": "open"}, False),
    ],
)
def test_submissions_to_review(fields: dict[str, object], free: bool) -> None:
    assert is_relevant_ticket({**SUBMITTED, **fields}, watcher("submitted")) is free


@pytest.mark.parametrize(
    ("fields", "relevant"),
    [
        ({"dispatch_state": {"state": "broadcast"}}, True),
        ({"dispatch_state": {"state": "offered"}}, False),
        ({"dispatch_state": {"state": "offered"}, "work_offer": {"agent_id": ME}}, True),
        ({"dispatch_state": {"state": "offered"}, "work_offer": {"agent_id": YOU}}, False),
        ({"dispatch_state": {"state": "offered"}, "claimed_by_agent_id": ME, "status": "claimed"}, True),
        ({"dispatch_state": {"state": "broadcast"}, "status": "claimed"}, False),
        ({"dispatch_state": {"state": "offered"}, "created_by_agent_id": ME}, False),
    ],
)
def test_tickets_of_a_dispatch_board(fields: dict[str, object], relevant: bool) -> None:
    assert is_relevant_ticket({**OPEN, **fields}, watcher()) is relevant


@pytest.mark.parametrize(
    ("fields", "relevant"),
    [
        ({"dispatch_state": {"state": "broadcast"}}, True),
        ({"dispatch_state": {"state": "broadcast"}, "review_lease": {"reviewer_agent_id": YOU}}, False),
        ({"dispatch_state": {"state": "offered"}}, False),
        ({"dispatch_state": {"state": "offered"}, "review_offer": {"agent_id": ME}}, True),
        ({"dispatch_state": {"state": "claimed"}, "review_lease": {"reviewer_agent_id": ME}}, True),
        (
            {"dispatch_state": {"state": "broadcast"}, "status": "open", "review_lease": {"reviewer_agent_id": ME}},
            False,
        ),
    ],
)
def test_submissions_of_a_dispatch_board(fields: dict[str, object], relevant: bool) -> None:
    assert is_relevant_ticket({**SUBMITTED, **fields}, watcher("submitted")) is relevant


@pytest.mark.parametrize(
    ("target", "project"),
    [
        ("alpha/readme", "alpha"),
        ("Alpha:readme", "alpha"),
        (" ALPHA / x", "alpha"),
        ("https://host/x", "https"),
        ("alpha", "alpha"),
        ("/x", None),
        ("", None),
        (None, None),
        (5, None),
    ],
)
def test_ticket_project(target: object, project: str | None) -> None:
    assert ticket_project({"target_url": target}) == project


def test_project_narrows_tickets() -> None:
    assert is_relevant_ticket(OPEN, watcher(project="alpha"))
    assert not is_relevant_ticket(OPEN, watcher(project="beta"))
    assert not is_relevant_ticket({**OPEN, "created_by_agent_id": ME}, watcher(project="beta", only_mine=False))


# --- which events are for me ----------------------------------------------------------------------------------------


def test_open_work_is_told_with_what_the_ticket_adds() -> None:
    ticket = {**OPEN, "last_claimed_by": "bob", "last_claimed_by_agent_id": YOU}
    assert judge(CREATED, ticket, watcher()) == {
        **CREATED,
        "target_url": "alpha/readme",
        "reason": "broadcast",
        "continuation": {
            "prior_holder": {
                "agent_name": "bob",
                "agent_id": YOU,
                "principal_id": None,
                "claimed_at": None,
                "release_reason": None,
            },
            "branch_and_commit": None,
            "abandoned_count": 0,
        },
    }
    assert judge(CREATED, {"ticket_id": "T", "status": "open"}, watcher()) == {**CREATED, "reason": "broadcast"}


@pytest.mark.parametrize("view", ["claimable", "submitted"])
@pytest.mark.parametrize("kind", ["offer_expired", "offer_revoked"])
def test_the_end_of_an_offer_needs_no_ticket(view: View, kind: str) -> None:
    ended = event(kind, offer_kind="work" if view == "claimable" else "review", offered_agent_id=ME)
    assert needs_ticket(ended, watcher(view)) is None
    assert judge(ended, None, watcher(view)) == {**ended, "reason": "offer"}
    assert judge({**ended, "offered_agent_id": YOU}, None, watcher(view)) is None
    assert judge({**ended, "offer_kind": "other"}, None, watcher(view)) is None


def test_an_offer_is_mine_while_the_ticket_says_so() -> None:
    offered = event("ticket_offered")
    ticket = {**OPEN, "dispatch_state": {"state": "offered"}, "tier": 1, "skills_required": ["py"]}
    mine = {**ticket, "work_offer": {"agent_id": ME, "expires_at": "soon"}}
    assert judge(offered, mine, watcher()) == {
        **offered,
        "offer": {"ticket_id": "T", "board_id": "b", "expires_at": "soon", "tier": 1, "skills_required": ["py"]},
        "target_url": "alpha/readme",
        "reason": "offer",
    }
    assert judge(offered, {**ticket, "work_offer": {"agent_id": YOU}}, watcher()) is None
    assert judge(offered, mine, watcher(project="alpha")) is not None
    assert judge(offered, mine, watcher(project="beta")) is None
    assert judge(offered, {**ticket, "claimed_by_agent_id": ME}, watcher()) is None
    assert judge(offered, {**OPEN, "dispatch_state": {"state": "broadcast"}}, watcher()) is None


def test_a_review_offer_is_only_for_the_submitted_view() -> None:
    offered = event("review_offered")
    ticket = {**SUBMITTED, "dispatch_state": {"state": "offered"}, "review_offer": {"agent_id": ME}}
    assert reason(judge(offered, ticket, watcher("submitted"))) == "offer"
    assert judge(offered, ticket, watcher()) is None
    assert needs_ticket(offered, watcher()) is None


HELD = ["ticket_status_changed", "ticket_annotated", "human_input_resolved", "coordinator_question_answered"]
HELD += ["ticket_parked", "ticket_unparked", "review_lease_expired"]


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize(
    ("event_fields", "ticket_fields", "held"),
    [
        ({}, {"claimed_by_agent_id": ME}, True),
        ({"submitted_by_agent_id": ME}, {}, True),
        ({"last_abandoned_by": ME}, {}, True),
        ({}, {"last_claimed_by_agent_id": ME}, True),
        ({}, {"last_claimed_by_agent_id": ME, "claimed_by_agent_id": YOU}, False),
        ({}, {"human_request": {"asked_by": {"agent_id": ME}}}, True),
        ({}, {"human_request": {"asked_by": None}}, False),
        ({"reviewer_agent_id": ME}, {}, False),
        ({"submitted_by_agent_id": YOU}, {"claimed_by_agent_id": YOU}, False),
    ],
)
@pytest.mark.parametrize("dispatch", [None, {"state": "claimed"}])
def test_updates_of_work_that_i_hold_held_or_asked_about(
    kind: str,
    event_fields: dict[str, object],
    ticket_fields: dict[str, object],
    held: bool,
    dispatch: dict[str, object] | None,
) -> None:
    ticket = {"ticket_id": "T", "status": "claimed", "dispatch_state": dispatch, **ticket_fields}
    judged = judge(event(kind, **event_fields), ticket, watcher(project="elsewhere"))
    assert reason(judged) == ("held_ticket_update" if held else None)


@pytest.mark.parametrize("kind", [*HELD, "ticket_review_claimed", "review_lease_released"])
def test_updates_of_a_review_that_i_do(kind: str) -> None:
    me = watcher("submitted", project="elsewhere")
    assert reason(judge(event(kind, reviewer_agent_id=ME), SUBMITTED, me)) == "held_ticket_update"
    lease = {**SUBMITTED, "review_lease": {"reviewer_agent_id": ME}}
    assert reason(judge(event(kind), lease, me)) == "held_ticket_update"
    assert judge(event(kind, submitted_by_agent_id=ME), {**SUBMITTED, "claimed_by_agent_id": ME}, me) is None


def test_a_submission_is_no_held_update() -> None:
    submitted = event("ticket_submitted", reviewer_agent_id=ME)
    assert reason(judge(submitted, SUBMITTED, watcher("submitted"))) == "broadcast"


def test_a_created_ticket_is_no_held_update() -> None:
    assert reason(judge(CREATED, {**OPEN, "claimed_by_agent_id": ME}, watcher())) == "broadcast"


@pytest.mark.parametrize(
    ("event_fields", "ticket_fields", "relevant"),
    [
        ({}, {"dispatch_state": {"state": "broadcast"}}, True),
        ({}, {"dispatch_state": {"state": "broadcast"}, "status": "claimed"}, False),
        ({}, {"dispatch_state": {"state": "offered"}}, False),
        ({}, {"dispatch_state": {"state": "offered"}, "work_offer": {"agent_id": ME}}, False),
        ({}, {"dispatch_state": {"state": "offered"}, "claimed_by_agent_id": ME}, True),
    ],
)
def test_events_of_a_dispatch_board(
    event_fields: dict[str, object], ticket_fields: dict[str, object], relevant: bool
) -> None:
    ticket = {**OPEN, **ticket_fields}
    judged = judge({**CREATED, **event_fields}, ticket, watcher(project="alpha"))
    assert reason(judged) == ("broadcast" if relevant else None)
    elsewhere = judge({**CREATED, **event_fields}, ticket, watcher(project="elsewhere"))
    assert reason(elsewhere) == ("broadcast" if ticket.get("claimed_by_agent_id") == ME else None)


@pytest.mark.parametrize(
    ("kind", "status_to", "ticket_fields", "relevant"),
    [
        ("ticket_status_changed", "submitted", {}, True),
        ("ticket_submitted", "submitted", {}, True),
        ("ticket_resubmitted", "submitted", {}, True),
        ("ticket_status_changed", "open", {}, False),
        ("ticket_annotated", "submitted", {}, False),
        ("ticket_status_changed", "submitted", {"review_lease": {"reviewer_agent_id": YOU}}, False),
        ("ticket_status_changed", "submitted", {"dispatch_state": {"state": "offered"}}, False),
    ],
)
def test_submissions_on_a_dispatch_board(
    kind: str, status_to: str, ticket_fields: dict[str, object], relevant: bool
) -> None:
    ticket = {**SUBMITTED, "dispatch_state": {"state": "broadcast"}, **ticket_fields}
    judged = judge(event(kind, status_to=status_to), ticket, watcher("submitted"))
    assert reason(judged) == ("broadcast" if relevant else None)


def test_a_review_that_another_seat_gave_up_is_work_for_me() -> None:
    for kind in ("review_lease_expired", "review_lease_released"):
        freed = event(kind, reviewer_agent_id=YOU)
        assert needs_ticket(freed, watcher("submitted")) == "T"
        assert reason(judge(freed, SUBMITTED, watcher("submitted"))) == "broadcast"


def test_project_narrows_events_of_a_board_without_dispatch() -> None:
    assert judge(CREATED, OPEN, watcher(project="alpha")) is not None
    assert judge(CREATED, OPEN, watcher(project="beta")) is None


@pytest.mark.parametrize(
    ("view", "shown", "absent", "failed"),
    [
        ("claimable", CREATED, None, None),
        ("claimable", event("ticket_offered"), None, None),
        ("claimable", event("review_lease_expired", reviewer_agent_id=ME), None, None),
        ("submitted", event("review_lease_expired", reviewer_agent_id=ME), "held_ticket_update", "held_ticket_update"),
        ("submitted", event("review_lease_released", reviewer_agent_id=ME), "held_ticket_update", "held_ticket_update"),
        ("submitted", event("ticket_review_claimed", reviewer_agent_id=ME), None, "held_ticket_update"),
        ("submitted", event("review_lease_expired", reviewer_agent_id=YOU), None, None),
        ("submitted", event("review_offered", reviewer_agent_id=ME), None, None),
    ],
)
def test_without_a_ticket(view: View, shown: dict[str, object], absent: str | None, failed: str | None) -> None:
    assert reason(judge(shown, None, watcher(view))) == absent
    assert reason(judge(shown, None, watcher(view), lookup_failed=True)) == failed


def test_a_failed_lookup_lets_an_event_pass_only_if_nothing_narrows_it_down() -> None:
    for seat, passes in (
        (watcher(only_mine=False), True),
        (watcher(only_mine=False, project="alpha"), False),
        (watcher(), False),
    ):
        assert judge(CREATED, None, seat, lookup_failed=True) == (CREATED if passes else None)
        assert judge(CREATED, None, seat) is None
        assert judge(event("ticket_offered"), None, seat, lookup_failed=True) is None


@pytest.mark.parametrize("field", ["submitted_by_agent_id", "last_abandoned_by", "reviewer_agent_id"])
def test_an_event_that_names_me_may_be_the_end_of_my_work(field: str) -> None:
    assert ends(event("ticket_annotated", **{field: ME}), watcher())
    assert not ends(event("ticket_annotated", **{field: YOU}), watcher())
    assert not ends(event("memory_written", **{field: ME}), watcher())


@pytest.mark.parametrize(
    ("kind", "status_to", "may_end"),
    [
        ("ticket_status_changed", "closed", True),
        ("ticket_status_changed", "rejected", True),
        ("ticket_status_changed", "canceled", True),
        ("ticket_status_changed", "terminated", True),
        ("ticket_status_changed", "open", False),
        ("ticket_annotated", "closed", False),
    ],
)
def test_history_of_a_finished_ticket_is_past_but_for_its_end(kind: str, status_to: str, may_end: bool) -> None:
    shown = event(kind, status_to=status_to)
    assert ends(shown, watcher()) is may_end
    assert is_past(shown, {"ticket_id": "T", "status": "closed"}, watcher()) is not may_end
    assert not is_past(shown, {"ticket_id": "T", "status": "claimed"}, watcher())


def test_what_i_did_myself_is_not_news() -> None:
    own = {**CREATED, "actor": ME}
    assert needs_ticket(own, watcher()) is None
    assert judge(own, OPEN, watcher()) is None


def test_an_event_without_a_ticket_is_never_relevant() -> None:
    for odd in ({**CREATED, "ticket_id": ""}, {**CREATED, "ticket_id": None}):
        assert needs_ticket(odd, watcher(only_mine=False)) is None
        assert judge(odd, None, watcher(only_mine=False), lookup_failed=True) is None


# --- what holds for all ---------------------------------------------------------------------------------------------

agents = st.sampled_from([ME, YOU, None])
events = st.fixed_dictionaries(
    {"kind": st.sampled_from(sorted(KEPT | ACCEPTED["submitted"] | {"memory_written"})), "seq": st.integers(1, 99)},
    optional={
        "ticket_id": st.sampled_from(["T", "", None]),
        "actor": agents,
        "offer_kind": st.sampled_from(["work", "review"]),
        "status_to": st.sampled_from(["open", "submitted", "closed"]),
        "reason": st.just("Central's own"),
        "offered_agent_id": agents,
        "reviewer_agent_id": agents,
        "submitted_by_agent_id": agents,
        "last_abandoned_by": agents,
    },
)
offers = st.none() | st.fixed_dictionaries({"agent_id": agents}, optional={"expires_at": st.just("x")})
tickets = st.none() | st.fixed_dictionaries(
    {"ticket_id": st.just("T"), "status": st.sampled_from(["open", "submitted", "claimed", "closed"])},
    optional={
        "claimed_by_agent_id": agents,
        "created_by_agent_id": agents,
        "assigned": st.none() | st.fixed_dictionaries({"agent_id": agents}),
        "last_claimed_by_agent_id": agents,
        "dispatch_state": st.none() | st.fixed_dictionaries({"state": st.sampled_from(["broadcast", "offered"])}),
        "work_offer": offers,
        "review_offer": offers,
        "review_lease": st.none() | st.fixed_dictionaries({"reviewer_agent_id": agents}),
        "review_state": st.sampled_from([None, "unclaimed", "claimed_by_other", {}]),
        "human_request": st.none() | st.just({"asked_by": {"agent_id": ME}}) | st.just({}),
        "target_url": st.sampled_from(["alpha/x", "", None]),
        "submission_history": st.none() | st.just([{"notes": "branch_and_commit: a/b @ 1"}]),
    },
)
watchers = st.builds(
    watcher, st.sampled_from(["claimable", "submitted"]), only_mine=st.booleans(), project=st.sampled_from([None, "x"])
)
ADDED = {"reason", "offer", "target_url", "continuation"}


@given(events, tickets, watchers, st.booleans())
def test_judging_adds_a_reason_and_changes_nothing(
    shown: dict[str, Any], ticket: dict[str, Any] | None, seat: Watcher, failed: bool
) -> None:
    before = copy.deepcopy((shown, ticket))
    judged = judge(shown, ticket, seat, lookup_failed=failed)
    assert (shown, ticket) == before
    if judged is None:
        return
    assert judged is not shown
    assert fits(shown, seat.view)
    assert shown.get("actor") != ME
    assert {key: value for key, value in judged.items() if key not in ADDED} == {
        key: value for key, value in shown.items() if key not in ADDED
    }
    if ticket is not None:
        assert judged["reason"] in ("offer", "held_ticket_update", "broadcast")


@given(events, tickets, watchers)
def test_an_event_that_needs_no_ticket_is_judged_the_same_with_any(
    shown: dict[str, Any], ticket: dict[str, Any] | None, seat: Watcher
) -> None:
    if needs_ticket(shown, seat) is None:
        assert judge(shown, ticket, seat) == judge(shown, None, seat)


@given(tickets, watchers)
def test_a_newly_opened_ticket_is_told_if_it_is_work_for_me(ticket: dict[str, Any] | None, seat: Watcher) -> None:
    if ticket is not None and seat.view == "claimable" and not isinstance(ticket.get("dispatch_state"), dict):
        assert (judge(CREATED, ticket, seat) is not None) == is_relevant_ticket(ticket, seat)
