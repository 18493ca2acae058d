"""Callers of the feed on a model of Central, and what each of them must have been told in the end.

A chain is one caller: waits of one seat, one after the other, each from where the last one ended.
"""

from collections.abc import AsyncIterator
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
from unit.model_central import ModelBoard, ModelCentral, Read, Row
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


@dataclass(eq=False)
class Chain:
    """One caller that reads whatever the feed has for its seat, from the beginning of the journal on."""

    central: Central
    board: ModelBoard
    name: str
    push: bool
    pace: float
    tasks: TaskGroup
    moves: list[Move] = field(default_factory=list)
    waiter: Waiter | None = None
    _scope: anyio.CancelScope | None = None
    _ended: anyio.Event = field(default_factory=anyio.Event)

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
        seat = await self.central.seats.join(SeatRequest(self.board.name, self.name, "worker"))
        with self.central.feed.watch(seat, push=self.push) as waiter:
            await self.central.feed.ready(waiter)
            feed = self.central.feed.boards[self.board.name]
            waiter.begin()
            await self._enter(seat, feed)
            waiter.open(self.cursor)
            self.waiter = waiter
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

    async def _enter(self, seat: Seat, feed: BoardFeed) -> None:
        hidden = False
        try:
            async for page in feed.catchup.pages(seat, self.cursor):
                hidden |= page["scan_count"] > len(page["events"])
                self._move(position_after(page), page["events"], page["resync_required"])
        except CursorAhead as ahead:
            raise AssertionError("a cursor that Central gave lies ahead of the journal") from ahead
        await feed.confirm(seat, self.cursor, hidden=hidden)

    def _move(self, after: int, events: list[dict[str, Any]], resynced: bool) -> None:
        self.moves.append(Move(self.cursor, after, events, resynced, now()))

    # --- what it must have been told --------------------------------------------------------------------------------

    def check(self) -> None:
        """Everything that this seat sees came once, in order, and nothing else."""
        told = [event["seq"] for move in self.moves for event in move.events]
        assert told == sorted(set(told)), f"{self.name}: not once, in order: {told}"
        for move in self.moves:
            assert move.after >= move.before, f"{self.name}: moved back: {move}"
            for event in move.events:
                assert event == self.board.rows[event["seq"] - 1].event, f"{self.name}: an event was changed: {event}"
                assert move.before < event["seq"] <= move.after, f"{self.name}: an event of another page: {move}"
            if not move.resynced:
                for row in self.board.rows[move.before : move.after]:
                    self._check_row(row, move)

    def _check_row(self, row: Row, move: Move) -> None:
        """Whether the row was rightly told or rightly left out: by what Central showed to this seat when it was read."""
        is_told = any(event["seq"] == row.seq for event in move.events)
        shown = {row.seq in read.shows[self.agent] for read in self._reads_of(move)}
        assert shown, f"{self.name}: moved over {move} without a read"
        if is_told in shown:
            return
        assert is_told, f"{self.name}: row {row.seq} is missing: {row.event}"
        assert self._is_doubt(row, move), f"{self.name}: row {row.seq} is not for it: {row.event}"

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
        uri = agent_uri(self.board.name, self.agent)
        shared = max(read.at for read in self._reads_of(move))
        late = [cue for cue in self.board.cues if cue.uri == uri and cue.seq <= move.before and cue.at <= shared]
        return any(cue.at >= self._reading_since(cue.seq) for cue in late)

    def _reading_since(self, seq: int) -> float:
        """A moment before the read of this row began, and after the read before that one had been carried out."""
        at = next(index for index, move in enumerate(self.moves) if move.before < seq <= move.after)
        return min(read.at for read in self._reads_of(self.moves[at - 1])) if at else 0.0

    def check_rest(self) -> None:
        """Nothing is left for a caller that waits, and nobody would read for it."""
        waiter = self.waiter
        assert waiter is not None, f"{self.name}: does not wait"
        assert not waiter.marks, f"{self.name}: is left dirty: {waiter.marks}"
        assert not waiter.has_arrived, f"{self.name}: has pages left"
        left = self.board.visible(self.agent, self.cursor)
        assert not left, f"{self.name}: was not told of {left} after {self.cursor}"
        if self.push:
            assert self.board.is_live(self.agent), f"{self.name}: is not live"

    async def last(self) -> None:
        """Nothing more to ask."""
