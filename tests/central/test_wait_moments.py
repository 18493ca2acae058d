"""a2a_wait when its connections or its Central go away at the worst moments: nothing is lost or doubled, the wait returns.

The moments: in the middle of entry, between two pages, between a cue and the read that it asks for, between a page and the
look at its ticket. The faults: a restart of Central, every connection cut, streams that
overflow, an answer lost.
"""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import anyio
import pytest
from anyio import to_thread

from central.feeding import eventually
from central.waiting import Waiting, blocking, make, tickets, waiting
from pursersd.feed import catchup
from rig.central import Central
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio

FAULTS = ("restart", "reset_all", "lost answer", "overflow")
ENTRY = (("board_join", 1), ("board_catchup", 1), ("board_catchup", 2), ("ticket_list", 1))
"""Before which request of an entry that reads three pages the fault happens."""
LIVE = (("board_catchup", 1), ("board_catchup", 2), ("ticket_get", 1))
"""The same of a wait that blocks, when it reads five events at once."""

NO_SCAN = {"PURSERS_BACKLOG_SCAN_INTERVAL_S": "600"}
"""Who is not woken shall not find the work by looking at it."""

Occur = Callable[[str, str], None]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five events are three pages."""
    monkeypatch.setattr(catchup, "PAGE", {**catchup.PAGE, "limit": 2})


@pytest.fixture
def occur(central: Central, proxy: Proxy) -> Callable[[str, str], None]:
    """Let a fault happen, before a request for a tool."""

    def occur(fault: str, tool: str) -> None:
        match fault:
            case "restart":
                central.kill()
                central.start()
            case "lost answer":
                proxy.cut_after(tool)
            case _:
                getattr(proxy, fault)()

    return occur


def before(
    ann: Waiting, tool: str, number: int, happens: Callable[[], Awaitable[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let something happen before the request of this number for a tool is sent."""
    read, asked = ann.central.pool.read, count(1)

    async def disturbed(name: str, arguments: Any, **options: Any) -> Any:
        if name == tool and next(asked) == number:
            await happens()
        return await read(name, arguments, **options)

    monkeypatch.setattr(ann.central.pool, "read", disturbed)


def journaled(result: dict[str, Any]) -> list[str]:
    assert all("seq" in event for event in result["events"]), (
        "the journal was not read: a look at the open work found it"
    )
    return tickets(result)


async def told(ann: Waiting, wanted: list[str], since_seq: int | None, first: Any = None) -> None:
    """Wait again and again: the tickets come in order, once each, from the journal; an answer without any leads on, too."""
    result = first or await ann.wait(since_seq)
    found = journaled(result)
    for _ in range(len(wanted)):
        if found == wanted:
            break
        if since_seq is not None:
            since_seq = result["new_seq"]
        elif ann.waited is not None and ann.waited.acknowledge is not None:
            await ann.acknowledge()
        result = await ann.wait(since_seq)
        found += journaled(result)
    assert found == wanted


@pytest.mark.parametrize(
    ("fault", "tool", "number", "omitted"),
    [
        *((fault, tool, number, False) for fault in FAULTS[:3] for tool, number in ENTRY),
        ("restart", "board_catchup", 1, True),
        ("restart", "board_catchup", 2, True),
    ],
)
async def test_in_the_middle_of_entry(
    central: Central,
    proxy: Proxy,
    board: str,
    occur: Occur,
    fault: str,
    tool: str,
    number: int,
    omitted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with waiting(proxy.url, central.worker("ann", board), board, environ=NO_SCAN) as ann:
        head = await ann.caught_up()
        wanted = [await make(central, board, f"number {index}") for index in range(5)]
        happened = anyio.Event()

        async def happens() -> None:
            await to_thread.run_sync(occur, fault, tool)
            happened.set()

        before(ann, tool, number, happens, monkeypatch)
        await told(ann, wanted, None if omitted else head)
        assert happened.is_set()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("tool", "number"), LIVE, ids=["cue and read", "pages", "page and ticket"])
async def test_between(
    central: Central,
    proxy: Proxy,
    board: str,
    occur: Occur,
    fault: str,
    tool: str,
    number: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with waiting(proxy.url, central.worker("ann", board), board, environ=NO_SCAN) as ann:
        head = await ann.caught_up()
        happened = anyio.Event()

        async def happens() -> None:
            await to_thread.run_sync(occur, fault, tool)
            happened.set()

        async with blocking(ann, head, timeout_s=60) as results:
            # Five events are cued, but not read for: the gate is closed.
            waiter, feed, counters = ann.boards[0].waiter, ann.boards[0].feed, ann.central.pool.counters
            waiter.opened = False
            await eventually(lambda: feed.is_quiet and not counters.in_flight)
            before(ann, tool, number, happens, monkeypatch)
            cues = counters.cues
            wanted = [await make(central, board, f"number {index}") for index in range(5)]
            await eventually(lambda: counters.cues >= cues + 2 * len(wanted))
            waiter.open(waiter.cursor)
            feed.nudge()
        await eventually(happened.is_set)  # Central answers again before the fault's own thread knows
        assert tickets(results[0])
        await told(ann, wanted, head, results[0])
