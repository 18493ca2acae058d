"""Ask Central who holds what on a board. Pure reads, shared by all seats of a pool (central.md §6.6)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pursersd.central.pool import Pool
from pursersd.rules.events import text
from pursersd.rules.id_map import expand_ids
from pursersd.rules.lease import Claim, claims, number

PAGE = 500
PAGES = 20
"""Pages of one listing that are followed at most."""

_WORK = ("claimed", "in_progress")
_REVIEW = ("submitted",)

Ticket = Mapping[str, object]


@dataclass(slots=True)
class Holdings:
    """The state of some tickets as of journal position `seq`."""

    seq: int = 0
    tickets: dict[str, Ticket] = field(default_factory=dict)


@dataclass(slots=True)
class Survey:
    """What a look at a whole board found."""

    ttl_s: float | None
    seq: int
    """Everything up to here is in it."""
    claims: list[Claim] = field(default_factory=list)


async def of_tickets(pool: Pool, board: str, ticket_ids: Collection[str]) -> Holdings:
    """The tickets with these ids, finished or not; one that is not there does not exist.

    Raises CentralError.
    """
    return await _listed(pool, board, ticket_ids=sorted(ticket_ids), include_closed=True)


async def of_seats(pool: Pool, board: str, agents: Collection[str], *, since: int) -> Survey:
    """What these seats hold: the tickets in the states in which they can be held.

    It is one small read if none of them holds anything, or if nothing was written since `since`, a place in the journal:
    the claims are left out then. Raises CentralError.
    """
    status = await pool.read("board_status", {"board_id": board})
    roles = {
        text(row.get("agent_id")): row.get("role") for row in _rows(status, "agents") if row.get("lease_expires_at")
    }
    holding = {agent: roles[agent] for agent in agents if agent in roles}
    survey = Survey(number(status.get("claim_ttl_s")), int(status.get("latest_seq") or 0))
    if not holding or survey.seq <= since:
        return survey
    reviews = [role == "reviewer" for role in holding.values()]
    likely = (*(() if all(reviews) else _WORK), *(_REVIEW if any(reviews) else ()))
    for states in (likely, [state for state in (*_WORK, *_REVIEW) if state not in likely]):
        for state in states:
            found = await _listed(pool, board, status=state)
            survey.claims += [
                claim for row in found.tickets.values() for claim in claims(board, row) if claim.key.agent_id in holding
            ]
        if holding.keys() <= {claim.key.agent_id for claim in survey.claims}:
            break  # every lease that Central told of has been found; a seat rarely has both kinds
    return survey


async def _listed(pool: Pool, board: str, **filters: object) -> Holdings:
    found = Holdings()
    arguments: dict[str, Any] = {"board_id": board, "view": "work", "limit": PAGE, **filters}
    for _ in range(PAGES):
        page = expand_ids(await pool.read("ticket_list", arguments))
        found.seq = found.seq or int(str(page.get("latest_seq") or 0))
        for row in _rows(page, "tickets"):
            whole = await _whole(pool, board, row) if row.get("oversized_for_list") else row
            found.tickets[str(row.get("ticket_id"))] = whole
        if not page.get("has_more") or not page.get("next_cursor"):
            break
        arguments["cursor"] = page["next_cursor"]
    return found


async def _whole(pool: Pool, board: str, row: Ticket) -> Ticket:
    """A ticket that was too large for its listing, which left out its leases."""
    answer = await pool.read("ticket_get", {"board_id": board, "ticket_id": row["ticket_id"], "view": "work"})
    ticket = expand_ids(answer).get("ticket")
    return ticket if isinstance(ticket, dict) else row


def _rows(answer: Mapping[str, object], name: str) -> list[Mapping[str, Any]]:
    rows = answer.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
