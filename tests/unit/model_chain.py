"""Callers of the feed on a model of Central, and what must be true of each of them.

A chain is one caller: waits of one seat, one after the other, each from where the last one ended. The `check_…` methods are
the parts of what the feed promises; they raise AssertionError.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import anyio
from anyio.abc import TaskGroup

from pursersd.central import pool as pools
from pursersd.central.pool import Pool, PoolKey
from pursersd.errors import Overloaded, Unreachable
from pursersd.feed.board import BoardFeed
from pursersd.feed.catchup import CursorAhead, position_after
from pursersd.feed.centrals import Central
from pursersd.feed.feed import Feed
from pursersd.feed.waiter import Waiter
from pursersd.ids import agent_uri
from pursersd.seats.seat import Seat, SeatRequest, Seats
from pursersd.secret import Secret
from unit.model_board import ModelBoard, Read, Row
from unit.model_central import ModelCentral
from unit.virtual_time import now


@asynccontextmanager
async def serving(model: ModelCentral) -> AsyncIterator[Central]:
    """The daemon's side of a Central: a real pool, real seats and a real feed on the model."""
    with patch.object(pools, "CentralClient", lambda *_: model):
        pool = Pool(PoolKey("http://model", Secret("token"), None))
    seats = Seats(pool)
    feed = Feed(pool, seats, clock=now)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(feed.run)
        await feed.started.wait()
        yield Central(pool, seats, feed, tasks.cancel_scope)
        tasks.cancel_scope.cancel()


@dataclass(frozen=True, slots=True)
class Move:
    """A page that a caller took: from where to where, and what it told."""

    before: int
    after: int
    events: list[dict[str, Any]]
    resynced: bool
    at: float


@dataclass(slots=True)
class Span:
    """From when to when a wait had its gate open."""

    start: float
    end: float = float("inf")


