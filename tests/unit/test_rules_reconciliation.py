"""rules/reconciliation: offers found by reading state, as the real bridge puts them into a result (bridge.md §2.6)."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pursersd.rules.backlog import offer_events
from pursersd.rules.multi_result import BoardOutcome, multi_result, tagged
from pursersd.rules.outcome import scan_reason, wait_result
from pursersd.rules.reconciliation import Found, as_offers
from pursersd.rules.relevance import Watcher
from rig.wait_oracle import HOME, PRINCIPAL, SEAT, Board, bridge, seat_id, wait_many, wait_one

Json = Any

QUICK = settings(max_examples=200)

OFFER: Json = {"kind": "ticket_offered", "source": "offer_reconciliation", "ticket_id": "O", "reason": "reconciled"}
CUE: Json = {"kind": "ticket_backlog", "source": "backlog_scan", "ticket_id": "T", "reason": "broadcast"}
JOURNAL: Json = {"kind": "ticket_created", "ticket_id": "T", "seq": 7, "reason": "broadcast"}


@pytest.mark.parametrize(
    ("events", "needed"),
    [
        ([], True),
        ([JOURNAL, CUE], True),
        ([{"kind": "offer_expired", "seq": 1}], True),
        ([JOURNAL, OFFER], False),
        ([{"kind": "review_offered", "seq": 1}], False),
    ],
)
def test_offers_are_looked_at_once_more_unless_there_is_one(events: list[Json], needed: bool) -> None:
    found = Found(events, "journal")
    assert found.needs_offers is needed
    assert found.with_offers([]) is found
    assert (found.with_offers([OFFER]) is found) is not needed


def test_offers_come_first_and_decide_the_reason() -> None:
    assert Found([], "timeout").with_offers([OFFER]) == Found([OFFER])
    assert Found([JOURNAL, CUE], "backlog").with_offers([OFFER]) == Found([OFFER, JOURNAL, CUE])


def test_a_cue_about_an_offered_ticket_gives_way_and_a_journal_event_does_not() -> None:
    offer = {**OFFER, "ticket_id": "T"}
    nameless: Json = {"kind": "lease_keepalive_paused", "source": "bridge_keepalive"}
    assert Found([JOURNAL, CUE, nameless]).with_offers([offer]) == Found([offer, JOURNAL, nameless])


def test_tickets_of_one_name_on_two_boards_are_two() -> None:
    here, there = {**CUE, "board_id": "a"}, {**OFFER, "ticket_id": CUE["ticket_id"], "board_id": "b"}
    assert Found([here]).with_offers([there]) == Found([there, here])


def test_as_offers() -> None:
    offers = [dict(OFFER)]
    assert as_offers(offers) == [{**OFFER, "reason": "offer"}]
    assert offers == [OFFER]


def row(board: str, ticket_id: str = "O", **fields: Json) -> Json:
    """A row of dispatch_my_offers for the oracle's seat."""
    offer = {"agent_id": seat_id(board), "expires_at": "2999-01-01T00:00:00Z", "expires_at_epoch": time.time() + 1000}
    return {
        "ticket_id": ticket_id,
        "status": "open",
        "target_url": "",
        "tier": 1,
        "skills_required": ["python"],
        "updated_at": "u",
        "payload_ref": f"board://{board}/ticket/{ticket_id}",
        "dispatch_state": {"state": "offered", "kind": "work"},
        "work_offer": offer,
        **fields,
    }


def watcher(board: str) -> Watcher:
    return Watcher(board, seat_id(board), SEAT, PRINCIPAL, "claimable")


def without_time(result: Json) -> Json:
    return {key: value for key, value in result.items() if key != "waited_s"}


