"""A waiter: one board of one wait in progress, with its place in the journal and the pages fetched for it."""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from pursersd.central.account import Account, current
from pursersd.errors import CentralError
from pursersd.seats.seat import Seat

QUEUE = 8
"""Pages kept for a waiter that does not take them; reading for it pauses then."""


@dataclass(frozen=True, slots=True)
class Page:
    """What one catchup brought for one waiter."""

    events: list[dict[str, Any]]
    next_cursor: int
    resynced: bool = False
    """The journal no longer had the rows after the waiter's cursor, or is another journal."""
    cued_at: float | None = None
    """When the first cue came that this answers (monotonic); None when there was none, as after a gap."""


@dataclass(slots=True)
class Marks:
    """Why a waiter must be read: which cues came since its last read was sent."""

    by_seat: bool = False
    by_journal: bool = False
    uncertain: bool = False
    """A seat cue may have been missed: the seat was not covered by the seat stream, or there was a gap."""
    cued_at: float | None = field(default=None, compare=False)
    """When the first of the cues came (monotonic)."""

    def __bool__(self) -> bool:
        return self.by_seat or self.by_journal or self.uncertain

    @property
    def is_whole(self) -> bool:
        """Whether no further cue of the event that these tell of is on its way, as far as can be told."""
        return self.uncertain or (self.by_seat and self.by_journal)

    def add(self, other: "Marks") -> None:
        """Take over the reasons of `other`."""
        self.by_seat |= other.by_seat
        self.by_journal |= other.by_journal
        self.uncertain |= other.uncertain
        times = [at for at in (self.cued_at, other.cued_at) if at is not None]
        self.cued_at = min(times, default=None)


class Bell:
    """Rung when something arrives for any of the waiters of one wait; one task listens to it."""

    def __init__(self) -> None:
        self._rung = anyio.Event()

    def ring(self) -> None:
        """Something arrived."""
        self._rung.set()

    async def wait(self) -> None:
        """Return at the next ring, or at once if it rang since the last return."""
        await self._rung.wait()
        self._rung = anyio.Event()


class Waiter:
    """State of one board of one wait. Its BoardFeed marks and feeds it, the wait takes from it.

    `cursor` is the committed one: it moves only when a page was fetched and put into the queue (RB-SEQ-002).
    """

    def __init__(self, seat: Seat, *, push: bool, bell: Bell | None = None) -> None:
        self.seat = seat
        self.push = push
        self.cursor = 0
        self.opened = False
        self.lingers = push
        """Whether its seat stays in the streams for a while after it."""
        self.uncovered = False
        """Whether the seat stream does not cover its seat, or not again yet: its cues may be missed until then."""
        self.is_foreign = False
        """Whether its cursor is of a journal that is gone: it goes on at the end of the present one."""
        self.failure: CentralError | None = None
        self.account: Account | None = current()
        """Who pays for what is read for it: whoever made it."""
        self.marks = Marks()
        self._pages: deque[Page] = deque()
        self._bell = bell or Bell()

    @property
    def is_due(self) -> bool:
        """Whether its BoardFeed should read for it now."""
        return self.opened and bool(self.marks) and self.failure is None and len(self._pages) < QUEUE

    def begin(self) -> None:
        """The entry catchup is about to be sent: what was cued before is covered by it."""
        self.marks = Marks()

    def open(self, cursor: int) -> None:
        """Open the gate: the history up to `cursor` has been dealt with, live pages follow (RB-FLG-001)."""
        self.cursor = cursor
        self.opened = True

    def mark(self, kind: Literal["seat", "journal", "gap"], *, uncertain: bool = False) -> None:
        """A cue, or a gap in the cues, concerns this waiter."""
        self.marks.by_seat |= kind == "seat"
        self.marks.by_journal |= kind == "journal"
        self.marks.uncertain |= uncertain or kind == "gap"
        if kind != "gap" and self.marks.cued_at is None:
            self.marks.cued_at = time.monotonic()

    def take_marks(self) -> Marks:
        """The reasons so far; cues that come later count for the next read."""
        taken, self.marks = self.marks, Marks()
        return taken

    def deliver(self, page: Page) -> None:
        """Queue a page and commit its cursor."""
        self.cursor = page.next_cursor
        self._pages.append(page)
        self._bell.ring()

    def fail(self, error: CentralError) -> None:
        """Reading for this waiter cannot go on."""
        self.failure = error
        self._bell.ring()

    @property
    def has_arrived(self) -> bool:
        """Whether there are pages to take, or the failure that ends them."""
        return bool(self._pages) or self.failure is not None

    async def arrived(self) -> None:
        """Wait until there are pages. Raises the failure when there is nothing left before it."""
        while not self._pages:
            if self.failure is not None:
                raise self.failure
            await self._bell.wait()

    def take(self) -> list[Page]:
        """The pages since the last call. Raises the failure when there is none left before it."""
        if not self._pages and self.failure is not None:
            raise self.failure
        taken = list(self._pages)
        self._pages.clear()
        return taken
