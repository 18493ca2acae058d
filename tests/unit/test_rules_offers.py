"""rules/offers: whose an offer is, whether it lives, how it is told (bridge.md §2.6)."""

import pytest

from pursersd.rules.offers import described, is_live, offer_to

NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z


@pytest.mark.parametrize(
    ("offer", "live"),
    [
        ({}, True),
        ({"expires_at": None}, True),
        ({"expires_at_epoch": NOW + 0.5}, True),
        ({"expires_at_epoch": NOW}, False),
        ({"expires_at_epoch": NOW - 1, "expires_at": "2999-01-01T00:00:00Z"}, False),
        ({"expires_at_epoch": True, "expires_at": "2999-01-01T00:00:00Z"}, True),
        ({"expires_at": "2027-01-15T08:00:01Z"}, True),
        ({"expires_at": "2027-01-15T08:00:00+00:00"}, False),
        ({"expires_at": "2027-01-15T09:00:01+01:00"}, True),
        ({"expires_at": "2999-01-01T00:00:00"}, False),
        ({"expires_at": "soon"}, False),
        ({"expires_at": 5}, False),
    ],
)
def test_is_live(offer: dict[str, object], live: bool) -> None:
    assert is_live(offer, NOW) is live


def test_offer_to_is_by_view_and_seat() -> None:
    ticket = {"work_offer": {"agent_id": "AI-me"}, "review_offer": {"agent_id": "AI-you"}}
    assert offer_to("AI-me", ticket, "claimable") == {"agent_id": "AI-me"}
    assert offer_to("AI-me", ticket, "submitted") is None
    assert offer_to("AI-you", ticket, "submitted") == {"agent_id": "AI-you"}
    assert offer_to("AI-me", {"work_offer": None}, "claimable") is None


def test_described_with_and_without_the_ticket_s_own_words() -> None:
    assert described("b", {"ticket_id": "T"}, {"expires_at": "x"}) == {
        "ticket_id": "T",
        "board_id": "b",
        "expires_at": "x",
        "tier": 2,
        "skills_required": [],
    }
    found = described("b", {"ticket_id": "T", "tier": 3, "skills_required": ["py"]}, {})
    assert (found["tier"], found["skills_required"], found["expires_at"]) == (3, ["py"], None)
