"""The feed of one pool: two streams for all its waiters (design: J carries board journals, S carries seats)."""

import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from pursersd.central.client import Cues
from pursersd.central.pool import Pool
from pursersd.central.streams import KeptStream
from pursersd.errors import CentralError, Overloaded, Unreachable
from pursersd.feed.board import BoardFeed
from pursersd.feed.catchup import Catchup
from pursersd.feed.waiter import Bell, Waiter
from pursersd.ids import journal_uri
from pursersd.log import concerning
from pursersd.rules.windows import LW_OVERFLOW, LW_PRESENCE
from pursersd.seats.seat import Seat, Seats

log = logging.getLogger(__name__)

LINGER = 60.0
"""Seconds that a seat stays in S and its board in J after its last wait ended, so that re-arming costs nothing."""

SETTLE_JOURNALS = 0.005
SETTLE_SEATS = 0.05
"""Seconds in which several changed wishes become one new stream."""

READY_TIMEOUT = 5.0
"""Longest time that an entry waits for its board's stream; afterwards the stream's arrival causes one more read."""


KNOCK = 75.0
"""Seconds without any answer of Central after which we ask whether it is there, as long as a stream is open.

Never sooner than the keepalive join of a board on which somebody waits (feed/board.py), so that idling costs no more.
"""


class JournalReader(Protocol):
    """Somebody who reads journals without a wait."""

    def journal_cued(self, board: str) -> None:
        """Something was written to the board's journal, or cues may have been missed."""

    def streams_changed(self) -> None:
        """A board's cues may be delivered now, or no longer."""

    def journals_replaced(self) -> None:
        """Another Central answers: its journals are others."""

    def journal_renumbered(self, board: str) -> None:
        """Central numbers the board's journal anew: it is another one, too."""


