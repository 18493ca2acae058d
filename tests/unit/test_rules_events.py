"""rules/events: the vocabulary (bridge.md §2.6, §2.9) and reading fields that may hold anything."""

import pytest

from pursersd.rules import events
from pursersd.rules.events import View, fits, is_synthetic, kind_of, seq_of, ticket_of

BOTH = ["ticket_annotated", "ticket_status_changed", "human_input_resolved", "coordinator_question_answered"]
BOTH += ["ticket_parked", "ticket_unparked", "review_lease_expired"]
CLAIMABLE = {*BOTH, "ticket_created", "ticket_offered"}
SUBMITTED = {
    *BOTH,
    "review_offered",
    "ticket_submitted",
    "ticket_resubmitted",
    "ticket_review_claimed",
    "review_lease_released",
}
OTHERS = {"board_claim_ttl_changed", "coordinator_question_asked", "memory_written", "ticket_claim_refused", ""}


@pytest.mark.parametrize(("view", "accepted"), [("claimable", CLAIMABLE), ("submitted", SUBMITTED)])
def test_kinds_accepted(view: View, accepted: set[str]) -> None:
    for kind in CLAIMABLE | SUBMITTED | OTHERS:
        assert fits({"kind": kind}, view) == (kind in accepted), kind


@pytest.mark.parametrize("kind", ["offer_expired", "offer_revoked"])
def test_the_end_of_an_offer_belongs_to_the_view_of_its_kind(kind: str) -> None:
    assert fits({"kind": kind, "offer_kind": "work"}, "claimable")
    assert fits({"kind": kind, "offer_kind": "review"}, "submitted")
    assert not fits({"kind": kind, "offer_kind": "work"}, "submitted")
    assert not fits({"kind": kind, "offer_kind": "review"}, "claimable")
    assert not fits({"kind": kind}, "claimable")


def test_kept_kinds_are_the_bridge_s_sixteen() -> None:
    assert len(events.KEPT) == 16
    aliases = {"ticket_submitted", "ticket_resubmitted"}
    relevant = (CLAIMABLE | SUBMITTED | {"offer_expired", "offer_revoked"}) - aliases
    assert relevant | {"board_claim_ttl_changed", "coordinator_question_asked"} == events.KEPT


def test_fields_of_the_wrong_type_read_as_absent() -> None:
    odd: dict[str, object] = {"kind": 5, "ticket_id": ["T"], "seq": True}
    assert (kind_of(odd), ticket_of(odd), seq_of(odd)) == ("", None, None)
    assert ticket_of({"ticket_id": ""}) is None


def test_a_cue_with_a_seq_is_not_synthetic() -> None:
    assert is_synthetic({"source": "backlog_scan"})
    assert is_synthetic({"source": "offer_reconciliation"})
    assert not is_synthetic({"source": "backlog_scan", "seq": 3})
    assert not is_synthetic({"source": "bridge_keepalive"})
