"""Turning the events of a catch-up into ticket state: which tickets, asked how, and what if they stay unknown.

bridge.md §2.5. One listing of the active tickets serves the events and the backlog; what it lacks is asked for by id.
A ticket that stays unknown never holds the cursor back: its events are returned, marked as unprojected.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pursersd.rules.events import LEASE_ENDED, OFFER_MADE, View, kind_of, text, ticket_of
from pursersd.rules.relevance import Watcher, needs_ticket

PAGE = 500
"""Tickets per page, and ids per request, that Central allows."""

FAILED = "ticket_projection_failed"
KEY_FILTER_UNAVAILABLE = "ticket_projection_key_filter_unavailable"
CURSOR_STALLED = "ticket_projection_cursor_stalled"
TRUNCATED = "ticket_projection_truncated"
UNPROJECTED = "ticket_projection_unprojected"
CURSOR_AHEAD = "cursor_ahead_clamped"


def candidates(events: Iterable[Mapping[str, object]], watcher: Watcher) -> set[str]:
    """The tickets that must be known to judge these events.

    The end of a review lease is judged without one if need be: the submission it frees is in the listing anyway.
    """
    return {
        ticket_id
        for event in events
        if (ticket_id := needs_ticket(event, watcher)) is not None
        and not (watcher.view == "submitted" and kind_of(event) in LEASE_ENDED)
    }


def unprojected(event: Mapping[str, object], watcher: Watcher) -> dict[str, object]:
    """The event as it is returned when its ticket stayed unknown."""
    if kind_of(event) in OFFER_MADE:
        reason = "offer"
    elif event.get("reviewer_agent_id") == watcher.agent_id:
        reason = "held_ticket_update"
    else:
        reason = "broadcast"
    return {**event, "projection_state": "unprojected", "reason": reason}


def unprojected_warning(count: int) -> dict[str, object]:
    """The warning for `count` tickets that stayed unknown."""
    return {"code": UNPROJECTED, "count": count}


def cursor_ahead_warning(requested: int, clamped: int) -> dict[str, object]:
    """The warning for a cursor beyond the end of the journal, which was set back to that end."""
    return {"code": CURSOR_AHEAD, "requested_cursor": requested, "clamped_cursor": clamped}


def batches(ticket_ids: Collection[str]) -> list[list[str]]:
    """The ids in order, in lots that one request can ask for."""
    ordered = sorted(ticket_ids)
    return [ordered[start : start + PAGE] for start in range(0, len(ordered), PAGE)]


@dataclass(slots=True)
class Listing:
    """One ticket_list, drained page by page: `while listing.wanted: listing.add(call(listing.arguments()))`.

    With `ticket_ids` it asks for these tickets in whatever state they are active, else for all active ones of the view.
    `include_closed` lets it find finished tickets, too.
    """

    view: View
    ticket_ids: Sequence[str] | None = None
    include_closed: bool = False
    tickets: list[Mapping[str, object]] = field(default_factory=list)
    warning: dict[str, object] | None = None
    wanted: bool = True
    """Whether another page must be read."""
    _total: int = 0
    _cursor: str | None = None
    _cursors: set[str] = field(default_factory=set)

    def arguments(self) -> dict[str, object]:
        """The arguments of the next call, without the board."""
        arguments: dict[str, object] = {"include_closed": self.include_closed, "limit": PAGE, "view": "work"}
        if self.ticket_ids is not None:
            arguments["ticket_ids"] = sorted(self.ticket_ids)
        elif self.view == "submitted":
            arguments["status"] = "submitted"
        if self._cursor is not None:
            arguments["cursor"] = self._cursor
        return arguments

    def add(self, page: Mapping[str, object]) -> None:
        """Take one result, its ids expanded."""
        rows = page.get("tickets")
        found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        self.tickets.extend(found)
        total = page.get("total_matching", len(found))
        self._total = max(self._total, total if isinstance(total, int) else len(self.tickets) + 1)
        if self.ticket_ids is not None and not self._was_filtered(page):
            self._end(KEY_FILTER_UNAVAILABLE, requested=len(self.ticket_ids), total_matching=self._total)
        elif page.get("has_more"):
            self._follow(text(page.get("next_cursor")))
        elif self._total > len(self.tickets):
            self._end(TRUNCATED, total_matching=self._total)
        else:
            self.wanted = False

    def failed(self, detail: str) -> None:
        """Central refused the next page."""
        self._end(FAILED, detail=detail)

    @property
    def complete(self) -> bool:
        """Whether a ticket that is not in `tickets` certainly does not match."""
        return not self.wanted and self.warning is None

    def unknown(self, ticket_ids: Collection[str]) -> set[str]:
        """Those of `ticket_ids` about which this listing says nothing."""
        if self.complete:
            return set()
        return set(ticket_ids) - {ticket_of(ticket) for ticket in self.tickets}

    def _was_filtered(self, page: Mapping[str, object]) -> bool:
        # A Central that does not know the filter ignores it: then absence means nothing.
        filters = page.get("filters")
        return isinstance(filters, dict) and filters.get("ticket_ids") == sorted(self.ticket_ids or ())

    def _follow(self, cursor: str | None) -> None:
        if cursor is None or cursor in self._cursors:
            self._end(CURSOR_STALLED, total_matching=self._total)
            return
        self._cursors.add(cursor)
        self._cursor = cursor

    def _end(self, code: str, **facts: object) -> None:
        self.wanted = False
        self.warning = {"code": code, "returned": len(self.tickets), **facts}
