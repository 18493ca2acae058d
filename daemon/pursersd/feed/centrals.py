"""The Centrals of this daemon: a pool with its seats and its feed for each (URL, credential, instance) in use."""

import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup, TaskStatus

from pursersd.api import CentralState, CentralStatus
from pursersd.central.client import Admit, freely
from pursersd.central.pool import Pool, PoolKey
from pursersd.errors import CentralError, Forbidden, Unauthenticated
from pursersd.feed.digest import DigestFeed
from pursersd.feed.feed import Feed
from pursersd.log import concerning
from pursersd.rules.denials import Denials
from pursersd.seats.first import Held
from pursersd.seats.leases import Leases
from pursersd.seats.seat import Seats
from pursersd.windows import Windows

log = logging.getLogger(__name__)

FEED_PAUSE = 1.0
"""Seconds until a feed that broke is started again."""


@dataclass(slots=True)
class Central:
    """One Central with one credential: calls, seats and feed. Users are the conversations that hold it."""

    pool: Pool
    seats: Seats
    feed: Feed
    scope: anyio.CancelScope
    users: set[str] = field(default_factory=set)
    leases: Leases = field(init=False)
    digest: DigestFeed = field(init=False)

    def __post_init__(self) -> None:
        self.leases = Leases(self.pool, self.seats)
        self.leases.want = lambda boards: self.feed.hold(boards, "leases")
        self.digest = DigestFeed(self.pool, self.seats, lambda: self.feed)
        self.feed.reader = self.digest

    def status(self) -> CentralStatus:
        """What `pursersctl status` shows of it."""
        error = self.pool.last_error
        detail = error or self.feed.journals.trouble
        replaced = self.pool.replaced_at
        streams = [stream for stream in (self.feed.journals, self.feed.seats) if stream.is_open]
        return CentralStatus(
            url=self.pool.key.url,
            credential=self.pool.credential,
            state=_state(error, bool(self.pool.counters.requests)),
            detail=str(detail) if detail is not None else None,
            trouble_s=round(time.monotonic() - self.pool.error_since, 3) if error is not None else None,
            call_connections=self.pool.counters.in_flight,
            streams=len(streams),
            boards=sorted(self.feed.boards),
            seats_listening=len(self.feed.seats.covered),
            waits=sum(waiter.opened for board in self.feed.boards.values() for waiter in board.waiters),
            requests=self.pool.counters.requests,
            cues=self.pool.counters.cues,
            reconnects=self.feed.journals.reconnects + self.feed.seats.reconnects,
            expires_s=_rounded(self.pool.expires_s),
            clock_ahead_s=round(self.pool.clock_ahead_s, 1),
            clock_wrong_s=round(self.pool.clock_wrong_s, 3),
            replaced_s=_rounded(None if replaced is None else time.monotonic() - replaced),
        )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _state(error: Exception | None, used: bool) -> CentralState:
    if isinstance(error, (Unauthenticated, Forbidden)):
        return "refused"
    if error is not None:
        return "unreachable"
    return "ready" if used else "connecting"


class Centrals:
    """Opens a Central for its first user and closes it after its last; `run()` owns every task below."""

    def __init__(self, held: Held | None = None, admit: Admit = freely) -> None:
        """`admit` returns when a call may go to a Central (see CentralClient)."""
        self._held = held
        self._admit = admit
        self.denials = Denials()
        """Boards that refused, for all conversations: a refusal belongs to a credential and a role."""
        self.windows = Windows()
        """The lossy windows of the whole daemon."""
        self._open: dict[PoolKey, Central] = {}
        self._heads: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """By the URL of a Central, for all its pools."""
        self._tasks: TaskGroup | None = None

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Serve until cancelled; then every connection is closed."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            task_status.started()
            await anyio.sleep_forever()

    def all(self) -> list[Central]:
        """Every open Central."""
        return list(self._open.values())

    async def use(self, key: PoolKey, conversation: str) -> Central:
        """The Central for `key`, kept open until `conversation` calls `release`."""
        central = self._open.get(key)
        if central is None:
            pool = Pool(key, self._admit, self.windows, self._heads[key.url])
            seats = Seats(pool, self._held)
            central = self._open[key] = Central(pool, seats, Feed(pool, seats), anyio.CancelScope())
            assert self._tasks is not None, "Centrals.run() is not running"
            with concerning(None):  # it serves others, too
                self._tasks.start_soon(self._serve, central)
        central.users.add(conversation)
        while not central.feed.started.is_set():
            await central.feed.started.wait()
        return central

    def release(self, conversation: str, *, but: PoolKey | None = None) -> None:
        """The conversation has ended: leave the seats and close the Centrals that nobody else uses.

        It goes on with the Central for `but`, if there is one: its credential was replaced.
        """
        for key, central in list(self._open.items()):
            if conversation not in central.users or key == but:
                continue
            for seat in central.seats.leave(conversation):
                central.feed.leave(seat)
            central.users.discard(conversation)
            if not central.users:
                del self._open[key]
                central.scope.cancel()

    def woke(self) -> None:
        """Time has passed without us: each Central is asked once, then everything is opened anew and read on."""
        assert self._tasks is not None, "Centrals.run() is not running"
        for central in self._open.values():
            self._tasks.start_soon(central.feed.woke)

    async def _serve(self, central: Central) -> None:
        try:
            with central.scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._keep_running, "the keeping of leases", central.leases.run, central)
                    tasks.start_soon(self._keep_running, "the reading for digests", central.digest.run, central)
                    while True:
                        await self._feed(central)
        finally:
            central.digest.close()
            with anyio.CancelScope(shield=True):
                await central.pool.aclose()

    @staticmethod
    async def _keep_running(what: str, run: Callable[[], Awaitable[None]], central: Central) -> None:
        """Should it break, it begins again with what is known: for one error no lease may lapse and no digest end."""
        while True:
            try:
                await run()
            except Exception:
                log.exception("%s at %s broke and is started again", what, central.pool)
                await anyio.sleep(FEED_PAUSE)

    @staticmethod
    async def _feed(central: Central) -> None:
        """Run the feed. Should it break, its waits are told, and another one takes over: the rest of the daemon goes on."""
        feed = central.feed
        try:
            await feed.run()
        except Exception:
            log.exception("the feed of %s broke and is started again", central.pool)
            feed.fail(
                CentralError("The daemon's feed of this Central broke and was started again; see: pursersctl logs")
            )
            await anyio.sleep(FEED_PAUSE)
            central.feed = Feed(central.pool, central.seats)
            central.feed.reader = central.digest
            for purpose, boards in feed.holds.items():
                central.feed.hold(boards, purpose)