def test_a_single_board_timeout_with_an_offer_is_the_bridge_s() -> None:
    expected = wait_one(Board(HOME, cursor=5, offers=[row(HOME)]), 5, "poll")
    found = Found([], "timeout").with_offers(offer_events([row(HOME)], watcher(HOME), now_epoch=time.time()))
    ours = wait_result(new_seq=5, events=found.events, waited_s=1, mode="poll", reason=found.reason)
    assert without_time(ours) == without_time(expected)
    assert (ours["reason"], ours["timed_out"]) == ("reconciled", False)


@pytest.mark.parametrize("offers", [[], [row(HOME)]])
def test_a_single_board_scan_is_the_bridge_s(offers: list[Json]) -> None:
    expected = wait_one(Board(HOME, cursor=5, scanned=[CUE], offers=offers), 5, "poll")
    found = Found([CUE], scan_reason([CUE])).with_offers(offer_events(offers, watcher(HOME), now_epoch=time.time()))
    ours = wait_result(new_seq=5, events=found.events, waited_s=1, mode="poll", reason=found.reason)
    assert without_time(ours) == without_time(expected)
    assert ours["reason"] == ("reconciled" if offers else "backlog")


@pytest.mark.parametrize("scanned", [[], [CUE]])
def test_offers_of_many_boards_come_first_board_by_board(scanned: list[Json]) -> None:
    boards = ["a", "b", "c"]
    offers = {name: [row(name)] for name in ("c", "a")}
    script = [Board(name, offers=offers.get(name, []), scanned=scanned if name == "b" else []) for name in boards]
    expected = wait_many(script, 0, "poll")
    found = Found(tagged(boards, {"b": scanned})).with_offers(
        tagged(
            boards, {name: offer_events(rows, watcher(name), now_epoch=time.time()) for name, rows in offers.items()}
        )
    )
    ours = multi_result(
        cursors=dict.fromkeys(boards, 0),
        joined=dict.fromkeys(boards, BoardOutcome(0, "poll")),
        skipped={},
        events=found.events,
        waited_s=1,
    )
    assert without_time(ours) == without_time(expected)
    assert [event["board_id"] for event in found.events] == ["a", "c", *(["b"] if scanned else [])]


ME, YOU = "AI-me", "AI-you"
offered = st.fixed_dictionaries(
    {"agent_id": st.sampled_from([ME, ME, YOU])},
    optional={
        "expires_at_epoch": st.sampled_from([0, 9e9, True]),
        "expires_at": st.sampled_from(
            ["2999-01-01T00:00:00Z", "2001-01-01T00:00:00+00:00", "2999-01-01", "soon", None]
        ),
    },
)
tickets = st.lists(
    st.fixed_dictionaries(
        {
            "ticket_id": st.sampled_from(["T1", "T2", "T3", ""]),
            "status": st.sampled_from(["open", "open", "submitted"]),
        },
        optional={
            "target_url": st.sampled_from(["alpha/x", "beta/x", ""]),
            "dispatch_state": st.sampled_from([{"state": "offered"}, {"state": "broadcast"}, None]),
            "work_offer": st.one_of(offered, st.none()),
            "review_offer": offered,
            "claimed_by_agent_id": st.sampled_from([ME, YOU]),
            "tier": st.just(3),
            "skills_required": st.sampled_from([["x"], [], None]),
            "updated_at": st.just("u"),
            "payload_ref": st.just("board://b/ticket/T"),
            "last_claimed_by": st.just("bob"),
        },
    ),
    max_size=4,
    unique_by=lambda ticket: str(ticket["ticket_id"]),
)


@QUICK
@given(tickets, st.sampled_from(["claimable", "submitted"]), st.booleans(), st.sampled_from([None, "alpha"]))
def test_the_offers_among_tickets_are_those_that_the_bridge_finds(
    rows: list[Json], view: Any, only_mine: bool, project: str | None
) -> None:
    expected = bridge._reconciled_offer_events(rows, ME, only_mine, project, view, "b")
    watcher = Watcher("b", ME, "me", "PR-1", view, only_mine, project)
    assert offer_events(rows, watcher, now_epoch=time.time()) == expected
