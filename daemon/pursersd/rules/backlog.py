"""Work that no journal event announces to this waiter any more: cues made from ticket state (bridge.md §2.6).

A cue never has a `seq`: it says what is so, not what happened, and moves no cursor.
"""

from collections.abc import Callable, Mapping, Sequence

from pursersd.rules.continuation import continuation
from pursersd.rules.events import BACKLOG_SCAN, OFFER_RECONCILIATION, OFFERED, TICKET_BACKLOG, View, text, ticket_of
from pursersd.rules.offers import described, is_live, offer_to
from pursersd.rules.relevance import Watcher, is_relevant_ticket
from pursersd.rules.suppression import Fingerprint, fingerprint

STATUS: Mapping[View, str] = {"claimable": "open", "submitted": "submitted"}
"""The status of a ticket that waits for someone, by view."""


def backlog_events(
    tickets: Sequence[Mapping[str, object]],
    watcher: Watcher,
    *,
    suppressed: Callable[[str, Fingerprint], bool],
    now_epoch: float,
) -> list[dict[str, object]]:
    """One cue for each ticket that waits for this watcher and that `suppressed(ticket_id, fingerprint)` lets through.

    An offer made to the watcher is told as an offer while it is live at `now_epoch`, Central's time, and not at all after.
    """
    cues = (_cue(ticket, watcher, now_epoch) for ticket in tickets)
    return [cue for cue in cues if cue is not None and not suppressed(str(cue["ticket_id"]), fingerprint(cue))]


def offer_events(
    tickets: Sequence[Mapping[str, object]], watcher: Watcher, *, now_epoch: float
) -> list[dict[str, object]]:
    """The offers to this watcher that are live at `now_epoch`, Central's time, among `tickets`, never suppressed."""
    cues = (_cue(ticket, watcher, now_epoch) for ticket in tickets)
    return [cue for cue in cues if cue is not None and cue["source"] == OFFER_RECONCILIATION]


def _cue(ticket: Mapping[str, object], watcher: Watcher, now_epoch: float) -> dict[str, object] | None:
    status = STATUS[watcher.view]
    ticket_id = ticket_of(ticket)
    if ticket_id is None or ticket.get("status") != status or not is_relevant_ticket(ticket, watcher):
        return None
    offer = offer_to(watcher.agent_id, ticket, watcher.view)
    if offer is not None and not is_live(offer, now_epoch):
        return None
    cue: dict[str, object] = {
        "kind": TICKET_BACKLOG if offer is None else OFFERED[watcher.view],
        "source": BACKLOG_SCAN if offer is None else OFFER_RECONCILIATION,
        "ticket_id": ticket_id,
        "status": status,
        "reason": "broadcast" if offer is None else "reconciled",
    }
    if offer is not None:
        cue["offer"] = described(watcher.board, ticket, offer)
    for key in ("updated_at", "payload_ref"):
        value = text(ticket.get(key))
        if value is not None:
            cue[key] = value
    hint = continuation(ticket)
    if hint is not None:
        cue["continuation"] = hint
    return cue
