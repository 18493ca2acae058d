"""The daemon's Central side on its own: a pool with its feed, and readers that stand for waits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import TaskStatus

from pursersd.central.client import CentralClient
from pursersd.central.pool import PoolKey
from pursersd.feed.catchup import position_after
from pursersd.feed.centrals import Central, Centrals
from pursersd.feed.waiter import Page, Waiter
from pursersd.seats.seat import SeatRequest
from pursersd.secret import Secret

TOKEN = "eyJ-secret-token"
PATIENCE = 60.0  # seconds for something that must happen


@asynccontextmanager
async def client(url: str, token: str = TOKEN, instance_id: str | None = None) -> AsyncIterator[CentralClient]:
    """A client without a pool, closed at the end of the block."""
    found = CentralClient(url, Secret(token), instance_id)
    try:
        yield found
    finally:
        await found.aclose()


@asynccontextmanager
async def pool(url: str, token: str, instance_id: str | None = None) -> AsyncIterator[Central]:
    """A Central of the daemon, closed at the end of the block."""
    async with anyio.create_task_group() as tasks:
        centrals = Centrals()
        await tasks.start(centrals.run)
        yield await centrals.use(PoolKey(url, Secret(token), instance_id), "test")
        tasks.cancel_scope.cancel()


@dataclass
class Reader:
    """What one wait sees: the events of its history, then those of the pages that the feed delivers, in order."""

    central: Central
    board: str
    name: str
    push: bool = True
    user: str = "test"
    events: list[dict[str, Any]] = field(default_factory=list)
    resynced: bool = False
    waiter: Waiter | None = None
    _grown: anyio.Event = field(default_factory=anyio.Event)

    @property
    def seqs(self) -> list[int]:
        """Sequence numbers of the events, as they came."""
        return [event["seq"] for event in self.events]

    @property
    def titles(self) -> list[str]:
        """Kinds of the events, as they came."""
        return [event["kind"] for event in self.events]

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Join, catch up, open the gate, then collect pages until cancelled."""
        seat = await self.central.seats.join(SeatRequest(self.board, self.name, "worker"), self.user)
        with self.central.feed.watch(seat, push=self.push) as self.waiter:
            await self.central.feed.ready(self.waiter)
            self.waiter.begin()
            feed = self.central.feed.boards[self.board]
            cursor = 0
            async for page in feed.catchup.pages(seat, 0):
                self._add(Page(page["events"], position_after(page)))
                cursor = position_after(page)
            self.waiter.open(cursor)
            feed.nudge()
            task_status.started()
            while True:
                await self.waiter.arrived()
                for taken in self.waiter.take():
                    self._add(taken)
                feed.nudge()

    async def until(self, count: int) -> None:
        """Wait until there are at least `count` events."""
        with anyio.fail_after(PATIENCE):
            while len(self.events) < count:
                self._grown = anyio.Event()
                await self._grown.wait()

    def _add(self, page: Page) -> None:
        self.events += page.events
        self.resynced |= page.resynced
        self._grown.set()


@asynccontextmanager
async def readers(central: Central, board: str, names: list[str]) -> AsyncIterator[list[Reader]]:
    """Readers of one board whose gates are open and whose seats are in the seat stream."""
    found = [Reader(central, board, name) for name in names]
    async with anyio.create_task_group() as tasks:
        for reader in found:
            await tasks.start(reader.run)
        await listening(central, found)
        yield found
        tasks.cancel_scope.cancel()


async def listening(central: Central, found: list[Reader]) -> None:
    """Wait until the seat stream covers all readers and nobody has anything left to read."""
    wanted = {reader.waiter.seat.uri for reader in found if reader.waiter}
    await eventually(lambda: wanted <= central.feed.seats.covered)
    await eventually(lambda: all(feed.is_quiet for feed in central.feed.boards.values()))


async def eventually(condition: Any, what: str = "") -> None:
    """Wait for a condition of the same event loop."""
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.sleep(0.01)