@dataclass(eq=False)
class Chain:
    """One caller that reads whatever the feed has for its seat, from the beginning of the journal on."""

    central: Central
    model: ModelCentral
    where: str
    name: str
    push: bool
    pace: float
    """Seconds that it takes before it looks at what arrived."""
    tasks: TaskGroup
    moves: list[Move] = field(default_factory=list)
    waits: list[Span] = field(default_factory=list)
    waiter: Waiter | None = None
    _scope: anyio.CancelScope | None = None
    _ended: anyio.Event = field(default_factory=anyio.Event)

    @property
    def board(self) -> ModelBoard:
        return self.model.boards[self.where]

    @property
    def agent(self) -> str:
        return self.board.agent(self.name)

    @property
    def cursor(self) -> int:
        """What the caller would go on from."""
        return self.moves[-1].after if self.moves else 0

    @property
    def is_running(self) -> bool:
        return self._scope is not None

    def start(self) -> None:
        """Wait, if it does not."""
        if self._scope is None:
            self._scope, self._ended = anyio.CancelScope(), anyio.Event()
            self.tasks.start_soon(self._run, self._scope)

    async def stop(self) -> None:
        """End the wait in progress; what was read for it and not taken is forgotten."""
        if self._scope is not None:
            self._scope.cancel()
            await self._ended.wait()

    async def _run(self, scope: anyio.CancelScope) -> None:
        with scope:
            while True:
                try:
                    await self._wait()
                except (Unreachable, Overloaded):
                    await anyio.sleep(0.5)
        self._scope = None
        self._ended.set()

    async def _wait(self) -> None:
        seat = await self.central.seats.join(SeatRequest(self.where, self.name, "worker"))
        with self.central.feed.watch(seat, push=self.push) as waiter:
            await self.central.feed.ready(waiter)
            feed = self.central.feed.boards[self.where]
            waiter.begin()
            await self._enter(seat, feed)
            waiter.open(self.cursor)
            self.waiter = waiter
            self.waits.append(Span(now()))
            feed.nudge()
            try:
                while True:
                    await waiter.arrived()
                    await anyio.sleep(self.pace)
                    for page in waiter.take():
                        self._move(page.next_cursor, page.events, page.resynced)
                    feed.nudge()
            finally:
                self.waiter = None
                self.waits[-1].end = now()

    async def _enter(self, seat: Seat, feed: BoardFeed) -> None:
        hidden = False
        try:
            async for page in feed.catchup.pages(seat, self.cursor):
                hidden |= page["scan_count"] > len(page["events"]) or page["resync_required"]
                self._move(position_after(page), page["events"], page["resync_required"])
        except CursorAhead as ahead:
            raise AssertionError("a cursor that Central gave lies ahead of the journal") from ahead
        await feed.confirm(seat, self.cursor, hidden=hidden)

    def _move(self, after: int, events: list[dict[str, Any]], resynced: bool) -> None:
        self.moves.append(Move(self.cursor, after, events, resynced, now()))

    # --- what the feed promises -------------------------------------------------------------------------------------

    def check_order(self) -> None:
        """Every event came once, in order, as Central has it, and in the page that moved the cursor over it."""
        told = [event["seq"] for move in self.moves for event in move.events]
        assert told == sorted(set(told)), f"{self.name}: not once, in order: {told}"
        for move in self.moves:
            assert move.after >= move.before, f"{self.name}: moved back: {move}"
            ends = {read.reset for read in self.board.reads if read.cursor == move.before}
            assert move.after in ends or not move.resynced, f"{self.name}: not the end of the journal: {move}"
            for event in move.events:
                assert event == self.board.rows[event["seq"] - 1].event, f"{self.name}: an event was changed: {event}"
                assert move.before < event["seq"] <= move.after, f"{self.name}: an event of another page: {move}"

    def check_complete(self) -> None:
        """No event is missing that Central showed to this seat."""
        for row, move, shown in self._rows():
            is_told = any(event["seq"] == row.seq for event in move.events)
            assert is_told or False in shown, f"{self.name}: row {row.seq} is missing: {row.event}"

    def check_private(self) -> None:
        """No event was told that Central hid from this seat."""
        for row, move, shown in self._rows():
            is_told = any(event["seq"] == row.seq for event in move.events)
            allowed = not is_told or True in shown or self._is_doubt(row, move)
            assert allowed, f"{self.name}: row {row.seq} is not for it: {row.event}"

    def check_rest(self) -> None:
        """Nothing is left for a caller that waits, and nobody would read for it."""
        if not self.is_running:
            return
        waiter = self.waiter
        assert waiter is not None, f"{self.name}: does not wait"
        assert not waiter.marks, f"{self.name}: is left dirty: {waiter.marks}"
        assert not waiter.has_arrived, f"{self.name}: has pages left"
        left = self.board.visible(self.agent, self.cursor)
        assert not left, f"{self.name}: was not told of {left} after {self.cursor}"

    def check_live(self) -> None:
        """Central takes the seat of a pushed wait for a member that listens: events and offers go to it."""
        if self.is_running and self.push:
            assert self.board.active[self.agent], f"{self.name}: has left the board"
            assert self.model.is_live(self.where, self.agent), f"{self.name}: is not live"

    def check_time(self, pushed_s: float, polled_s: float) -> None:
        """What happened during a wait was told in that time."""
        limit = pushed_s if self.push else polled_s
        for move in self.moves:
            for event in move.events:
                at = self.board.rows[event["seq"] - 1].at
                took = move.at - at
                waited = any(span.start <= at and at + limit < span.end for span in self.waits)
                assert took <= limit or not waited, f"{self.name}: told {took:.3f} s after it happened: {event}"

    def _rows(self) -> Iterator[tuple[Row, Move, set[bool]]]:
        """Each row that it moved over, how, and whether Central showed it to this seat in the read that it came from.

        Which read that was is not known: there are both answers if the row changed its visibility between two of them.
        """
        for move in self.moves:
            if move.resynced:
                continue
            reads = self._reads_of(move)
            for row in self.board.rows[move.before : move.after]:
                assert reads, f"{self.name}: moved over {move} without a read"
                yield row, move, {row.seq in read.shows[self.agent] for read in reads}

    def _reads_of(self, move: Move) -> list[Read]:
        """The reads that may have brought a page."""
        return [
            read
            for read in self.board.reads
            if read.cursor == move.before and read.next_cursor == move.after and read.at <= move.at
        ]

    def _is_doubt(self, row: Row, move: Move) -> bool:
        """The one doubt of rules/sharing.py: a cue for an older row came when that row was about to be read already.

        Then the only row of another seat's page looks like the row that the cue was for. It is never the seat's own act.
        """
        if row.actor == self.agent or move.after != move.before + 1:
            return False
        uri = agent_uri(self.where, self.agent)
        shared = max(read.at for read in self._reads_of(move))
        late = [cue for cue in self.model.cues if cue.uri == uri and cue.seq <= move.before and cue.at <= shared]
        return any(cue.at >= self._reading_since(cue.seq) for cue in late)

    def _reading_since(self, seq: int) -> float:
        """A moment before the read of this row began, and after the read before that one had been carried out."""
        at = next(index for index, move in enumerate(self.moves) if move.before < seq <= move.after)
        return min(read.at for read in self._reads_of(self.moves[at - 1])) if at else 0.0

    async def last(self) -> None:
        """Nothing more to ask."""
