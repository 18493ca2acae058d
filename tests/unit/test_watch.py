"""waits/watch: what becomes of events and of their routes. On the real Central: central/test_waits, parity."""

import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from anyio import to_thread

from pursersd.feed.waiter import Bell
from pursersd.rules import routing
from pursersd.waits import watch as module
from pursersd.waits.board import BoardWait
from pursersd.waits.caller import Caller
from pursersd.waits.watch import Routes, Watch

pytestmark = pytest.mark.anyio

Event = dict[str, object]

PATIENCE = 30.0  # seconds for something that must happen


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Board:
    """In the place of a BoardWait: each take brings the next of these lots, there is no open work."""

    name = "b"
    watcher = None
    entered = True
    partial = is_dispatched = is_polled = scans_again = False

    def __init__(self, *lots: list[Event]) -> None:
        self.waiter = SimpleNamespace(seat=SimpleNamespace(agent_id="AI-1"))
        self.lots = list(lots)
        self.warnings: list[Event] = []
        self.told: list[Event] = []
        self.passed: list[object] = []
        """The tickets of events that nobody was told."""

    async def enter(self) -> list[Event]:
        return []

    @property
    def has_arrived(self) -> bool:
        return bool(self.lots)

    async def take(self) -> list[Event]:
        return self.lots.pop(0)

    def passed_over(self, events: list[Event]) -> None:
        self.passed += [event["ticket_id"] for event in events]

    def returned(self, events: list[Event], *, at_entry: bool) -> None:
        self.told = events


class Noted:
    """Routes that lead nowhere but for one ticket; notes what it was asked about."""

    def __init__(self) -> None:
        self.asked: list[list[object]] = []

    async def apply(self, events: Sequence[Event]) -> list[Event]:
        self.asked.append([event["ticket_id"] for event in events])
        return [event for event in events if event["ticket_id"] == "work"]


def caller() -> Caller:
    holder = SimpleNamespace(cues=lambda agent_id: [], given=lambda agent_id, tickets: None)
    settings = SimpleNamespace(scan_interval_s=600.0, host=SimpleNamespace(progress_every_s=None))
    memory = SimpleNamespace(suppression=SimpleNamespace(next_expiry=lambda watcher: None))
    return cast("Caller", SimpleNamespace(holder=holder, settings=settings, memory=memory))


async def test_events_that_no_seat_can_claim_are_not_kept_for_the_rest_of_the_wait() -> None:
    """A wait may last six hours, and each of its events would be routed again whenever another one comes."""
    board = Board(*([{"ticket_id": f"T{n}"}] for n in range(3)), [{"ticket_id": "work"}, {"ticket_id": "T3"}])
    routes = Noted()
    watch = Watch(caller(), [cast("BoardWait", board)], Bell(), cast("Routes", routes), single=False)
    await watch.run(0.0, float("inf"))
    assert [event["ticket_id"] for event in watch.found.events] == ["work"]
    assert board.told == watch.found.events
    assert max(map(len, routes.asked)) == 2
    assert list(dict.fromkeys(board.passed)) == ["T0", "T1", "T2", "T3"]


async def test_folders_that_hang_leave_threads_for_everybody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry may name a folder on a disk that is gone; a conversation through a door needs a thread, too."""
    woken = threading.Event()

    def hang(events: Sequence[Event], registry: Any, *, claimable_call: bool) -> list[Event]:
        woken.wait(PATIENCE)
        return []

    monkeypatch.setattr(routing, "route", hang)
    monkeypatch.setattr(module, "ROUTE_LIMIT", 0.05)
    events: list[Event] = [{"ticket_id": "T"}]
    try:
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for _ in range(50):
                    tasks.start_soon(Routes({}, claimable_call=True).apply, events)
            assert await Routes({}, claimable_call=True).apply(events) == events
            assert await to_thread.run_sync(threading.active_count) < 20
    finally:
        woken.set()
