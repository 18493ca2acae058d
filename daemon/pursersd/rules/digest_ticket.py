"""What a digest says of one ticket: its transitions, annotations and state (bridge.md §5.2)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pursersd.rules.digest_notes import notes_subset
from pursersd.rules.events import TICKET_CREATED, kind_of, text

Json = Mapping[str, object]

ANNOTATED = "ticket_annotated"


@dataclass(frozen=True, slots=True)
class Told:
    """One ticket of a digest."""

    item: dict[str, object]
    reached: frozenset[str]
    """The statuses of all its transitions, also of those that the item leaves out."""
    new: dict[str, object] | None
    """What is said of it as a new ticket, if it was created in the span of the digest."""


def told(
    board: str,
    ticket_id: str,
    events: Sequence[Json],
    ticket: Json,
    *,
    notes_keys: Sequence[str],
    most_transitions: int | None,
    watched: bool,
) -> Told:
    """What to say of a ticket to which these events happened, the oldest first; `ticket` is empty if nobody knows it."""
    transitions = _transitions(events, ticket)
    shown, omitted = ends(transitions, most_transitions)
    closed = next((t["at"] for t in reversed(transitions) if t["to"] == "closed"), None)
    status = str(ticket.get("status") or (shown[-1]["to"] if shown else "open"))
    title = str(ticket.get("title") or events[0].get("title") or "")
    item: dict[str, object] = {
        "ticket_id": ticket_id,
        "board_id": board,
        "title": title,
        "transitions": shown,
        "transitions_omitted_count": omitted,
        "status_now": status,
        "review": _review(events, ticket),
        "claimed_by": _first(ticket, "claimed_by", "claimed_by_agent_name", "claimed_by_agent_id"),
        "notes_subset": notes_subset(ticket, notes_keys),
        "annotations": list(_annotations(board, ticket_id, events, ticket)),
        "annotation_count": _number(ticket.get("annotation_count")),
        "closed_at": ticket.get("closed_at") or closed,
        "watched": watched,
        "dispatch_state": ticket.get("dispatch_state"),
        "offers": {name: ticket[name] for name in ("work_offer", "review_offer") if isinstance(ticket.get(name), dict)},
    }
    new = None
    if any(is_creation(event) for event in events):
        new = {
            "ticket_id": ticket_id,
            "board_id": board,
            "title": title,
            "created_at": ticket.get("created_at") or events[0].get("occurred_at"),
            "created_by": ticket.get("created_by") or events[0].get("actor"),
            "status": status,
        }
    return Told(item, frozenset(str(t["to"]) for t in transitions), new)


def is_creation(event: Json) -> bool:
    """Whether the event is the beginning of its ticket."""
    return kind_of(event) == TICKET_CREATED


def ends(transitions: list[dict[str, object]], limit: int | None) -> tuple[list[dict[str, object]], int]:
    """At most `limit` of the transitions, the oldest and the newest of them, and how many are left out between.

    The newest alone if it is one; of an odd number one more old than new.
    """
    if limit is None or len(transitions) <= limit:
        return transitions, 0
    newest = max(1, limit // 2)
    return transitions[: limit - newest] + transitions[-newest:], len(transitions) - limit


def _transitions(events: Sequence[Json], ticket: Json) -> list[dict[str, object]]:
    found: list[dict[str, object]] = [
        {
            "from": (event.get("status_from") or None) if is_creation(event) else event.get("status_from"),
            "to": event.get("status_to") or ("open" if is_creation(event) else "unknown"),
            "actor": event.get("actor") or "",
            "at": event.get("occurred_at") or "",
        }
        for event in events
        if kind_of(event) != ANNOTATED
    ]
    if ticket.get("created_at") and not any(transition["to"] == "open" for transition in found):
        # Its creation was not in the span, or is hidden from whoever created it.
        begun = {"from": None, "to": "open", "actor": text(ticket.get("created_by")) or "", "at": ticket["created_at"]}
        found.insert(0, begun)
    return found


def _review(events: Sequence[Json], ticket: Json) -> dict[str, object]:
    newest = list(reversed(events))
    who = ("reviewed_by_agent_name", "reviewed_by_agent_id")
    verdict = ticket.get("review_verdict")
    if verdict is None:
        verdict = next((event["review_verdict"] for event in newest if event.get("review_verdict")), None)
    reviewer = _first(ticket, *who)
    if reviewer is None:
        reviewer = next((_first(event, *who) for event in newest if _first(event, *who)), None)
    rejections = _number(ticket.get("rejection_count"))
    if not rejections:
        rejections = next((_number(event["rejection_count"]) for event in newest if event.get("rejection_count")), 0)
    return {"verdict": verdict, "rejection_count": rejections, "reviewer": reviewer}


def _annotations(board: str, ticket_id: str, events: Sequence[Json], ticket: Json) -> Iterator[dict[str, object]]:
    """The annotations of the span: as the ticket has them, or what the event says of one that it does not have any more."""
    kept = ticket.get("annotations")
    by_id = (
        {a["annotation_id"]: a for a in kept if isinstance(a, dict) and a.get("annotation_id")}
        if isinstance(kept, list)
        else {}
    )
    for event in events:
        if kind_of(event) != ANNOTATED:
            continue
        known = by_id.get(event.get("annotation_id"))
        said = dict(known) if known is not None else _of_event(event)
        yield said | {"omitted": known is None, "board_id": board, "ticket_id": ticket_id}


def _of_event(event: Json) -> dict[str, object]:
    return {
        "annotation_id": event.get("annotation_id"),
        "kind": event.get("annotation_kind"),
        "text": None,
        "by": {name: event.get(f"annotation_by_{name}") for name in ("principal_id", "agent_id", "agent_name")},
        "at": event.get("occurred_at"),
    }


def _first(fields: Json, *names: str) -> object:
    """The value of the first of these fields that says something; of the last one, what it has."""
    return next((fields[name] for name in names if fields.get(name)), fields.get(names[-1]))


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
