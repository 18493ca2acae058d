"""What digests are made of, for all who follow boards with one credential: read when a cue comes, and never by the clock.

The journals are those of stream J, so that a follower is no sign of presence: its seat gets no offers for it (design, §5).
Pages are filtered by seat: each seat has a place of its own in each journal, the events are kept once (rules/digest_buffer).
"""

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import anyio

from pursersd.central.account import charged_to, current
from pursersd.central.pool import Pool
from pursersd.errors import (
    CentralError,
    Overloaded,
    ProtocolRefused,
    Unreachable,
)
from pursersd.feed import ticket_reads
from pursersd.feed.board import COALESCE, FIRST_RETRY, LAST_RETRY, TOUCH
from pursersd.feed.catchup import Catchup, CursorAhead
from pursersd.feed.feed import Feed
from pursersd.feed.place import Follower, Place
from pursersd.feed.registries import Registries
from pursersd.ids import journal_uri
from pursersd.rules.backoff import delays
from pursersd.rules.digest_buffer import Buffer, Event
from pursersd.rules.digest_tickets import Ticket, Tickets
from pursersd.rules.events import STATE_CHANGED, kind_of, ticket_of
from pursersd.rules.windows import LW_RESYNC
from pursersd.seats.seat import Seat, Seats

log = logging.getLogger(__name__)

FRESH_LIMIT = 10.0
"""Longest time that a digest waits for what has happened to be read, in seconds."""

DOWN_LIMIT = 1.0
"""The same while Central does not answer."""

PURPOSE = "digest"

PLACES = 256
"""Places kept that nobody follows any more; the one that was left first goes first, and is read from the start when
somebody comes back to it."""


