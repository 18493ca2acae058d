"""rules/backlog: cues made from ticket state (bridge.md §2.6)."""

import pytest

from pursersd.rules.backlog import backlog_events, offer_events
from pursersd.rules.events import View
from pursersd.rules.relevance import Watcher
from pursersd.rules.suppression import Fingerprint

ME, YOU = "AI-me", "AI-you"
NOW = 1_800_000_000.0


def watcher(view: View = "claimable", project: str | None = None) -> Watcher:
    return Watcher("b", ME, "me", "PR-1", view, True, project)


def nothing_suppressed(_ticket_id: str, _mark: Fingerprint) -> bool:
    return False


def cues(tickets: list[dict[str, object]], seat: Watcher) -> list[dict[str, object]]:
    return backlog_events(tickets, seat, suppressed=nothing_suppressed, now_epoch=NOW)


def test_open_work_is_told_in_the_order_of_the_listing() -> None:
    tickets: list[dict[str, object]] = [
        {"ticket_id": "T2", "status": "open", "updated_at": "u", "payload_ref": "board://b/ticket/T2"},
        {"ticket_id": "T1", "status": "open", "last_claimed_by": "bob"},
        {"ticket_id": "T3", "status": "claimed"},
        {"ticket_id": "T4", "status": "open", "claimed_by_agent_id": YOU},
        {"ticket_id": "T5", "status": "claimed", "claimed_by_agent_id": ME},
        {"status": "open"},
    ]
    first, second = cues(tickets, watcher())
    assert first == {
        "kind": "ticket_backlog",
        "source": "backlog_scan",
        "ticket_id": "T2",
        "status": "open",
        "reason": "broadcast",
        "updated_at": "u",
        "payload_ref": "board://b/ticket/T2",
    }
    assert second["ticket_id"] == "T1"
    assert second["continuation"]
    assert not {"updated_at", "payload_ref", "seq", "board_id"} & second.keys()


def test_submissions_for_a_reviewer() -> None:
    tickets: list[dict[str, object]] = [
        {"ticket_id": "T1", "status": "submitted"},
        {"ticket_id": "T2", "status": "submitted", "review_state": "claimed_by_other"},
        {"ticket_id": "T3", "status": "open"},
    ]
    assert [(cue["ticket_id"], cue["status"]) for cue in cues(tickets, watcher("submitted"))] == [("T1", "submitted")]


def test_project_narrows_the_backlog_and_offers() -> None:
    offer = {"agent_id": ME, "expires_at_epoch": NOW + 1}
    tickets: list[dict[str, object]] = [
        {"ticket_id": "T1", "status": "open", "target_url": "alpha/x"},
        {"ticket_id": "T2", "status": "open", "target_url": "beta/x", "dispatch_state": {}, "work_offer": offer},
    ]
    assert [cue["ticket_id"] for cue in cues(tickets, watcher(project="alpha"))] == ["T1"]
    assert offer_events(tickets, watcher(project="alpha"), now_epoch=NOW) == []


@pytest.mark.parametrize(
    ("view", "status", "key", "kind"),
    [
        ("claimable", "open", "work_offer", "ticket_offered"),
        ("submitted", "submitted", "review_offer", "review_offered"),
    ],
)
def test_a_live_offer_to_me_is_told_as_one(view: View, status: str, key: str, kind: str) -> None:
    offer = {"agent_id": ME, "expires_at": "2027-01-15T08:00:01Z"}
    ticket: dict[str, object] = {
        "ticket_id": "T",
        "status": status,
        "dispatch_state": {"state": "offered"},
        key: offer,
        "updated_at": "u",
    }
    expected = [
        {
            "kind": kind,
            "source": "offer_reconciliation",
            "ticket_id": "T",
            "status": status,
            "reason": "reconciled",
            "offer": {
                "ticket_id": "T",
                "board_id": "b",
                "expires_at": "2027-01-15T08:00:01Z",
                "tier": 2,
                "skills_required": [],
            },
            "updated_at": "u",
        }
    ]
    assert cues([ticket], watcher(view)) == expected
    assert offer_events([ticket], watcher(view), now_epoch=NOW) == expected
    late = {**ticket, key: {"agent_id": ME, "expires_at": "2027-01-15T07:59:59Z"}}
    assert cues([late], watcher(view)) == []
    theirs = {**ticket, key: {**offer, "agent_id": YOU}}
    assert cues([theirs], watcher(view)) == []


def test_offers_are_the_only_offer_events() -> None:
    plain: dict[str, object] = {"ticket_id": "T", "status": "open"}
    assert offer_events([plain], watcher(), now_epoch=NOW) == []
    assert len(cues([plain], watcher())) == 1


def test_suppressed_is_asked_with_ticket_and_fingerprint() -> None:
    asked: list[tuple[str, Fingerprint]] = []

    def suppressed(ticket_id: str, mark: Fingerprint) -> bool:
        asked.append((ticket_id, mark))
        return ticket_id == "T1"

    tickets: list[dict[str, object]] = [
        {"ticket_id": "T1", "status": "open", "updated_at": "u1"},
        {"ticket_id": "T2", "status": "open"},
        {"ticket_id": "T3", "status": "closed"},
    ]
    found = backlog_events(tickets, watcher(), suppressed=suppressed, now_epoch=NOW)
    assert [cue["ticket_id"] for cue in found] == ["T2"]
    assert asked == [("T1", ("open", "u1")), ("T2", ("open", None))]
