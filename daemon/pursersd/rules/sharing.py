"""When the catch-up page of one seat may serve another seat of the same credential (central.md §6.6 rule 3).

Central filters pages by seat and does not say for whom else an event is. What is known: a seat sees an event iff it did
not cause it and (a) is a recipient, or (b) the event opened a ticket that is still open, or (c) it is a change of board
state and the credential may coordinate (central.md §6.3); and each recipient is cued on its own URI (§4.5).

The caller guarantees: both seats read from the same cursor, and all cues of the other seat arrived before the page was
asked for. A cue proves that there is a row for the seat, so with exactly one row in the range that row is the one.

Some rows need no cue as a proof, because they say for whom they are: what is for everyone, and offers, which are told to
the one seat that they name (central.md §11). Where all rows of a range are of that kind, `Rows` tells what each seat sees
of them: on a board that hands out its work each ticket is two rows, which would cost every waiter a page of its own.

One doubt remains. A seat cue can reach us after the seat has already read its row; then the one row of the page may be
for others. The seat then gets an event more than Central would have shown it, never one less, and `relevance.judge`
still decides by the ticket.
"""

from collections.abc import Mapping
from typing import Literal

from pursersd.rules.events import (
    OFFER_ENDED,
    OFFER_MADE,
    STATE_CHANGED,
    TICKET_CREATED,
    TICKET_STATUS_CHANGED,
    kind_of,
    seq_of,
    text,
)

Verdict = Literal["deliver", "nothing", "read"]


def verdict(page: Mapping[str, object], other_agent_id: str, other_by_seat_cue: bool) -> Verdict:
    """What the page of one seat tells about another seat that was cued, too.

    `deliver`: its event is the other seat's event, and its `next_cursor` the other seat's cursor.
    `nothing`: there is no event for the other seat now. Its cursor stays: a late cue may still follow.
    `read`: the page does not tell; the other seat needs a page of its own.
    """
    events, scanned = page.get("events"), page.get("scan_count")
    if page.get("resync_required") or page.get("has_more") or not isinstance(events, list):
        return "read"
    if scanned == 0 and not events:
        return "nothing"
    if scanned != 1 or len(events) != 1 or not isinstance(events[0], dict):
        return "read"
    event = events[0]
    if event.get("actor") == other_agent_id:
        return "nothing"
    if is_for_everyone(event):
        return "deliver"
    if not other_by_seat_cue:
        return "nothing"
    # Changes of a seat cue the seat they are about as a reference, whether it is a recipient or not.
    about_other = (text(event.get("payload_ref")) or "").endswith(f"/agent/{other_agent_id}")
    return "read" if about_other else "deliver"


def is_for_everyone(event: Mapping[str, object]) -> bool:
    """Whether an event that one seat sees is seen by every seat of its credential, except the one that caused it.

    Of an opened ticket this holds while the ticket is open, and it is, if no later row of the journal has changed it.
    """
    kind = kind_of(event)
    opened = kind in (TICKET_CREATED, TICKET_STATUS_CHANGED) and event.get("status_to") == "open"
    return opened or kind == STATE_CHANGED


def _seat_named(event: Mapping[str, object]) -> str | None:
    """The one seat that is told of this event; None if the event does not say."""
    return text(event.get("offered_agent_id")) if kind_of(event) in OFFER_MADE | OFFER_ENDED else None


class Rows:
    """The rows of the journal after one cursor, as far as the pages of several seats show them.

    The first page says how many there are; the caller guarantees of later pages that they were read from the same cursor, too.
    """

    def __init__(self, start: int, page: Mapping[str, object]) -> None:
        end, scanned = page.get("next_cursor"), page.get("scan_count")
        self.start = start
        self.end = end if isinstance(end, int) and scanned == end - start and not page.get("has_more") else start
        """Where they end; where they begin, if the page does not show the end of the journal."""
        self._events: dict[int, Mapping[str, object]] = {}
        self._told: list[tuple[Mapping[str, object], str | None]] | None = None
        """The rows in order, each with the one seat that it names, if it names one; None while that is not known of all."""
        self.add(page)

    def add(self, page: Mapping[str, object]) -> None:
        """Another seat's page."""
        events, known = page.get("events"), len(self._events)
        for event in events if isinstance(events, list) else ():
            if self.start < (seq_of(event) or 0) <= self.end:
                self._events[seq_of(event) or 0] = event
        if known < len(self._events) == self.end - self.start:
            rows = [(event, _seat_named(event)) for _, event in sorted(self._events.items())]
            is_told = all(named is not None or is_for_everyone(event) for event, named in rows)
            self._told = rows if is_told else None

    def seen_by(self, agent_id: str) -> list[Mapping[str, object]] | None:
        """What a seat sees of them, in order; None if there are none, or if not each of them says for whom it is."""
        if self._told is None:
            return None
        return [event for event, named in self._told if named in (None, agent_id) and event.get("actor") != agent_id]
