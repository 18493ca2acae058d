"""The feed of one board: cues make waiters dirty, reads make them clean, one read serves many where the rule allows it."""

import logging
import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import anyio

from pursersd.central.account import charged_to
from pursersd.central.pool import Pool
from pursersd.errors import CentralError, Overloaded, Unreachable
from pursersd.feed.catchup import Catchup, CursorAhead, position_after
from pursersd.feed.doubts import Doubts
from pursersd.feed.reads import SharedReads
from pursersd.feed.waiter import Marks, Page, Waiter
from pursersd.rules import sharing
from pursersd.rules.awards import Awards
from pursersd.rules.backoff import delays
from pursersd.rules.journals import Journal
from pursersd.rules.windows import LW_RESYNC
from pursersd.seats.seat import Seat, Seats
from pursersd.windows import Windows

log = logging.getLogger(__name__)

COALESCE = 0.004
"""Longest time in seconds between the first cue and the read: the cues of one event arrive on two streams, one after the
other."""

LOOKS = 8
"""How often in that time it is looked whether they are all there."""

POLL = 2.0
"""Seconds between reads of a board that has no stream (bridge.md §2.1)."""

SWEEP = 60.0
"""Seconds between keepalive joins of a board on which somebody waits: Central notices expired leases only then."""

TOUCH = 6 * 3600.0
"""Seconds in which each waiting seat is joined once: Central retires one that only listens, after a day at the earliest
(`stale_after_days`)."""

FIRST_RETRY, LAST_RETRY = 0.2, 5.0
"""Seconds between reads that Central did not answer."""


