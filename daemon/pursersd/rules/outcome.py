"""How a wait ends: which events it returns, why, and in which shape (bridge.md §1.6, §2.4, §2.10, §2.11)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pursersd.rules.arguments import Cursor
from pursersd.rules.compaction import Compacted
from pursersd.rules.events import BACKLOG_SCAN, OFFER_MADE, kind_of, ticket_of
from pursersd.rules.failures import understood

Boards = Sequence[str] | Literal["registry"] | None

_REASONS = ("offer", "reconciled", "held_ticket_update", "broadcast")

_POLICY_MESSAGE = (
    "a2a_wait configuration is incompatible with the joined seat; no caller cursor was advanced. "
    "Repair the wait selection, then re-arm from new_seq."
)
_MESSAGE = (
    "a2a_wait could not complete; no caller cursor was advanced. "
    "Check the wait-bridge/Central transport, then re-arm from new_seq."
)


def reason_for(events: Sequence[Mapping[str, object]]) -> str:
    """The `reason` of a result with these events (bridge.md §2.11)."""
    if not events:
        return "timeout"
    first = events[0].get("reason")
    if isinstance(first, str) and first in _REASONS:
        return first
    if any(kind_of(event) in OFFER_MADE for event in events):
        return "offer"
    if all(event.get("source") == BACKLOG_SCAN for event in events):
        return "backlog"
    return "journal"


def scan_reason(events: Sequence[Mapping[str, object]]) -> str:
    """The `reason` when a scan in the middle of a single-board wait found these cues (bridge.md §2.9)."""
    return "reconciled" if any(event.get("reason") == "reconciled" for event in events) else "backlog"


def merge(
    journal: Sequence[dict[str, object]],
    offers: Sequence[dict[str, object]],
    backlog: Sequence[dict[str, object]],
) -> list[dict[str, object]]:
    """Journal events, then offers, then backlog; a cue is left out when something before it is about its ticket.

    Journal events are never left out: two of them about one ticket are two things that happened.
    """
    merged = list(journal)
    known = {ticket_of(event) for event in merged} - {None}
    for cue in (*offers, *backlog):
        ticket_id = ticket_of(cue)
        if ticket_id not in known:
            merged.append(cue)
            known |= {ticket_id} - {None}
    return merged


def polled_warning(reason: str) -> dict[str, object]:
    """The warning that a board was polled instead of pushed, and why. Ours: the bridge keeps the reason to itself."""
    return {"code": "push_unavailable", "detail": reason}


def wait_result(
    *,
    new_seq: int | None,
    events: Sequence[dict[str, object]],
    waited_s: float,
    mode: Literal["push", "poll"],
    reason: str | None = None,
    resynced: bool = False,
    compacted: Compacted | None = None,
    partial: bool = False,
    warnings: Iterable[Mapping[str, object]] = (),
    registry_warning: str | None = None,
) -> dict[str, object]:
    """The result of a single-board wait. `reason` overrides what the events say; `waited_s` is 0 for an entry return.

    `new_seq` is None when the caller left its cursor out and must do so again: a number would bring everything again (D2).
    Without events it is a timeout, or, when the read was incomplete, `partial`: then there may be something after all.
    """
    result: dict[str, object] = {
        "new_seq": new_seq,
        "events": list(events),
        "waited_s": round(max(0.0, waited_s), 2),
        "timed_out": not events and not partial,
        "mode": mode,
        "reason": _reason(events, reason, partial),
        "resynced": resynced,
    }
    if compacted is not None:
        result |= {"compacted": True, "dropped": compacted.dropped, "event_counts": dict(compacted.event_counts)}
    if partial:
        result["partial"] = True
    told = [dict(warning) for warning in warnings]
    if told:
        result["warnings"] = told
    if registry_warning is not None:
        result["registry_warning"] = registry_warning
    return result


def wait_error(
    error: BaseException,
    *,
    caller_cursor: Cursor,
    wait_mode: Literal["push", "poll"],
    boards: Boards,
    home: str,
    waited_s: float,
) -> dict[str, object]:
    """The result of a wait that failed: no event, the caller's cursor as it was, and what to do (bridge.md §1.6).

    `error.detail` is ours: the readable cause, which the bridge keeps to itself.
    """
    failure = understood(error)
    listed = list(dict.fromkeys(boards)) if boards is not None and not isinstance(boards, str) else None
    new_seq = _unchanged(caller_cursor, listed)
    concerned = listed or (list(caller_cursor) if isinstance(caller_cursor, dict) and caller_cursor else [home])
    code = "wait_configuration" if failure.policy else f"{'push' if wait_mode == 'push' else 'wait'}_unavailable"
    return {
        "new_seq": new_seq,
        "events": [],
        "waited_s": round(max(0.0, waited_s), 2),
        "timed_out": False,
        "mode": "error",
        "mode_by_board": dict.fromkeys(concerned, "error"),
        "reason": code,
        "resynced": dict.fromkeys(concerned, False) if isinstance(new_seq, dict) else False,
        "skipped_boards": {},
        "error": {
            "code": code,
            "cause_class": failure.cause,
            "exception_classes": list(failure.classes),
            "message": _POLICY_MESSAGE if failure.policy else _MESSAGE,
            "retryable": failure.retryable,
            "cursor_preserved": True,
            "action": _action(new_seq, failure.cause, failure.retryable),
            "detail": failure.detail,
        },
    }


def _reason(events: Sequence[Mapping[str, object]], reason: str | None, partial: bool) -> str:
    if partial and not events:
        return "partial"
    return reason or reason_for(events)


def _unchanged(cursor: Cursor, listed: list[str] | None) -> Cursor:
    if isinstance(cursor, dict):
        return dict(cursor)
    if isinstance(cursor, int) and listed is not None:
        return dict.fromkeys(listed, cursor)
    return cursor


def _action(new_seq: Cursor, cause: str, retryable: bool) -> str:
    if new_seq is None:
        return "rearm_with_omitted_cursor"
    if retryable:
        return "rearm_from_unchanged_cursor"
    return f"repair_{cause}_then_rearm_from_unchanged_cursor"