class DigestFeed:
    """The events and tickets of one pool. `run()` reads; with nobody who follows it does nothing."""

    def __init__(
        self, pool: Pool, seats: Seats, feed: Callable[[], Feed], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.buffer = Buffer()
        self.tickets = Tickets()
        self._pool = pool
        self._seats = seats
        self._feed = feed
        self._clock = clock
        self._catchup = Catchup(pool, seats)
        self._places: dict[str, Place] = {}
        """By agent id, in which the board is."""
        self._followers: dict[Follower, tuple[str, dict[str, Place]]] = {}
        """The home board and the places of each."""
        self._registries = Registries(pool)
        self._refreshing = anyio.Lock()
        self._work = anyio.Event()
        self._changed = anyio.Event()

    def __repr__(self) -> str:
        return f"<DigestFeed {len(self._followers)} followers, {len(self._places)} places, {self.buffer!r}>"

    # --- who follows ------------------------------------------------------------------------------------------------

    @contextmanager
    def follow(self, follower: Follower, home: str, seats: Sequence[Seat]) -> Iterator[dict[str, Place]]:
        """Read the boards of these seats until the block ends; gives the places by board. One who follows again goes on
        where its seat was: the events are kept as long as the Central is open."""
        places = {}
        for seat in seats:
            place = self._places.setdefault(seat.agent_id, Place(seat, self._clock()))
            place.seat = seat
            place.is_dirty |= not place.followers  # nobody listened for it
            place.followers[follower] = current()
            places[seat.board] = place
        self._followers[follower] = home, places
        self._hold()
        self._work.set()
        try:
            yield places
        finally:
            del self._followers[follower]
            for place in places.values():
                self._leave(place, follower)
            self._hold()

    def close(self) -> None:
        """The Central is closed."""
        for follower in self._followers:
            follower.ended()

    def listens(self, board: str) -> bool:
        """Whether everything that happens on the board is told to us."""
        return journal_uri(board) in self._feed().journals.covered

    @property
    def trouble(self) -> CentralError | None:
        """Why not."""
        return self._pool.last_error or self._feed().journals.trouble

    @property
    def reconnects(self) -> int:
        """How often the stream of the journals was lost."""
        return self._feed().journals.reconnects

    # --- what streams say -------------------------------------------------------------------------------------------

    def journal_cued(self, board: str) -> None:
        """See feed.JournalReader."""
        for place in self._places.values():
            if place.seat.board == board and place.followers:
                place.is_dirty = True
                self._work.set()

    def streams_changed(self) -> None:
        """See feed.JournalReader."""
        self._tell()

    def journals_replaced(self) -> None:
        """See feed.JournalReader."""
        for board in {place.seat.board for place in self._places.values()}:
            self._begin_again(board)

    def journal_renumbered(self, board: str) -> None:
        """See feed.JournalReader."""
        if any(place.seat.board == board for place in self._places.values()):
            self._begin_again(board)

    # --- what digests ask -------------------------------------------------------------------------------------------

    async def caught_up(self, places: Iterable[Place]) -> bool:
        """Return when all that has happened by now has been read for these, or cannot be, or it takes too long; whether it
        has, and what happens next will be."""
        needed: dict[Place, int] = {}
        for place in places:
            place.is_dirty |= place.trouble is not None or not self.listens(place.seat.board)
            # A cue that came while it is being read is for the read after this one.
            needed[place] = place.reads + place.is_being_read + place.is_dirty
        self._work.set()
        self._pool.reach.hurry()
        self._feed().journals.retry()
        with anyio.move_on_after(FRESH_LIMIT if self._pool.reach.is_up else DOWN_LIMIT):
            while not all(
                self._is_settled(place.seat.board) and place.reads >= reads for place, reads in needed.items()
            ):
                await self._changed.wait()
        return all(
            place.trouble is None and place.reads >= reads and self.listens(place.seat.board)
            for place, reads in needed.items()
        )

    async def confirm(self, places: Iterable[Place]) -> None:
        """Make sure that the seats are told of what happens (see Seats.confirm). Raises CentralError."""
        for place in [place for place in places if place.has_hidden]:
            place.has_hidden = False
            await self._seats.confirm(place.seat, place.cursor, hidden=True)

    def events(self, places: Mapping[str, Place], since: Mapping[str, int]) -> list[Event]:
        """What these have seen after these places in their journals, in the order in which it happened."""
        return self.buffer.events(_readers(places), since)

    def seen_tickets(self, places: Mapping[str, Place]) -> list[tuple[str, str, Ticket]]:
        """The tickets to which these have seen something happen, with board and id, as they were when they were read last."""
        return list(self.tickets.seen(_readers(places)))

    def missing(self, place: Place, since: int) -> int:
        """Up to which place in the journal events after `since` may be missing in what is kept."""
        return max(self.buffer.dropped(place.seat.board), place.missing if since else 0)

    async def registry(self, home: str) -> Mapping[str, object]:
        """The home board's registry; read again only when something hidden, or a change of state, has happened there.

        Raises RegistryError and CentralError.
        """
        return await self._registries.get(home, is_told=self.listens(home))

    async def refresh(self, boards: Iterable[str]) -> None:
        """Read the tickets of these boards again to which something has happened. Raises CentralError."""
        async with self._refreshing:  # who comes meanwhile finds them fresh
            for board in boards:
                stale = self.tickets.stale(board)
                found = await ticket_reads.read(self._pool, board, list(stale))
                for ticket_id, changes in stale.items():
                    self.tickets.read(board, ticket_id, found.get(ticket_id), changes)

    # --- the loop ---------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read for whoever follows, until cancelled."""
        pauses = _retries()
        while True:
            await self._wait_for_work()
            if await self._round():
                pauses = _retries()
                continue
            await anyio.sleep(next(pauses))
            await self._pool.reach.back()
            self._work.set()

    async def _wait_for_work(self) -> None:
        touches = [place.touched_at + TOUCH for place in self._places.values() if place.followers]
        with anyio.move_on_after(max(0.0, min(touches) - self._clock()) if touches else None):
            await self._work.wait()
            await anyio.sleep(COALESCE)
        self._work = anyio.Event()

    async def _round(self) -> bool:
        """Read what must be read, then tell the followers. False if Central did not answer."""
        read: set[Place] = set()
        homes: set[str] = set()
        due = [place for place in self._places.values() if place.followers]
        try:
            for place in due:
                with charged_to(place.account):
                    await self._touch(place)
                    if place.is_dirty and await self._read(place, homes):
                        read.add(place)
        except (Unreachable, Overloaded) as error:
            log.info("digests: reading again later: %s", error)
            for place in due:
                if place.is_dirty:
                    place.trouble = error
                    place.reads += 1
            return False
        finally:
            self._registries.forget(homes)
            for follower, (home, places) in list(self._followers.items()):
                if home in homes:
                    follower.registry_changed()
                if boards := frozenset(board for board, place in places.items() if place in read):
                    follower.news(boards)
            self._tell()
        return True

    async def _touch(self, place: Place) -> None:
        """Join a seat that only follows once in a while: Central retires it otherwise (central.md §5)."""
        if self._clock() - place.touched_at >= TOUCH:
            place.touched_at = self._clock()
            try:
                place.seat = await self._seats.keepalive(place.seat)
            except (Unreachable, Overloaded):
                raise
            except CentralError as error:
                log.info("%s on %s: keepalive join failed: %s", place.seat.agent_name, place.seat.board, error)

    async def _read(self, place: Place, homes: set[str]) -> bool:
        """Read on to the end of the journal; whether there was something new. Boards that may have another registry now
        are added to `homes`."""
        place.is_dirty, place.is_being_read = False, True  # a cue that comes from now on is of what this may not find
        grew = False
        try:
            while True:
                before = place.cursor
                try:
                    page = await self._catchup.page(place.seat, before, background=True)
                except CursorAhead as ahead:
                    log.warning("board %s: its journal ends at %d now, before our place", place.seat.board, ahead.head)
                    self._begin_again(place.seat.board)
                    homes.add(place.seat.board)
                    continue
                if place.cursor != before:
                    continue  # the journal was replaced meanwhile
                grew |= self._take(place, page, homes)
                goes_on = page.get("has_more") or page.get("resync_required")
                if goes_on and place.cursor == before:
                    raise ProtocolRefused(
                        f"Central answered board_catchup with a page that does not lead on from {before}"
                    )
                if not goes_on:
                    place.trouble = None
                    return grew
        except (Unreachable, Overloaded):
            place.is_dirty = True
            raise
        except CentralError as error:
            place.trouble = error
            return grew
        except BaseException:
            place.is_dirty = True
            raise
        finally:
            place.is_being_read = False
            place.reads += 1

    def _take(self, place: Place, page: Mapping[str, Any], homes: set[str]) -> bool:
        board, reader = place.seat.board, place.seat.agent_id
        if page.get("resync_required"):
            # What is left of the journal begins there; the reset cursor is its end.
            compacted = int(page.get("compacted_through") or page["reset_cursor"])
            if place.cursor:
                self._pool.windows.opened(
                    LW_RESYNC, f"a digest of {place.seat.agent_name} on {board}: up to {compacted}"
                )
            place.missing = compacted
            place.cursor = compacted if compacted > place.cursor else int(page["reset_cursor"])
            homes.add(board)
            return True
        place.cursor = max(place.cursor, int(page["next_cursor"]))
        events = page["events"]
        is_partial = page["scan_count"] > len(events)
        place.has_hidden |= is_partial
        if is_partial or any(kind_of(event) == STATE_CHANGED for event in events):
            homes.add(board)  # a change of the registry is hidden from most seats
        new = self.buffer.add(board, reader, events)
        for event in new:
            if ticket_id := ticket_of(event):
                self.tickets.changed(board, ticket_id, reader)
        if new:
            place.last_event_at = self._pool.central_time
        return bool(new)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _is_settled(self, board: str) -> bool:
        """Whether it is known if the board's cues are delivered."""
        uri, journals = journal_uri(board), self._feed().journals
        return uri in journals.covered or uri in journals.denied or journals.trouble is not None

    def _begin_again(self, board: str) -> None:
        """The board's journal is another one, or was set back: what was read of it means nothing."""
        self._pool.windows.opened(LW_RESYNC, f"digests of {board} begin again")
        self.buffer.forget(board)
        self.tickets.forget(board)
        for place in self._places.values():
            if place.seat.board == board:
                place.cursor, place.missing, place.is_dirty = 0, 0, True
        self._work.set()

    def _hold(self) -> None:
        boards = frozenset(place.seat.board for place in self._places.values() if place.followers)
        self._feed().hold(boards, PURPOSE)

    def _leave(self, place: Place, follower: Follower) -> None:
        del place.followers[follower]
        if place.followers or self._places.get(place.seat.agent_id) is not place:
            return
        self._places[place.seat.agent_id] = self._places.pop(place.seat.agent_id)
        left = [agent for agent, known in self._places.items() if not known.followers]
        for agent in left[:-PLACES]:
            del self._places[agent]

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def _readers(places: Mapping[str, Place]) -> dict[str, str]:
    return {board: place.seat.agent_id for board, place in places.items()}


def _retries() -> Iterator[float]:
    return delays(FIRST_RETRY, LAST_RETRY, random.random)