class Feed:
    """Waiters of one pool and the streams that wake them. `run()` owns every task of it."""

    def __init__(self, pool: Pool, seats: Seats, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.journals = KeptStream(
            "J", self._listen, self, overlap=True, settle=SETTLE_JOURNALS, reachable=pool.reach.back, clock=clock
        )
        self.seats = KeptStream(
            "S", pool.listen, self, overlap=False, settle=SETTLE_SEATS, reachable=pool.reach.back, clock=clock
        )
        self.boards: dict[str, BoardFeed] = {}
        self.started = anyio.Event()
        """Set once `run()` can take waiters."""
        self.holds: dict[str, frozenset[str]] = {}
        """Boards whose cues are wanted although nobody waits there, by what they are wanted for."""
        self.reader: JournalReader | None = None
        """Who is told of all cues of journals beside the waiters."""
        self._pool = pool
        self._seats = seats
        self._catchup = Catchup(pool, seats)
        """Outlives the boards: an acknowledgement may still run when nobody waits on its board any more."""
        self._clock = clock
        self._overflows = 0
        self._identified = -1
        """The loss after which we looked last who answers; -1: nobody has told us since whether it is another one."""
        self._lingering: dict[Seat, float] = {}
        self._linger_changed = anyio.Event()
        self._tasks: TaskGroup | None = None
        self._scopes: dict[str, anyio.CancelScope] = {}
        pool.on_connect_refused = self._let_go
        seats.on_renumbered = self._renumbered

    async def run(self) -> None:
        """Keep the streams and the board feeds until cancelled."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self.started.set()
            tasks.start_soon(self.journals.run)
            tasks.start_soon(self.seats.run)
            tasks.start_soon(self._end_lingering)
            tasks.start_soon(self._knock)

    @contextmanager
    def watch(self, seat: Seat, *, push: bool, bell: Bell | None = None) -> Iterator[Waiter]:
        """A waiter of `seat`, fed until the block ends. With `push` false it is polled and needs no stream.

        Waiters of one wait share a `bell`, so that one task can wait for all of them.
        """
        board = self._board(seat.board)
        waiter = Waiter(seat, push=push, bell=bell)
        waiter.uncovered = seat.uri not in self.seats.covered
        board.add(waiter)
        if push:  # one that polls is no reason to take the seat out of the streams
            self._lingering.pop(seat, None)
        self.journals.retry()
        self.seats.retry()
        self._pool.reach.hurry()
        self._wish()
        try:
            yield waiter
        finally:
            board.remove(waiter)
            if waiter.lingers:
                self._lingering[seat] = self._clock() + LINGER
                self._linger_changed.set()
            else:
                self._wish()

    async def ready(self, waiter: Waiter) -> None:
        """Wait until cues of the waiter's board are delivered, or it is clear that they are not (then it is polled).

        After this the entry catchup may be sent: what happens later is cued (listen first, then catch up).
        """
        board = self.boards[waiter.seat.board]
        if waiter.push and not board.is_covered:
            with anyio.move_on_after(READY_TIMEOUT):
                await board.settled.wait()

    @property
    def held(self) -> frozenset[str]:
        """The boards that somebody holds."""
        return frozenset().union(*self.holds.values())

    def hold(self, boards: frozenset[str], purpose: str) -> None:
        """Have the journals of these boards in J, too, whether anybody waits there or not; in the place of those that were
        held for the same purpose before."""
        if boards != self.holds.get(purpose, frozenset()):
            self.holds[purpose] = boards
            self._wish()

    def leave(self, seat: Seat) -> None:
        """No conversation uses the seat any more: take it out of the streams now, or when its last wait has ended."""
        for known in [known for known in self._lingering if known.uri == seat.uri]:
            del self._lingering[known]
        for board in self.boards.values():
            for waiter in board.waiters:
                waiter.lingers &= waiter.seat.uri != seat.uri
        self._wish()

    async def woke(self) -> None:
        """The machine has slept: one probe for everybody, then both streams anew, and what was missed is read."""
        await self._pool.doubt()
        self._let_go()

    def fail(self, error: CentralError) -> None:
        """Nothing more comes from this feed: end every wait with `error`."""
        for board in self.boards.values():
            for waiter in board.waiters:
                waiter.fail(error)
            board.settled.set()

    # --- StreamListener ---------------------------------------------------------------------------------------------

    def stream_cue(self, uri: str) -> None:
        """A cue of either stream: mark whom it concerns."""
        self._pool.counters.cues += 1
        name, _, rest = uri.removeprefix("board://").partition("/")
        if rest == "journal":
            self._journal_cued(name)
        if rest.startswith("agent/") and uri not in self.seats.wanted:
            self._pool.windows.opened(LW_PRESENCE, f"a cue for a seat on {name} that nobody uses any more")
        board = self.boards.get(name)
        if board is None:
            return
        if rest == "journal":
            board.journal_cued(self.seats.covered)
        elif rest.startswith("agent/"):
            board.seat_cued(uri)

    def stream_changed(self, gained: frozenset[str], lost: frozenset[str]) -> None:
        """A stream opened, broke or was refused: boards gain or lose push."""
        overflows = self.journals.overflows + self.seats.overflows
        if overflows > self._overflows:
            self._overflows = overflows
            self._pool.windows.opened(LW_OVERFLOW, f"Central ended a stream of {self._pool.credential}")
        for stream in (self.journals, self.seats):
            if gained and stream.trouble is not None:
                stream.retry()  # Central answers again: the other stream need not wait for its turn
        for name in self.held | self.boards.keys():
            if journal_uri(name) in gained:
                self._journal_cued(name)
        trouble = self.journals.trouble
        refusal = None if trouble is None or isinstance(trouble, (Unreachable, Overloaded)) else str(trouble)
        for board in self.boards.values():
            uri = journal_uri(board.board)
            board.is_covered = uri in self.journals.covered
            board.poll_reason = None if board.is_covered else self.journals.denied.get(uri) or refusal
            if board.is_covered or board.poll_reason or trouble is not None:
                board.settled.set()
            else:
                board.settled = anyio.Event() if board.settled.is_set() else board.settled
            if uri in gained:
                board.gap()
            board.seats_changed(gained, lost)
            board.nudge()
        if self.reader is not None:
            self.reader.streams_changed()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _journal_cued(self, board: str) -> None:
        self._seats.observer.journal_cued(board)
        if self.reader is not None:
            self.reader.journal_cued(board)

    def _renumbered(self, board: str) -> None:
        if board in self.boards:
            self.boards[board].replaced()
        if self.reader is not None:
            self.reader.journal_renumbered(board)

    def _board(self, name: str) -> BoardFeed:
        board = self.boards.get(name)
        if board is None:
            assert self._tasks is not None, "the feed is not running"
            board = self.boards[name] = BoardFeed(
                self._pool, self._seats, name, catchup=self._catchup, clock=self._clock
            )
            if journal_uri(name) in self.journals.covered:  # for the last wait on it, which has only just gone
                board.is_covered = True
                board.settled.set()
            scope = self._scopes[name] = anyio.CancelScope()
            with concerning(None):  # it serves others, too
                self._tasks.start_soon(self._run_board, board, scope)
        return board

    async def _run_board(self, board: BoardFeed, scope: anyio.CancelScope) -> None:
        with scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(board.run)
                tasks.start_soon(board.sweep)

    def _wish(self) -> None:
        """Tell the streams whom they must cover, and end the feeds of boards that nobody uses."""
        waiting = {w.seat for board in self.boards.values() for w in board.waiters if w.push}
        seats = waiting | self._lingering.keys()
        self.journals.want({journal_uri(seat.board) for seat in seats} | {journal_uri(board) for board in self.held})
        self.seats.want({seat.uri for seat in seats})
        if not self.journals.wanted:  # without a stream another Central may take its place unnoticed
            self._identified = -1
        used = {seat.board for seat in seats} | {n for n, board in self.boards.items() if board.waiters}
        for name in self.boards.keys() - used:
            del self.boards[name]
            self._scopes.pop(name).cancel()

    async def _end_lingering(self) -> None:
        while True:
            self._linger_changed = anyio.Event()
            pause = min(self._lingering.values(), default=None)
            with anyio.move_on_after(None if pause is None else max(0.0, pause - self._clock())):
                await self._linger_changed.wait()
            now = self._clock()
            expired = [seat for seat, end in self._lingering.items() if end <= now]
            for seat in expired:
                del self._lingering[seat]
            if expired:
                self._wish()

    @asynccontextmanager
    async def _listen(self, uris: Iterable[str]) -> AsyncGenerator[Cues]:
        """Open the journal stream. After each loss, and when there was none, look whether it is the same Central still."""
        losses = self._pool.reach.losses
        async with self._pool.listen(uris) as cues:
            if losses != self._identified:
                if await self._pool.is_replaced():
                    self._seats.forget_all()
                    for board in self.boards.values():
                        board.replaced()
                    if self.reader is not None:
                        self.reader.journals_replaced()
                self._identified = losses
            yield cues

    async def _knock(self) -> None:
        """While streams are open and nobody asks anything, ask once in a while: they outlive a Central that wants to stop
        and a credential that was withdrawn (central.md §1.3, §4.6), and would hide both."""
        while True:
            quiet_s = self._pool.reach.quiet_s
            await anyio.sleep(KNOCK - quiet_s if quiet_s < KNOCK else KNOCK)
            if (self.journals.is_open or self.seats.is_open) and self._pool.reach.quiet_s >= KNOCK:
                with suppress(CentralError):  # noted by the pool, which tells whom it concerns
                    await self._pool.ask()

    def _let_go(self) -> None:
        """Central refuses connections: it may be stopping and cannot while our streams are open (central.md §1.3)."""
        self.journals.drop()
        self.seats.drop()
