"""Whether one journal event is for this waiter, and what the waiter is told about it (bridge.md §2.6).

The event alone decides little: a page of Central holds what the seat may see, the ticket's state says whether there is
something to do. So the caller asks `needs_ticket`, reads that ticket once for all waiters, and then asks `judge`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pursersd.rules.continuation import continuation
from pursersd.rules.events import (
    FINISHED,
    HELD,
    LEASE_ENDED,
    OFFER_ENDED,
    OFFERED,
    REVIEW_LEASE,
    SUBMISSION,
    TICKET_STATUS_CHANGED,
    View,
    fits,
    kind_of,
    text,
    ticket_of,
)
from pursersd.rules.offers import described, offer_to


@dataclass(frozen=True, slots=True)
class Watcher:
    """The seat behind one wait and what it waits for. `project` is lower-case, as `arguments.check` leaves it."""

    board: str
    agent_id: str
    agent_name: str
    principal_id: str
    view: View
    only_mine: bool = True
    project: str | None = None


def needs_ticket(event: Mapping[str, object], watcher: Watcher) -> str | None:
    """The ticket to look up before `judge`; None when it decides without one or the event cannot matter."""
    if not _may_matter(event, watcher) or kind_of(event) in OFFER_ENDED:
        return None
    return ticket_of(event)


def judge(
    event: Mapping[str, object],
    ticket: Mapping[str, object] | None,
    watcher: Watcher,
    *,
    lookup_failed: bool = False,
) -> dict[str, object] | None:
    """None if the event is not for this waiter, else a copy with the fields that we add.

    `ticket` is None when Central says that there is no such active ticket, or, with `lookup_failed`, when it could not
    say: then an event that the caller has narrowed down in no way passes as it came.
    """
    if not _may_matter(event, watcher):
        return None
    kind = kind_of(event)
    if kind in OFFER_ENDED:
        return {**event, "reason": "offer"} if event.get("offered_agent_id") == watcher.agent_id else None
    if ticket is None:
        return _without_ticket(event, watcher, lookup_failed)
    if kind == OFFERED[watcher.view]:
        return _offered(event, ticket, watcher)
    if _is_held_update(event, ticket, watcher):
        return _told(event, ticket, "held_ticket_update")
    relevant = (
        _dispatched(event, ticket, watcher)
        if isinstance(ticket.get("dispatch_state"), dict)
        else is_relevant_ticket(ticket, watcher)
    )
    return _told(event, ticket, "broadcast") if relevant else None


def ends(event: Mapping[str, object], watcher: Watcher) -> bool:
    """Whether the event may be the end of this seat's work, so that it matters even if the ticket is finished now.

    Either it names the seat, or it says that the ticket is finished, which then says whose it was.
    """
    me = watcher.agent_id
    names = me in (event.get("submitted_by_agent_id"), event.get("last_abandoned_by"), event.get("reviewer_agent_id"))
    finishes = kind_of(event) == TICKET_STATUS_CHANGED and event.get("status_to") in FINISHED
    return _may_matter(event, watcher) and (names or finishes)


def is_past(event: Mapping[str, object], ticket: Mapping[str, object], watcher: Watcher) -> bool:
    """Whether an event of the history has nothing to tell any more: its ticket is finished, and it is not the end."""
    return ticket.get("status") in FINISHED and not ends(event, watcher)


def is_relevant_ticket(ticket: Mapping[str, object], watcher: Watcher) -> bool:
    """Whether a ticket, as it is now, is work that this waiter waits for."""
    if not _is_in_project(ticket, watcher):
        return False
    me = watcher.agent_id
    status = ticket.get("status")
    dispatch = ticket.get("dispatch_state")
    if isinstance(dispatch, dict):
        to_anyone = dispatch.get("state") == "broadcast"
        offered = offer_to(me, ticket, watcher.view) is not None
        if watcher.view == "submitted":
            mine = offered or _reviewer(ticket) == me
            return status == "submitted" and (mine or (to_anyone and _review_is_free(ticket)))
        return ticket.get("claimed_by_agent_id") == me or (status == "open" and (offered or to_anyone))
    if watcher.view == "submitted":
        return status == "submitted" and _review_is_free(ticket)
    if not watcher.only_mine:
        return True
    holder, assignee = ticket.get("claimed_by_agent_id"), _assignee(ticket)
    mine = me in (ticket.get("created_by_agent_id"), holder, assignee)
    return mine or (status == "open" and holder is None and assignee is None)


def ticket_project(ticket: Mapping[str, object]) -> str | None:
    """The project of a ticket: the first segment of its target URL, lower-case, with `:` read as `/`."""
    target = text(ticket.get("target_url")) or ""
    return target.strip().replace(":", "/").split("/", 1)[0].strip().lower() or None


def _is_in_project(ticket: Mapping[str, object], watcher: Watcher) -> bool:
    return watcher.project is None or ticket_project(ticket) == watcher.project


def _may_matter(event: Mapping[str, object], watcher: Watcher) -> bool:
    # Central leaves a seat's own acts out of its pages; a page that serves several seats needs the same rule here.
    own = event.get("actor") == watcher.agent_id
    return not own and fits(event, watcher.view) and ticket_of(event) is not None


def _without_ticket(event: Mapping[str, object], watcher: Watcher, lookup_failed: bool) -> dict[str, object] | None:
    kind = kind_of(event)
    lease_kinds = REVIEW_LEASE if lookup_failed else LEASE_ENDED
    if watcher.view == "submitted" and kind in lease_kinds and event.get("reviewer_agent_id") == watcher.agent_id:
        return {**event, "reason": "held_ticket_update"}
    if lookup_failed and kind != OFFERED[watcher.view] and not watcher.only_mine and watcher.project is None:
        return dict(event)
    return None


def _offered(event: Mapping[str, object], ticket: Mapping[str, object], watcher: Watcher) -> dict[str, object] | None:
    offer = offer_to(watcher.agent_id, ticket, watcher.view)
    if offer is None or not _is_in_project(ticket, watcher):
        return None
    return _told({**event, "offer": described(watcher.board, ticket, offer)}, ticket, "offer")


def _is_held_update(event: Mapping[str, object], ticket: Mapping[str, object], watcher: Watcher) -> bool:
    me, kind = watcher.agent_id, kind_of(event)
    if watcher.view == "submitted":
        return kind in HELD | REVIEW_LEASE and me in (event.get("reviewer_agent_id"), _reviewer(ticket))
    if kind not in HELD:
        return False
    holder = ticket.get("claimed_by_agent_id")
    return me in (holder, event.get("submitted_by_agent_id"), event.get("last_abandoned_by"), _asker(ticket)) or (
        holder is None and ticket.get("last_claimed_by_agent_id") == me
    )


def _dispatched(event: Mapping[str, object], ticket: Mapping[str, object], watcher: Watcher) -> bool:
    """Relevance on a board where Central hands out the work, of an event that is neither an offer nor a held update.

    The bridge does not ask for the project here, nor of an offer, although it does of the open work that it scans (D25).
    """
    dispatch = ticket.get("dispatch_state")
    to_anyone = isinstance(dispatch, dict) and dispatch.get("state") == "broadcast"
    if watcher.view == "submitted":
        submitted = kind_of(event) in SUBMISSION and event.get("status_to") == "submitted"
        return to_anyone and submitted and is_relevant_ticket(ticket, watcher)
    is_open = to_anyone and ticket.get("status") == "open" and _is_in_project(ticket, watcher)
    return is_open or ticket.get("claimed_by_agent_id") == watcher.agent_id


def _told(event: Mapping[str, object], ticket: Mapping[str, object], reason: str) -> dict[str, object]:
    told = dict(event)
    target = ticket.get("target_url")
    if isinstance(target, str):
        told["target_url"] = target
    told["reason"] = reason
    hint = continuation(ticket)
    if hint is not None:
        told["continuation"] = hint
    return told


def _review_is_free(ticket: Mapping[str, object]) -> bool:
    """Whether nobody reviews the submission; without a `review_state` any lease counts, even one that has run out."""
    state = ticket.get("review_state")
    if state is None:
        return not isinstance(ticket.get("review_lease"), dict)
    if isinstance(state, str):
        return state.strip().lower() in ("unclaimed", "expired")
    if not isinstance(state, dict):
        return False
    status = str(state.get("status") or "unclaimed").strip().lower()
    holders = ("claimed_by_agent_id", "reviewer_agent_id", "holder_agent_id")
    return status == "expired" or (status == "unclaimed" and not any(state.get(key) for key in holders))


def _reviewer(ticket: Mapping[str, object]) -> str | None:
    lease = ticket.get("review_lease")
    return text(lease.get("reviewer_agent_id")) if isinstance(lease, dict) else None


def _assignee(ticket: Mapping[str, object]) -> str | None:
    """The seat that the ticket is assigned to. The full view names it flat, the others in `assigned`."""
    flat = text(ticket.get("assigned_to_agent_id"))
    assigned = ticket.get("assigned")
    return flat or (text(assigned.get("agent_id")) if isinstance(assigned, dict) else None)


def _asker(ticket: Mapping[str, object]) -> str | None:
    request = ticket.get("human_request")
    asker = request.get("asked_by") if isinstance(request, dict) else None
    return text(asker.get("agent_id")) if isinstance(asker, dict) else None
