"""Read the tickets behind journal events and backlog: the I/O half of rules.projection (bridge.md §2.5)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pursersd.errors import CentralError, Overloaded, ToolFailed, Unreachable
from pursersd.feed.reads import SharedReads
from pursersd.rules import projection as rules
from pursersd.rules.events import View

Ticket = Mapping[str, object]


@dataclass(slots=True)
class Projection:
    """Tickets by id, as they are now; `unknown` are those that Central could not be asked about."""

    tickets: dict[str, Ticket] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    warnings: list[dict[str, object]] = field(default_factory=list)
    latest_seq: int = 0
    """Where the board's journal ended when Central last looked at the tickets for this."""


class Tickets:
    """Reads the tickets of one board for one view. `live` says whether cues tell when an earlier answer is history."""

    def __init__(self, reads: SharedReads, view: View) -> None:
        self._reads = reads
        self._view = view

    async def active(self, *, at_least: int, live: bool) -> Projection:
        """Every active ticket of the view."""
        listing = rules.Listing(self._view)
        latest_seq = await self._drain(listing, at_least, live)
        return self._projection(listing, latest_seq)

    async def add(
        self, found: Projection, wanted: Collection[str], closed: Collection[str], *, at_least: int, live: bool
    ) -> None:
        """Complete a projection: look up `wanted` tickets that it may lack, and `closed` ones even if they are finished.

        When not one ticket could be read, asking for some of them would only fail again.
        """
        missing = set(wanted) - found.tickets.keys()
        finished = set(closed) - found.tickets.keys()
        if found.warnings and not found.tickets:
            found.unknown |= missing | finished
            missing = finished = set()
        for include_closed, ids in ((False, missing - finished), (True, finished)):
            for batch in rules.batches(ids):
                listing = rules.Listing(self._view, ticket_ids=tuple(batch), include_closed=include_closed)
                latest_seq = await self._drain(listing, at_least, live)
                more = self._projection(listing, latest_seq)
                found.latest_seq = max(found.latest_seq, latest_seq)
                found.tickets |= more.tickets
                found.unknown |= listing.unknown(batch)
                found.warnings += more.warnings
        if found.unknown:
            found.warnings.append(rules.unprojected_warning(len(found.unknown)))

    async def one(self, ticket_id: str, *, at_least: int, live: bool) -> Ticket | None:
        """One ticket, or None when Central says that there is none."""
        arguments = {"ticket_id": ticket_id, "view": "work"}
        try:
            answer = await self._reads.read("ticket_get", arguments, at_least=at_least, live=live)
        except ToolFailed as error:
            if error.kind == "not_found":
                return None
            raise
        ticket = answer.get("ticket")
        return ticket if isinstance(ticket, dict) else None

    async def _drain(self, listing: rules.Listing, at_least: int, live: bool) -> int:
        """Read all pages of a listing; returns where the journal ended at the newest of them."""
        latest_seq = 0
        while listing.wanted:
            arguments = {k: tuple(v) if isinstance(v, list) else v for k, v in listing.arguments().items()}
            try:
                answer = await self._reads.read("ticket_list", arguments, at_least=at_least, live=live)
            except (Unreachable, Overloaded):
                raise
            except CentralError as error:
                listing.failed(str(error))
            else:
                listing.add(answer)
                latest_seq = max(latest_seq, int(answer.get("latest_seq", 0)))
        return latest_seq

    @staticmethod
    def _projection(listing: rules.Listing, latest_seq: int) -> Projection:
        tickets = {str(ticket["ticket_id"]): ticket for ticket in listing.tickets}
        warnings = [listing.warning] if listing.warning else []
        return Projection(tickets, warnings=warnings, latest_seq=latest_seq)
