"""The result of a wait on many boards (bridge.md §2.10, §2.11), and of one that no board let in (D6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pursersd.errors import CentralError, Forbidden
from pursersd.rules.arguments import Cursor
from pursersd.rules.compaction import Compacted
from pursersd.rules.outcome import Boards, reason_for, wait_error

Event = dict[str, object]
Mode = Literal["immediate", "push", "poll"]

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class BoardOutcome:
    """How a joined board stands when the wait ends."""

    cursor: int | None
    """None: the caller left its cursor out, and nothing of the board was read and judged."""
    mode: Mode
    resynced: bool = False
    compacted: Compacted | None = None
    partial: bool = False
    warnings: Sequence[Mapping[str, object]] = ()


def board_mode(*, blocked: bool, polled: bool) -> Mode:
    """The `mode` of a joined board: `immediate` if the wait ended at its entry, else how the board was followed."""
    if not blocked:
        return "immediate"
    return "poll" if polled else "push"


def tagged(boards: Sequence[str], found: Mapping[str, Sequence[Mapping[str, object]]]) -> list[Event]:
    """The events found on each board, board by board in this order, each with its `board_id`."""
    return [{**event, "board_id": board} for board in boards for event in found.get(board, ())]


def multi_result(
    *,
    cursors: Mapping[str, int | None],
    joined: Mapping[str, BoardOutcome],
    skipped: Mapping[str, str],
    events: Sequence[Event],
    waited_s: float,
) -> dict[str, object]:
    """The result of a wait on the boards of `cursors`, which has the caller's cursor of each in the requested order.

    Each of them is joined or skipped; `skipped` has the refusals. A skipped board keeps the caller's cursor. `events`
    are tagged already. The maps tell of every joined board as soon as one has something to say, `warnings` only of those
    that warn. Without events it is a timeout, or, when a read was incomplete, `partial`.
    When a joined board has no cursor, `new_seq` is None: the caller must leave it out again, for a number would bring
    everything again (D2).
    """
    ours = {board: joined[board] for board in cursors if board in joined}
    modes = {board: outcome.mode for board, outcome in ours.items()}
    partial = {board: outcome.partial for board, outcome in ours.items()}
    incomplete = any(partial.values())
    reached = {board: ours[board].cursor if board in ours else cursor or 0 for board, cursor in cursors.items()}
    result: dict[str, object] = {
        "new_seq": None if None in reached.values() else reached,
        "events": list(events),
        "waited_s": round(max(0.0, waited_s), 2),
        "timed_out": not events and not incomplete,
        "mode": _mode(modes),
        "mode_by_board": modes,
        "reason": "partial" if incomplete and not events else reason_for(events),
        "resynced": {board: board in ours and ours[board].resynced for board in cursors},
        "skipped_boards": {board: skipped[board] for board in cursors if board in skipped},
    }
    result |= _compaction(ours)
    if incomplete:
        result["partial"] = partial
    warnings = {board: [dict(w) for w in outcome.warnings] for board, outcome in ours.items() if outcome.warnings}
    if warnings:
        result["warnings"] = warnings
    return result


def none_joined(
    *,
    boards: Sequence[str],
    skipped: Mapping[str, str],
    final: bool,
    requested: Boards,
    caller_cursor: Cursor,
    wait_mode: Literal["push", "poll"],
    home: str,
    waited_s: float,
) -> dict[str, object]:
    """The structured error of a wait whose every board refused; its caller would only come back at once.

    `boards` are those that were tried, `requested` is the argument of the call. `final` says that every refusal is a
    decision about rights: then another try is useless until somebody repairs it.
    """
    refusals = "; ".join(f"{board}: {skipped[board].rstrip('.')}" for board in boards[:_SHOWN])
    more = f"; and {len(boards) - _SHOWN} more" if len(boards) > _SHOWN else ""
    detail = f"Central let this seat into none of the boards of this wait. {refusals}{more}. "
    if final:
        error: CentralError = Forbidden(
            f"{detail}Ask the boards' admin for an invite, or set PURSERS_ROLE to a role that they grant. "
            "A refusal is remembered for 15 minutes."
        )
    else:
        error = CentralError(f"{detail}Wait a moment, then re-arm.")
    told = wait_error(
        error, caller_cursor=caller_cursor, wait_mode=wait_mode, boards=requested, home=home, waited_s=waited_s
    )
    concerned = {"mode_by_board": dict.fromkeys(boards, "error"), "skipped_boards": {b: skipped[b] for b in boards}}
    return told | concerned


def _mode(modes: Mapping[str, Mode]) -> Literal["immediate", "push", "poll", "mixed"]:
    different = set(modes.values())
    if len(different) > 1:
        return "mixed"
    return different.pop() if different else "immediate"


def _compaction(joined: Mapping[str, BoardOutcome]) -> dict[str, object]:
    compacted = {board: outcome.compacted for board, outcome in joined.items()}
    if all(found is None for found in compacted.values()):
        return {}
    return {
        "compacted": {board: found is not None for board, found in compacted.items()},
        "dropped": {board: found.dropped if found else 0 for board, found in compacted.items()},
        "event_counts": {board: dict(found.event_counts) if found else {} for board, found in compacted.items()},
    }
