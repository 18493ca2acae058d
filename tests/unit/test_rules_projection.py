"""rules/projection: which tickets are looked up, page by page, and what if they stay unknown (bridge.md §2.5)."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pursersd.rules.events import View
from pursersd.rules.projection import (
    Listing,
    batches,
    candidates,
    cursor_ahead_warning,
    unprojected,
    unprojected_warning,
)
from pursersd.rules.relevance import Watcher

ME = "AI-me"


def watcher(view: View = "claimable") -> Watcher:
    return Watcher("b", ME, "me", "PR-1", view)


def page(ids: list[str], *, total: object = None, following: str | None = None, keyed: object = None) -> dict[str, Any]:
    return {
        "tickets": [{"ticket_id": ticket_id} for ticket_id in ids],
        "total_matching": len(ids) if total is None else total,
        "has_more": following is not None,
        "next_cursor": following,
        "filters": {"ticket_ids": keyed},
    }


def ids(listing: Listing) -> list[object]:
    return [ticket["ticket_id"] for ticket in listing.tickets]


def test_candidates_are_the_tickets_of_events_that_need_one() -> None:
    events = [
        {"kind": "ticket_created", "ticket_id": "A"},
        {"kind": "ticket_annotated", "ticket_id": "A"},
        {"kind": "memory_written", "ticket_id": "B"},
        {"kind": "offer_expired", "offer_kind": "work", "ticket_id": "C"},
        {"kind": "ticket_created", "ticket_id": "D", "actor": ME},
        {"kind": "review_lease_expired", "ticket_id": "E"},
        {"kind": "ticket_review_claimed", "ticket_id": "F"},
        {"kind": "ticket_status_changed"},
    ]
    assert candidates(events, watcher()) == {"A", "E"}
    assert candidates(events, watcher("submitted")) == {"A", "F"}


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ({"kind": "ticket_offered"}, "offer"),
        ({"kind": "review_offered", "reviewer_agent_id": ME}, "offer"),
        ({"kind": "ticket_annotated", "reviewer_agent_id": ME}, "held_ticket_update"),
        ({"kind": "ticket_annotated", "reviewer_agent_id": "AI-you"}, "broadcast"),
        ({"kind": "ticket_created"}, "broadcast"),
    ],
)
def test_unprojected(event: dict[str, object], reason: str) -> None:
    before = dict(event)
    found = unprojected(event, watcher("submitted"))
    assert found == {**before, "projection_state": "unprojected", "reason": reason}
    assert event == before


def test_warnings() -> None:
    assert unprojected_warning(3) == {"code": "ticket_projection_unprojected", "count": 3}
    assert cursor_ahead_warning(9, 5) == {"code": "cursor_ahead_clamped", "requested_cursor": 9, "clamped_cursor": 5}


def test_batches_are_sorted_and_fit_a_request() -> None:
    wanted = {f"T{n:04}" for n in range(1201)}
    lots = batches(wanted)
    assert [len(lot) for lot in lots] == [500, 500, 201]
    assert [ticket_id for lot in lots for ticket_id in lot] == sorted(wanted)
    assert batches([]) == []


@pytest.mark.parametrize(
    ("view", "keys", "status", "asked"),
    [
        ("claimable", None, None, None),
        ("submitted", None, "submitted", None),
        ("claimable", ("B", "A"), None, ["A", "B"]),
        ("submitted", ("B", "A"), None, ["A", "B"]),
    ],
)
def test_arguments(view: View, keys: tuple[str, ...] | None, status: str | None, asked: list[str] | None) -> None:
    arguments = Listing(view, keys).arguments()
    assert (arguments["include_closed"], arguments["limit"], arguments["view"]) == (False, 500, "work")
    assert arguments.get("status") == status
    assert arguments.get("ticket_ids") == asked
    assert "cursor" not in arguments
    assert Listing(view, keys, include_closed=True).arguments()["include_closed"] is True


def test_pages_are_followed_to_the_end() -> None:
    listing = Listing("claimable")
    listing.add(page(["A"], total=3, following="c1"))
    assert listing.wanted
    assert not listing.complete
    assert listing.arguments()["cursor"] == "c1"
    listing.add(page(["B"], total=3, following="c2"))
    listing.add(page(["C"], total=3))
    assert not listing.wanted
    assert listing.complete
    assert listing.warning is None
    assert ids(listing) == ["A", "B", "C"]
    assert listing.unknown({"A", "Z"}) == set()


@pytest.mark.parametrize(
    ("pages", "warning"),
    [
        ([page(["A"], total=2)], {"code": "ticket_projection_truncated", "returned": 1, "total_matching": 2}),
        ([page(["A"], total="?")], {"code": "ticket_projection_truncated", "returned": 1, "total_matching": 2}),
        (
            [page(["A"], total=3, following="c"), page(["B"], total=3, following="c")],
            {"code": "ticket_projection_cursor_stalled", "returned": 2, "total_matching": 3},
        ),
        (
            [{**page(["A"], total=3, following="c"), "next_cursor": None}],
            {"code": "ticket_projection_cursor_stalled", "returned": 1, "total_matching": 3},
        ),
    ],
)
def test_a_listing_that_ends_early_says_nothing_about_the_rest(
    pages: list[dict[str, Any]], warning: dict[str, object]
) -> None:
    listing = Listing("claimable")
    for found in pages:
        assert listing.wanted
        listing.add(found)
    assert not listing.wanted
    assert not listing.complete
    assert listing.warning == warning
    assert listing.unknown({"A", "Z"}) == {"Z"}


def test_a_refusal_ends_a_listing() -> None:
    refused = Listing("claimable")
    refused.failed("why")
    assert not refused.wanted
    assert refused.warning == {"code": "ticket_projection_failed", "returned": 0, "detail": "why"}
    assert refused.unknown({"A"}) == {"A"}


def test_absence_counts_only_if_central_echoes_the_keys() -> None:
    good = Listing("claimable", ("B", "A"))
    good.add(page(["A"], keyed=["A", "B"]))
    assert good.complete
    assert good.unknown({"A", "B"}) == set()
    for keyed in (["B", "A"], None, ["A"], "no filters"):
        old = Listing("claimable", ("B", "A"))
        assert not old.complete
        old.add({**page(["A", "Q"], keyed=keyed), **({"filters": None} if keyed == "no filters" else {})})
        assert not old.complete
        assert old.warning == {
            "code": "ticket_projection_key_filter_unavailable",
            "returned": 2,
            "requested": 2,
            "total_matching": 2,
        }
        assert old.unknown({"A", "B"}) == {"B"}


@given(st.lists(st.lists(st.sampled_from([f"T{n}" for n in range(9)]), max_size=3), min_size=1), st.integers(0, 3))
def test_a_complete_listing_has_every_row_that_central_counted(pages: list[list[str]], more: int) -> None:
    total = sum(map(len, pages)) + more
    listing = Listing("claimable")
    for number, rows in enumerate(pages, 1):
        assert listing.wanted
        listing.add(page(rows, total=total, following=f"c{number}" if number < len(pages) else None))
    assert not listing.wanted
    assert listing.complete == (more == 0)
    assert ids(listing) == [ticket_id for rows in pages for ticket_id in rows]


def test_rows_that_are_no_objects_are_left_out() -> None:
    listing = Listing("claimable")
    odd: Mapping[str, object] = {"tickets": [5, None, {"ticket_id": "A"}], "total_matching": 1}
    listing.add(odd)
    assert ids(listing) == ["A"]
    assert listing.complete
