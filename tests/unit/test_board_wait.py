"""waits/board: what was judged is returned in the step that moves the cursor. On the real Central: central/test_waits."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import anyio.lowlevel
import pytest

from pursersd.errors import CentralError, Overloaded, ToolFailed, Unauthenticated, Unreachable
from pursersd.feed.board import BoardFeed
from pursersd.feed.waiter import Page, Waiter
from pursersd.rules.awards import Awards
from pursersd.rules.relevance import Watcher
from pursersd.rules.suppression import Suppression, SyntheticGuard
from pursersd.waits import board as module
from pursersd.waits.board import BoardWait, Memory
from unit.scripted_pool import BOARD, seat

pytestmark = pytest.mark.anyio

ANN = seat("ann")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Tickets:
    """In the place of the shared reads: each ticket is open, unless the test holds it back."""

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.errors: dict[str, list[CentralError]] = {}
        self.asked: list[str] = []
        self.open: list[str] = []
        """What a listing tells."""
        self.head = 0
        """Where the journal ended at the listing."""
        self.fields: dict[str, Any] = {}
        """What else the listed tickets have."""

    async def read(self, tool: str, arguments: Mapping[str, Any], *, at_least: int, live: bool) -> dict[str, Any]:
        if tool == "ticket_list":
            self.asked.append("all")
            rows = [{"ticket_id": t, "status": "open", "updated_at": "now", **self.fields} for t in self.open]
            return {"tickets": rows, "total_matching": len(rows), "latest_seq": self.head}
        ticket = arguments["ticket_id"]
        self.asked.append(ticket)
        if ticket in self.held:
            await anyio.sleep_forever()
        if self.errors.get(ticket):
            raise self.errors[ticket].pop(0)
        return {"ticket": {"ticket_id": ticket, "status": "open", "updated_at": "now"}, "latest_seq": at_least}


class Scene:
    """One board of a wait, past its entry."""

    def __init__(self) -> None:
        self.tickets = Tickets()
        self.waiter = Waiter(ANN, push=True)
        self.waiter.open(0)
        feed = SimpleNamespace(
            reads=self.tickets,
            is_covered=True,
            awards=Awards(),
            journal=(None, None),
            nudge=lambda: None,
            reachable=anyio.lowlevel.checkpoint,
            central_time=0.0,
        )
        self.feed = cast("BoardFeed", feed)
        self.wait = self.another()

    def another(self) -> BoardWait:
        """The wait of one more conversation on the seat."""
        return BoardWait(
            feed=self.feed,
            waiter=self.waiter,
            watcher=Watcher(BOARD, ANN.agent_id, "ann", ANN.principal_id, "claimable"),
            memory=Memory(Suppression(), SyntheticGuard()),
            cursor=0,
            cursor_omitted=False,
        )

    def page(self, cursor: int, *tickets: str, kind: str = "ticket_created", resynced: bool = False) -> None:
        events = [{"kind": kind, "seq": cursor, "ticket_id": ticket, "actor": "AI-boss"} for ticket in tickets]
        self.waiter.deliver(Page(cast("Any", events), cursor, resynced))

    async def take(self) -> list[str]:
        return [str(event["ticket_id"]) for event in await self.wait.take()]


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_the_first_page_with_something_ends_the_wait(scene: Scene) -> None:
    scene.page(1, "T1", kind="memory_written")
    scene.page(2, "T2", "T3")
    scene.page(3, "T4")
    assert await scene.take() == ["T2", "T3"]
    assert scene.wait.cursor == 2
    assert scene.wait.has_arrived  # the rest is for the next wait, whose history begins here
    assert await scene.take() == ["T4"]
    assert scene.wait.cursor == 3
    assert not scene.wait.has_arrived


async def test_what_was_judged_is_not_lost_behind_what_takes_long(scene: Scene) -> None:
    """The deadline falls into the second page: the first one must have been returned before."""
    scene.tickets.held.add("T2")
    scene.page(1, "T1")
    scene.page(2, "T2")
    assert await scene.take() == ["T1"]
    with anyio.move_on_after(0.01) as deadline:
        await scene.take()
    assert deadline.cancelled_caught
    assert scene.wait.cursor == 1
    scene.tickets.held.clear()
    assert await scene.take() == ["T2"]


async def test_a_page_half_judged_is_judged_again(scene: Scene) -> None:
    scene.tickets.held.add("T2")
    scene.page(1, "T1", "T2")
    with anyio.move_on_after(0.01):
        await scene.take()
    assert scene.wait.cursor == 0
    scene.tickets.held.clear()
    assert await scene.take() == ["T1", "T2"]


async def test_pages_without_events_move_the_cursor(scene: Scene) -> None:
    scene.page(5)
    scene.page(7, resynced=True)
    assert await scene.take() == []
    assert (scene.wait.cursor, scene.wait.resynced) == (7, True)


@pytest.mark.parametrize("error", [Unreachable("gone"), Overloaded("503")])
async def test_a_ticket_that_central_cannot_tell_now_is_asked_for_again(
    scene: Scene, error: CentralError, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY", 0.001)
    scene.tickets.errors["T1"] = [error] * 3
    scene.page(1, "T1")
    assert await scene.take() == ["T1"]
    assert scene.tickets.asked == ["T1"] * 4


async def test_a_refusal_of_the_credential_ends_the_wait_before_the_event(scene: Scene) -> None:
    scene.tickets.errors["T1"] = [Unauthenticated("HTTP 401")]
    scene.page(1, "T1")
    with pytest.raises(Unauthenticated):
        await scene.take()
    assert scene.wait.cursor == 0


@pytest.mark.parametrize("kind", ["not_found", None])
async def test_a_ticket_that_is_not_there_tells_nothing(scene: Scene, kind: str | None) -> None:
    scene.tickets.errors["T1"] = [ToolFailed("ticket_get", "ticket not found", kind)]
    scene.page(1, "T1")
    assert await scene.take() == []
    assert scene.wait.cursor == 1


async def test_a_failure_of_the_feed_comes_after_the_pages_before_it(scene: Scene) -> None:
    scene.page(1, "T1")
    scene.waiter.fail(Unauthenticated("HTTP 401"))
    assert await scene.take() == ["T1"]
    with pytest.raises(Unauthenticated):
        await scene.take()
    assert scene.wait.cursor == 1


async def test_a_cursor_is_only_known_when_something_was_read(scene: Scene) -> None:
    scene.wait.cursor_omitted = True
    assert scene.wait.reached is None
    scene.wait.entered = True
    scene.wait.cursor = 4
    assert scene.wait.reached == 4


async def test_work_that_was_passed_over_is_no_open_work_either(scene: Scene) -> None:
    scene.page(1, "T1")
    scene.wait.passed_over(await scene.wait.take())
    scene.tickets.open, scene.tickets.head = ["T1", "T2"], 1
    assert await scan(scene.wait) == ["T2"]


# --- scans --------------------------------------------------------------------------------------------------------------


async def scan(wait: BoardWait) -> list[str]:
    return [str(event["ticket_id"]) for event in await wait.scan()]


async def test_the_journal_has_the_first_word_on_new_work(scene: Scene) -> None:
    """Who was told of it by the scan would be told again by its event, in the next call."""
    scene.tickets.open, scene.tickets.head = ["T1"], 1
    assert await scan(scene.wait) == []
    assert scene.wait.scans_again
    assert scene.waiter.marks  # so that it is read for
    scene.page(1, "T1")
    assert await scene.take() == ["T1"]


async def test_what_the_journal_does_not_tell_of_is_told_when_it_was_read(scene: Scene) -> None:
    scene.tickets.open, scene.tickets.head = ["T1"], 1
    for _ in range(module.SETTLE + 2):  # as long as it takes
        assert await scan(scene.wait) == []
    scene.page(1)
    assert await scene.take() == []
    assert await scan(scene.wait) == ["T1"]
    assert not scene.wait.scans_again


async def test_a_board_that_never_rests_hides_no_work(scene: Scene) -> None:
    scene.tickets.open = ["T1"]
    for cursor in range(1, module.SETTLE + 1):
        scene.tickets.head = cursor
        assert await scan(scene.wait) == []
        scene.page(cursor)
        assert await scene.take() == []
    scene.tickets.head += 1
    assert await scan(scene.wait) == ["T1"]


async def test_nothing_is_read_for_a_scan_without_news(scene: Scene) -> None:
    scene.tickets.head = 1
    assert await scan(scene.wait) == []
    assert not scene.wait.scans_again
    assert not scene.waiter.marks


async def test_the_last_look_at_the_offers_leaves_out_those_that_woke_a_sibling(scene: Scene) -> None:
    offer = {"agent_id": ANN.agent_id, "expires_at_epoch": 100}
    scene.tickets.open, scene.tickets.fields = ["T1"], {"dispatch_state": {}, "work_offer": offer}
    sibling = scene.another()
    assert [event["ticket_id"] for event in await scene.wait.offers()] == ["T1"]
    assert await sibling.offers() == []
    assert [event["ticket_id"] for event in await scene.wait.offers()] == ["T1"]
