"""Conversations that have ended: the last few, with the reason, and what is left of their processes."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from pursersd.api import EndedRow, SeatRow
from pursersd.conversation.lineage import Lineage

KEPT = 50
"""How many are remembered, by this daemon; its log knows of more."""


@dataclass(frozen=True, slots=True)
class Departure:
    """One of them."""

    row: SeatRow
    """Its last line in `pursersctl ps`."""
    lineage: Lineage
    reason: str
    at: float
    """When (monotonic)."""


class Departures:
    """The last KEPT departures, the newest first."""

    def __init__(self) -> None:
        self._kept: deque[Departure] = deque(maxlen=KEPT)

    def __iter__(self) -> Iterator[Departure]:
        return iter(self._kept)

    def add(self, row: SeatRow, lineage: Lineage, reason: str) -> None:
        """A conversation has ended."""
        self._kept.appendleft(Departure(row, lineage, reason, time.monotonic()))

    def rows(self) -> list[EndedRow]:
        """One row each, for `pursersctl ps --ended`."""
        now = time.monotonic()
        return [
            EndedRow(
                seat=left.row.seat,
                board=left.row.board,
                role=left.row.role,
                host=left.row.host,
                host_pid=left.row.host_pid,
                shim_pid=left.row.shim_pid,
                conversation=left.row.conversation,
                reason=left.reason,
                ago_s=round(now - left.at, 3),
                age_s=left.row.age_s,
                last_tool=left.row.last_tool,
                cwd=left.row.cwd,
            )
            for left in self._kept
        ]
