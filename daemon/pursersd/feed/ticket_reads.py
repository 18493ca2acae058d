"""Read many tickets with few requests: as ticket_get describes them, annotations included."""

from collections.abc import Mapping, Sequence
from typing import Any

from pursersd.central.pool import Pool
from pursersd.rules.id_map import expand_ids

BATCH = 100
"""Tickets that are asked for at once."""


async def read(pool: Pool, board: str, ticket_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    """These tickets of a board by id; those that Central does not know, or hides, are left out. Raises CentralError."""
    found: dict[str, Mapping[str, Any]] = {}
    for start in range(0, len(ticket_ids), BATCH):
        found |= await _listed(pool, board, ticket_ids[start : start + BATCH])
    for ticket_id, row in found.items():
        if row.get("annotation_count"):  # which a list leaves out
            answer = await pool.read("ticket_get", {"board_id": board, "ticket_id": ticket_id, "view": "work"})
            whole = expand_ids(answer).get("ticket")
            found[ticket_id] = whole if isinstance(whole, dict) else row
    return found


async def _listed(pool: Pool, board: str, ticket_ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
    arguments: dict[str, Any] = {
        "board_id": board,
        "ticket_ids": list(ticket_ids),
        "include_closed": True,
        "include_archived": True,
        "limit": len(ticket_ids),
        "view": "work",
    }
    found: dict[str, Mapping[str, Any]] = {}
    while True:
        page = expand_ids(await pool.read("ticket_list", arguments))
        rows = page.get("tickets")
        found |= {str(row["ticket_id"]): row for row in rows if isinstance(row, dict)} if isinstance(rows, list) else {}
        if not page.get("has_more"):
            return found
        arguments["cursor"] = page["next_cursor"]
