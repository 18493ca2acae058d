"""What board_digest returns: the changes since a place, by ticket, and how fresh they are (bridge.md §5.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pursersd.rules.digest_arguments import Query
from pursersd.rules.digest_buffer import Event
from pursersd.rules.digest_record import Record
from pursersd.rules.digest_ticket import Told, told
from pursersd.rules.digest_tickets import Ticket
from pursersd.rules.events import text
from pursersd.rules.windows import digest_warning

MESSAGE_LIMIT = 500
"""Characters of a human request's message that are shown."""

Found = dict[str, object]


@dataclass(frozen=True, slots=True)
class Sources:
    """What is known at the moment, for one reader."""

    events: Sequence[Event] = ()
    """Those after `Query.places`, the oldest first."""
    tickets: Sequence[tuple[str, str, Ticket]] = ()
    """Board, id and content of every ticket to which the reader has seen something happen, on the digest's boards."""
    cursors: Mapping[str, int] = field(default_factory=dict)
    """Up to where each board has been read."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Up to where events may be missing, by board."""
    connected: bool = False
    """Whether everything that happens is told to us, and was read."""
    trouble: str | None = None
    """Why not."""
    last_event_at: str | None = None
    reconnects: int = 0


def build(query: Query, boards: Sequence[str], since: Mapping[str, int], sources: Sources, record: Record) -> Found:
    """The digest of these boards from these places, for the identity that has this record."""
    known = {(board, ticket_id): ticket for board, ticket_id, ticket in sources.tickets}
    found = [_told(key, events, known.get(key, {}), query, record) for key, events in _by_ticket(sources.events)]
    tickets = sorted((one.item for one in found), key=lambda item: (not item["watched"], str(item["ticket_id"])))
    new = [one.new for one in found if one.new is not None]
    annotations = [annotation for one in found for annotation in _list(one.item["annotations"])]
    cursors = {board: sources.cursors.get(board, since[board]) for board in boards}
    lagging = {
        board: {"requested_cursor": since[board], "available_cursor": cursors[board]}
        for board in boards
        if cursors[board] < since[board]
    }
    reasons = [
        *([] if sources.connected else ["subscription_disconnected"]),
        *(["cursor_behind_request"] if lagging else []),
    ]
    status = "stale" if reasons else "current"
    subscription: Found = {
        "connected": sources.connected,
        "status": status,
        "last_event_at": sources.last_event_at,
        "reconnects": sources.reconnects,
    }
    if sources.trouble is not None and not sources.connected:
        subscription["detail"] = sources.trouble
    digest: Found = {
        "cursor_map": cursors,
        "data_status": status,
        "stale": bool(reasons),
        "stale_reasons": reasons,
        "lagging_boards": lagging,
        "tickets": tickets,
        "new_tickets": new,
        "annotations": annotations,
        "counts": _counts(found, len(new), len(annotations)),
        "unassignable_tickets": unassignable(sources.tickets),
        "human_requests": [
            shown for shown in human_requests(sources.tickets) if shown["request_id"] not in record.human_requests
        ],
        "subscription": subscription,
    }
    gaps = incomplete(boards, since, sources)
    return digest | ({"warnings": [digest_warning(board) for board in gaps]} if gaps else {})


def incomplete(boards: Sequence[str], since: Mapping[str, int], sources: Sources) -> list[str]:
    """The boards of which events after the place that the digest begins at are no longer kept."""
    return [board for board in boards if since[board] < sources.missing.get(board, 0)]


def _by_ticket(events: Sequence[Event]) -> list[tuple[tuple[str, str], list[Event]]]:
    """The events of each ticket, in the order in which the tickets come first."""
    grouped: dict[tuple[str, str], list[Event]] = {}
    for event in events:
        board, ticket_id = text(event.get("board_id")), text(event.get("ticket_id"))
        if board and ticket_id:
            grouped.setdefault((board, ticket_id), []).append(event)
    return list(grouped.items())


def _told(key: tuple[str, str], events: Sequence[Event], ticket: Ticket, query: Query, record: Record) -> Told:
    tags = ticket.get("tags")
    watched = key[1] in record.watched_ticket_ids or bool(
        record.watched_tags & {tag for tag in _list(tags) if isinstance(tag, str)}
    )
    return told(
        *key,
        events,
        ticket,
        notes_keys=query.notes_keys,
        most_transitions=query.most_transitions,
        watched=watched,
    )


def _counts(found: Sequence[Told], new: int, annotations: int) -> Found:
    def reaching(status: str) -> int:
        return sum(status in one.reached for one in found)

    def judged(verdict: str) -> int:
        return sum(isinstance(r := one.item["review"], dict) and r["verdict"] == verdict for one in found)

    return {
        "total_tickets": len(found),
        "total_transitions": sum(len(_list(one.item["transitions"])) for one in found),
        "transitions_omitted": sum(n for one in found if isinstance(n := one.item["transitions_omitted_count"], int)),
        "new": new,
        "submitted": reaching("submitted"),
        "approved": judged("approve"),
        "rejected": judged("reject"),
        "closed": reaching("closed"),
        "cancelled": reaching("canceled"),  # which is how Central spells it
        "annotations": annotations,
    }


def unassignable(tickets: Sequence[tuple[str, str, Ticket]]) -> list[Found]:
    """The tickets that Central can offer to nobody, by board and id."""
    found: list[Found] = [
        {"board_id": board, "ticket_id": ticket_id, "reason": state.get("reason"), "kind": state.get("kind")}
        for board, ticket_id, ticket in tickets
        if isinstance(state := ticket.get("dispatch_state"), dict) and state.get("state") == "unassignable"
    ]
    return sorted(found, key=lambda row: (str(row["board_id"]), str(row["ticket_id"])))


def human_requests(tickets: Sequence[tuple[str, str, Ticket]]) -> list[Found]:
    """What waits for the answer of a human, by board, ticket and request."""
    found: list[Found] = []
    for board, ticket_id, ticket in tickets:
        for request in pending(ticket):
            asked_by = request.get("asked_by")
            found.append(
                {
                    "board_id": board,
                    "ticket_id": ticket_id,
                    "request_id": request["request_id"],
                    "message": str(request.get("message") or "")[:MESSAGE_LIMIT],
                    "kind": request.get("kind"),
                    "requested_schema": request.get("requested_schema"),
                    "url": request.get("url"),
                    "asked_by": asked_by.get("agent_name") if isinstance(asked_by, dict) else None,
                    "asked_at": request.get("asked_at"),
                    "expires_at": request.get("expires_at"),
                }
            )
    return sorted(found, key=lambda row: (str(row["board_id"]), str(row["ticket_id"]), str(row["request_id"])))


def pending(ticket: Ticket) -> list[Mapping[str, object]]:
    """The records of a ticket's requests that nobody has answered."""
    if ticket.get("status") != "needs_human":
        return []
    stored = ticket.get("human_request")
    return [
        record
        for record in (stored if isinstance(stored, list) else [stored])
        if isinstance(record, dict) and record.get("resolution") is None and text(record.get("request_id"))
    ]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
