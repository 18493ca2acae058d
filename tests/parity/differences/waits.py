"""Differences in what a wait tells, and when."""

from parity.compare import ABSENT, Has
from parity.differences.difference import Difference, at, silent, silent_many, told

BACKLOG_A = Has(kind="ticket_backlog", ticket_id="<A>", status="open", reason="broadcast")
CANCELED_A = Has(kind="ticket_status_changed", ticket_id="<A>", status_to="canceled", reason="held_ticket_update")
ANNOTATED_A = Has(kind="ticket_annotated", ticket_id="<A>", reason="held_ticket_update")
OFFER_A = Has(kind="ticket_offered", source="offer_reconciliation", ticket_id="<A>", reason="reconciled", offer=Has())
CLOSED_A = Has(kind="ticket_status_changed", ticket_id="<A>", status_to="closed", reason="held_ticket_update")

WAITS = (
    Difference(
        "live-at-once",
        "A live event ends a wait when it happens; the bridge notices it at its next round of upkeep, up to 30 s later.",
        dict.fromkeys(
            ("live-created", "live-omitted", "live-annotated", "live-canceled", "live-submitted", "cut"),
            at(0, waited_s="less than timeout_s"),
        ),
    ),
    Difference(
        "told-once",
        "What a live event told of is known: the bridge tells it again at once, as backlog of the next call.",
        {"live-created": silent(1), "many-live": silent_many(1, "board", "second")},
    ),
    Difference(
        "acknowledged-when-delivered",
        "Without since_seq an event counts as read when the host has it: a canceled call loses nothing, and what came live "
        "is not told twice; the bridge acknowledges history when it reads it, and live events never.",
        {
            "live-omitted": silent(1) | at(1, compacted=ABSENT, dropped=ABSENT, event_counts=ABSENT),
            "many-live-omitted": silent_many(1, "board", "second")
            | at(1, compacted=ABSENT, dropped=ABSENT, event_counts=ABSENT),
            "canceled-omitted": told(0, Has(kind="ticket_annotated", ticket_id="<A>"), reason="held_ticket_update")
            | at(0, compacted=True, dropped=0, event_counts={"ticket_annotated": 1}),
        },
    ),
    Difference(
        "end-of-my-work",
        "A worker or reviewer must learn that its ticket is finished; the bridge looks for it among the active ones only, "
        "unless the event comes while it waits. So must a caller who wants everything learn it of any ticket.",
        {
            "gone-all": told(
                0, Has(kind="ticket_status_changed", ticket_id="<A>", status_to="canceled"), reason="broadcast"
            ),
            "held-canceled": told(0, CANCELED_A, reason="held_ticket_update"),
            "held-approved": told(0, CLOSED_A, reason="held_ticket_update"),
            "review-held-canceled": told(0, CANCELED_A, reason="held_ticket_update"),
        },
    ),
    Difference(
        "assigned-elsewhere",
        "A ticket assigned to another seat is no work for this one: Central would refuse the claim.",
        {
            "for-other": silent(0),
            "for-other-backlog": silent(0),
            "live-for-other": at(0, events=[], reason="timeout", timed_out=True),
        },
    ),
    Difference(
        "backlog-after-compaction",
        "Open work that a compacted result left out is told by the next call; the bridge counts it as told for 600 s.",
        {"backlog-compacted": told(1, BACKLOG_A, reason="broadcast")},
    ),
    Difference(
        "backlog-beside-other-events",
        "Open work is told at the entry whatever has happened; the bridge skips it when only irrelevant events came.",
        {"backlog-beside-others": told(0, BACKLOG_A, reason="broadcast")},
    ),
    Difference(
        "offers-that-stand",
        "An offer is told as long as it stands. The bridge tells it from the history as well when the seat has taken it, or "
        "when it has expired and the work is everybody's: then without its `offer`.",
        {
            "offered-held": at(0, events=[ANNOTATED_A], reason="held_ticket_update"),
            "offer-expired": at(3, events=[Has(kind="ticket_created"), Has(kind="offer_expired", reason="offer")]),
        },
    ),
    Difference(
        "open-after-an-offer",
        "When an offer has ended and the work is open to everybody, the next wait tells of it; the bridge counts it as told, "
        "because the end of the offer was, and hides it for 600 s.",
        {
            "offer-expired": told(2, BACKLOG_A, reason="broadcast"),
            "review-offer-expired": told(
                1, Has(kind="ticket_backlog", ticket_id="<A>", status="submitted"), reason="broadcast"
            ),
        },
    ),
    Difference(
        "offers-of-names",
        "A name for one call has its own offers looked up; the bridge asks for those of the conversation's seat, unless Central "
        "takes more than 50 ms to tell them.",
        {"offer-name": told(3, OFFER_A, reason="reconciled")},
        always=False,
    ),
    Difference(
        "offers-say-more",
        "An offer that a look finds says who had the work before, as other open work does; the bridge asks Central for a list "
        "that has no such thing, unless that takes more than 50 ms.",
        {"offer-after-others": {"0.data.events.0.continuation": Has(prior_holder=Has(agent_name="ann"))}},
        always=False,
    ),
    Difference(
        "offers-before-timeout",
        "An offer that stands is told before a wait ends without one. The bridge gives this look 50 ms: on a busy machine it "
        "finds nothing.",
        {
            "offer": at(2, events=[OFFER_A], reason="reconciled", timed_out=False),
            "review-offer": at(
                3, events=[Has(kind="review_offered", reason="reconciled")], reason="reconciled", timed_out=False
            ),
        },
        always=False,
    ),
    Difference(
        "project-of-offers",
        "A caller who names a project gets that project's work on a board with offers, too; the bridge keeps to the project "
        "there only for open work that it scans.",
        {"offer-project": silent(0)},
    ),
)
