"""The journal vocabulary of a wait: event kinds, sets of them, and how to read one event (bridge.md §2.6, §2.9).

Events and tickets are Central's JSON objects. They come from outside, so each field is read with a check of its type.
"""

from collections.abc import Mapping
from typing import Literal

Json = dict[str, object]
View = Literal["claimable", "submitted"]

TICKET_CREATED = "ticket_created"
TICKET_STATUS_CHANGED = "ticket_status_changed"
TICKET_OFFERED = "ticket_offered"
REVIEW_OFFERED = "review_offered"
OFFER_EXPIRED = "offer_expired"
OFFER_REVOKED = "offer_revoked"
REVIEW_CLAIMED = "ticket_review_claimed"
REVIEW_LEASE_EXPIRED = "review_lease_expired"
REVIEW_LEASE_RELEASED = "review_lease_released"
CLAIM_TTL_CHANGED = "board_claim_ttl_changed"
STATE_CHANGED = "board_state_changed"
TICKET_BACKLOG = "ticket_backlog"
"""Not a journal kind: the cue that we make for work that was found by looking, not by an event."""

OFFER_MADE = frozenset({TICKET_OFFERED, REVIEW_OFFERED})
OFFER_ENDED = frozenset({OFFER_EXPIRED, OFFER_REVOKED})
LEASE_ENDED = frozenset({REVIEW_LEASE_EXPIRED, REVIEW_LEASE_RELEASED})
REVIEW_LEASE = LEASE_ENDED | {REVIEW_CLAIMED}
SUBMISSION = frozenset({TICKET_STATUS_CHANGED, "ticket_submitted", "ticket_resubmitted"})

HELD = frozenset(
    {
        TICKET_STATUS_CHANGED,
        REVIEW_LEASE_EXPIRED,
        "coordinator_question_answered",
        "human_input_resolved",
        "ticket_annotated",
        "ticket_parked",
        "ticket_unparked",
    }
)
"""Kinds that matter to whoever holds, held or asked about the ticket."""

ACCEPTED: Mapping[View, frozenset[str]] = {
    "claimable": HELD | OFFER_ENDED | {TICKET_CREATED, TICKET_OFFERED},
    "submitted": HELD | OFFER_ENDED | SUBMISSION | REVIEW_LEASE | {REVIEW_OFFERED},
}
"""Kinds that can be relevant at all, by view."""

KEPT = frozenset(
    {
        CLAIM_TTL_CHANGED,
        "coordinator_question_answered",
        "coordinator_question_asked",
        "human_input_resolved",
        OFFER_EXPIRED,
        OFFER_REVOKED,
        REVIEW_LEASE_EXPIRED,
        REVIEW_LEASE_RELEASED,
        REVIEW_OFFERED,
        "ticket_annotated",
        TICKET_CREATED,
        TICKET_OFFERED,
        "ticket_parked",
        REVIEW_CLAIMED,
        TICKET_STATUS_CHANGED,
        "ticket_unparked",
    }
)
"""Kinds that the live feed passes on at all (bridge.md §2.9); the rest move the cursor and are forgotten."""

OFFER_KIND: Mapping[View, str] = {"claimable": "work", "submitted": "review"}
"""What Central calls the offers of a view: the `offer_kind` of an event and the prefix of the ticket's offer field."""

OFFERED: Mapping[View, str] = {"claimable": TICKET_OFFERED, "submitted": REVIEW_OFFERED}

FINISHED = frozenset({"closed", "rejected", "canceled", "terminated"})
"""Statuses of tickets that a listing of active ones leaves out."""

BACKLOG_SCAN = "backlog_scan"
OFFER_RECONCILIATION = "offer_reconciliation"
SYNTHETIC_SOURCES = frozenset({BACKLOG_SCAN, OFFER_RECONCILIATION})


def text(value: object) -> str | None:
    """`value` if it is a string with something in it."""
    return value if isinstance(value, str) and value else None


def kind_of(event: Mapping[str, object]) -> str:
    """The kind of an event; empty for one without."""
    return text(event.get("kind")) or ""


def ticket_of(event: Mapping[str, object]) -> str | None:
    """The id of the ticket that an event or a ticket row is about."""
    return text(event.get("ticket_id"))


def seq_of(event: Mapping[str, object]) -> int | None:
    """The place of an event in its board's journal; None for a cue of our own."""
    seq = event.get("seq")
    return seq if isinstance(seq, int) and not isinstance(seq, bool) else None


def is_synthetic(event: Mapping[str, object]) -> bool:
    """Whether the event is a cue made from ticket state and not from the journal."""
    return event.get("source") in SYNTHETIC_SOURCES and seq_of(event) is None


def fits(event: Mapping[str, object], view: View) -> bool:
    """Whether the kind of the event can be relevant in this view (bridge.md §2.6, kinds accepted)."""
    kind = kind_of(event)
    if kind in OFFER_ENDED:
        return event.get("offer_kind") == OFFER_KIND[view]
    return kind in ACCEPTED[view]
