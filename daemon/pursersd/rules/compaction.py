"""A long catch-up, shortened to what is still worth knowing (bridge.md §2.5)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pursersd.rules.events import kind_of, seq_of, ticket_of

REPLAY_LIMIT = 200
"""How many events a caller gets at most from a catch-up, and how many read ones make it a long one."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is left of a catch-up, and an account of the whole."""

    events: list[dict[str, object]]
    dropped: int
    """Events read minus events kept."""
    event_counts: dict[str, int]
    """How many events of each kind were read, relevant or not."""


def compact(
    events_read: Sequence[Mapping[str, object]],
    relevant: Sequence[dict[str, object]],
    *,
    cursor_omitted: bool,
    limit: int = REPLAY_LIMIT,
) -> Compacted | None:
    """The newest relevant event of each ticket and the newest without a ticket, in order, the last `limit` of them.

    None when everything is to be returned: nothing was read, or little, from a cursor that the caller gave.
    """
    if not events_read or (len(events_read) <= limit and not cursor_omitted):
        return None
    latest = {ticket_of(event): event for event in relevant}
    kept = sorted(latest.values(), key=lambda event: seq_of(event) or 0)[-limit:]
    counts = Counter(kind_of(event) or "unknown" for event in events_read)
    return Compacted(kept, max(0, len(events_read) - len(kept)), dict(sorted(counts.items())))