class BoardFeed:
    """All waiters of one board of one pool. `run()` and `sweep()` are owned by the pool's feed."""

    def __init__(
        self,
        pool: Pool,
        seats: Seats,
        board: str,
        *,
        catchup: Catchup | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.board = board
        self.reads = SharedReads(pool, board, seats.observer, clock=clock)
        self.catchup = catchup or Catchup(pool, seats)
        self.waiters: list[Waiter] = []
        self._by_seat: dict[str, list[Waiter]] = {}
        """The same by the URI of their seats: an event for two hundred seats cues each of them."""
        self.awards = Awards(clock=clock)
        """Which of several waits on one seat was woken by work that only one can take."""
        self.poll_reason: str | None = None
        """Why this board has no stream although one is wanted; None while it has one or is about to."""
        self.is_covered = False
        """Whether the journal stream delivers this board's cues now."""
        self.settled = anyio.Event()
        """Set once the journal stream has covered or refused the board, or Central turned out to be unreachable."""
        self._pool = pool
        self._seats = seats
        self._doubts = Doubts(board, seats)
        self._work = anyio.Event()
        self._in_round = False
        self._called = False
        """Whether a seat was cued since the round began."""
        self._next_poll = 0.0
        """When, on the event loop's clock, the polled waiters are read again."""

    # --- what the streams say ---------------------------------------------------------------------------------------

    def journal_cued(self, seats_covered: frozenset[str]) -> None:
        """Something was written to the board's journal."""
        self.reads.cued()
        for waiter in self.waiters:
            waiter.mark("journal", uncertain=waiter.seat.uri not in seats_covered)
        self._work.set()

    def seat_cued(self, uri: str) -> None:
        """The seat with this URI is a recipient of something."""
        for waiter in self._by_seat.get(uri, ()):
            waiter.mark("seat")
            self._called |= waiter.is_due
        self._work.set()

    def gap(self) -> None:
        """Cues may have been missed for everybody on this board."""
        self.reads.cued()
        for waiter in self.waiters:
            waiter.mark("gap")
        self._work.set()

    def replaced(self) -> None:
        """The journal is another one now: nobody's place in it means anything (RB-RPL-001)."""
        self.reads.cued()
        for waiter in self.waiters:
            waiter.is_foreign = True
            waiter.mark("gap")
        self._work.set()

    def seats_changed(self, gained: frozenset[str], lost: frozenset[str]) -> None:
        """The seat stream covers other seats now. One that it gained may have been cued in vain before.

        The journal cue of that event may be on its way still: when it comes it would look as if the seat was not meant.
        """
        for waiter in self.waiters:
            if waiter.seat.uri in lost:
                waiter.uncovered = True
            elif waiter.uncovered and waiter.seat.uri in gained:
                waiter.uncovered = False
                waiter.mark("gap")

    # --- what waits do ----------------------------------------------------------------------------------------------

    def add(self, waiter: Waiter) -> None:
        """Feed this waiter from now on."""
        self.waiters.append(waiter)
        self._by_seat.setdefault(waiter.seat.uri, []).append(waiter)
        self._work.set()

    def remove(self, waiter: Waiter) -> None:
        """Stop feeding this waiter."""
        self.waiters.remove(waiter)
        sharing = self._by_seat[waiter.seat.uri]
        sharing.remove(waiter)
        self._doubts.told(waiter.seat.agent_id, waiter.marks)  # nobody will read for it any more
        if not sharing:
            del self._by_seat[waiter.seat.uri]

    def nudge(self) -> None:
        """A waiter opened its gate or took pages: look again who is due."""
        self._work.set()

    async def reachable(self) -> None:
        """Return when Central answers."""
        await self._pool.reach.back()

    @property
    def windows(self) -> Windows:
        """Where it is counted when something may have been lost."""
        return self._pool.windows

    @property
    def central_time(self) -> float:
        """What time it is at Central, in seconds since 1970."""
        return self._pool.central_time

    @property
    def journal(self) -> Journal:
        """Which journal the board's is now, as far as is known."""
        return self._pool.instance, self._seats.generation(self.board)

    async def place_in_another(self, waiter: Waiter) -> int:
        """Where a waiter goes on whose place was in a journal that is gone: at the end of the present one."""
        head = await self.catchup.head(waiter.seat)
        waiter.is_foreign = False
        waiter.seat = replace(waiter.seat, generation=self._seats.generation(self.board))
        return head

    async def confirm(self, seat: Seat, head: int, *, hidden: bool) -> None:
        """See Seats.confirm. What it leaves open is found out by one look at the board, for all who enter at the time."""
        if not await self._seats.confirm(seat, head, hidden=hidden):
            self._doubts.add(seat.agent_id)
            self._work.set()

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to read for anybody now."""
        return not self._in_round and not self._doubts and not any(waiter.is_due for waiter in self.waiters)

    def polls(self, waiter: Waiter) -> bool:
        """Whether this waiter is read by the clock and not by cues."""
        return not waiter.push or self.poll_reason is not None

    # --- the loops --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read for whoever is due, until cancelled."""
        pauses = _retries()
        while True:
            await self._wait_for_work()
            try:
                await self._round()
                pauses = _retries()
            except (Unreachable, Overloaded) as error:
                log.info("board %s: reading again later: %s", self.board, error)
                await anyio.sleep(next(pauses))
                await self._pool.reach.back()
                self._work.set()

    async def sweep(self) -> None:
        """While anybody waits here, join once in a while, each time the seat whose last join is furthest back: no
        expired lease goes unnoticed for long (central.md §7), and no seat that only listens goes stale (central.md §5).
        Those that may have left without a cue are looked for, too.
        """
        while True:
            await anyio.sleep(sweep_pause_s(len(self._by_seat)) * random.uniform(0.75, 1.25))
            if self._doubts.spread():
                self._work.set()
            observer = self._seats.observer
            seats = [waiter.seat for waiter in self.waiters if observer.may_join(waiter.seat.agent_id)]
            if seats:
                await self._keep_alive(self._seats.longest_untouched(seats))

    async def _keep_alive(self, seat: Seat) -> None:
        served = self._by_seat.get(seat.uri)
        try:
            with charged_to(served[0].account if served else None):
                await self._seats.keepalive(seat)
        except CentralError as error:
            log.info("board %s: keepalive join failed: %s", self.board, error)

    async def _wait_for_work(self) -> None:
        """Until somebody may be due: by a cue, by what a wait did, or by the clock for those that are polled."""
        polled = any(self.polls(w) for w in self.waiters)
        with anyio.CancelScope(deadline=self._next_poll if polled else math.inf):
            await self._work.wait()
            await self._let_cues_come()
        self._work = anyio.Event()
        # Others that work more often must not put off the polling: it has a time of its own.
        if polled and anyio.current_time() < self._next_poll:
            return
        self._next_poll = anyio.current_time() + POLL
        for waiter in self.waiters if polled else ():
            if self.polls(waiter):
                waiter.mark("gap")

    async def _let_cues_come(self) -> None:
        """Until each waiter has both cues of an event, and no longer than COALESCE: most events are not for everybody."""
        for _ in range(LOOKS):
            if all(waiter.marks.is_whole for waiter in self.waiters if waiter.opened):
                return
            await anyio.sleep(COALESCE / LOOKS)

    async def _round(self) -> None:
        """Read for all who are due, one for many where the page may be shared: first for those that were cued as seats.

        Who was only told that something was written reads in vain most of the time, and two hundred such reads take
        seconds: when a seat is cued meanwhile, those that are left wait for the next round. Each round reads for one.
        """
        due = sorted((w for w in self.waiters if w.is_due), key=lambda w: (not w.marks.by_seat, w.cursor))
        marks = {w: w.take_marks() for w in due}
        shown: dict[int, sharing.Rows] = {}
        self._in_round, self._called = True, False
        try:
            for reader in due:
                if reader in marks:
                    was_called = marks[reader].by_seat
                    await self._serve(reader, marks, shown)
                    if self._called and not was_called:
                        break
            await self._doubts.resolve(self.waiters, self.reads, live=self.is_covered)
        finally:
            for waiter, taken in marks.items():  # not read because of others, an error or the end of the feed
                waiter.marks.add(taken)
            self._in_round = False

    async def _serve(self, reader: Waiter, marks: dict[Waiter, Marks], shown: dict[int, sharing.Rows]) -> None:
        """Read for one of those that are due, and settle with its page whom else it settles.

        `shown` is what the pages of this round have shown so far, by the cursor from which they were read.
        """
        if reader not in self.waiters:
            del marks[reader]
            return
        start = reader.cursor
        with charged_to(reader.account):
            page = await self._read(reader, marks[reader])
        del marks[reader]
        if page is None:
            return
        rows = shown.setdefault(start, sharing.Rows(start, page))
        rows.add(page)
        for other in [waiter for waiter in marks if waiter.cursor == start and not waiter.is_foreign]:
            self._settle(page, rows, reader, other, marks)

    def _settle(
        self, page: dict[str, Any], rows: sharing.Rows, reader: Waiter, other: Waiter, marks: dict[Waiter, Marks]
    ) -> None:
        """Apply a page read for `reader` to `other` at the same cursor, if the rule allows; else its marks stay."""
        if other.seat.agent_id == reader.seat.agent_id:
            _deliver(other, page, marks[other].cued_at)
            del marks[other]
            return
        if marks[other].uncertain and page["scan_count"]:
            return
        if (seen := rows.seen_by(other.seat.agent_id)) is not None:
            page = {**page, "events": seen, "scan_count": len(seen), "next_cursor": rows.end}
            _deliver(other, page, marks[other].cued_at)
            self._note_doubt(other, page, marks.pop(other))
            return
        match sharing.verdict(page, other.seat.agent_id, marks[other].by_seat):
            case "deliver":
                _deliver(other, page, marks[other].cued_at)
            case "nothing" if marks[other].by_seat and page["scan_count"]:
                return  # cued for its own act: only its own page tells that nothing else was meant
            case "read":
                return
        self._note_doubt(other, page, marks.pop(other))

    async def _read(self, waiter: Waiter, marks: Marks) -> dict[str, Any] | None:
        """Fetch all pages after the waiter's cursor and queue them; returns the page if it was the only one."""
        first: dict[str, Any] | None = None
        count = 0
        try:
            if waiter.is_foreign:
                self._jump(waiter, await self.place_in_another(waiter))
                return None
            async for page in self.catchup.pages(waiter.seat, waiter.cursor, background=True):
                count += 1
                first = page
                _deliver(waiter, page, marks.cued_at)
                self._note_doubt(waiter, page, marks)
                if page.get("resync_required"):
                    where = f"{waiter.seat.agent_name} on {self.board} goes on at {page['reset_cursor']}"
                    self._pool.windows.opened(LW_RESYNC, where)
        except CursorAhead as ahead:
            self._jump(waiter, ahead.head)
            waiter.mark("gap")
            self._work.set()
            return None
        except (Unreachable, Overloaded):
            raise
        except CentralError as error:
            waiter.fail(error)
            return None
        return first if count == 1 else None

    def _jump(self, waiter: Waiter, head: int) -> None:
        """Go on at the end of the journal: what lies before it cannot be told from what was seen in another one."""
        self._doubts.missed(waiter.seat.agent_id)
        waiter.deliver(Page([], head, resynced=True))
        self._pool.windows.opened(LW_RESYNC, f"{waiter.seat.agent_name} on {self.board} goes on at {head}")

    def _note_doubt(self, waiter: Waiter, page: dict[str, Any], marks: Marks) -> None:
        seat = waiter.seat.agent_id
        is_own = any(event.get("actor") == seat for event in page["events"])  # of another's page: hidden from this one
        if page["scan_count"] > len(page["events"]) or is_own or page.get("resync_required"):
            self._doubts.missed(seat)
        self._doubts.told(seat, marks)


def sweep_pause_s(seats: int) -> float:
    """Seconds between two keepalive joins of a board where so many seats wait: each gets its turn within TOUCH."""
    return min(SWEEP, TOUCH / max(1, seats))


def _deliver(waiter: Waiter, page: dict[str, Any], cued_at: float | None) -> None:
    """Queue a page that moves the cursor or brings events; an empty one at the same place is no news."""
    after = position_after(page)
    resynced = bool(page.get("resync_required"))
    if page["events"] or resynced:
        waiter.deliver(Page(page["events"], after, resynced, cued_at))
    elif after != waiter.cursor:
        waiter.deliver(Page([], after))


def _retries() -> Iterator[float]:
    return delays(FIRST_RETRY, LAST_RETRY, random.random)
