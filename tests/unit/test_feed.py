"""feed/feed: which URIs the two streams carry, and what their changes mean for boards. On the real Central: central/."""

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any, cast

import anyio
import pytest

from pursersd.central import streams
from pursersd.errors import ProtocolRefused, Unauthenticated, Unreachable
from pursersd.feed import feed as module
from pursersd.feed.feed import LINGER, Feed
from pursersd.feed.waiter import Waiter
from pursersd.ids import journal_uri
from pursersd.seats.seat import Seat, Seats
from unit.scripted_pool import ScriptedPool, seat

pytestmark = pytest.mark.anyio

PATIENCE = 30.0  # seconds for something that must happen
REFUSED = Unreachable("connection refused", sent=False)
J, J2 = journal_uri("b"), journal_uri("b2")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLE_JOURNALS", 0.0)
    monkeypatch.setattr(module, "SETTLE_SEATS", 0.0)
    monkeypatch.setattr(streams, "LAP", 0.0)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Scene:
    """A feed at work."""

    def __init__(self) -> None:
        self.pool, self.clock = ScriptedPool(), Clock()
        self.seats = Seats(self.pool.as_pool)
        self.feed = Feed(self.pool.as_pool, self.seats, clock=self.clock)

    def watch(self, stack: ExitStack, name: str, board: str = "b", *, push: bool = True) -> Waiter:
        waiter = stack.enter_context(self.feed.watch(seat(name, board), push=push))
        waiter.open(0)
        return waiter

    def covered(self) -> set[str]:
        return set(self.feed.journals.covered | self.feed.seats.covered)

    async def covers(self, *uris: str) -> None:
        await self.until(lambda: self.covered() == set(uris))

    async def until(self, condition: Callable[[], object]) -> None:
        with anyio.fail_after(PATIENCE):
            while not condition():
                await anyio.sleep(0.001)


@asynccontextmanager
async def running() -> AsyncIterator[Scene]:
    scene = Scene()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.feed.run)
        await scene.feed.started.wait()
        yield scene
        tasks.cancel_scope.cancel()


def uri(name: str, board: str = "b") -> str:
    return seat(name, board).uri


async def test_journals_in_one_stream_and_seats_in_the_other() -> None:
    async with running() as scene:
        with ExitStack() as stack:
            for name, board in (("a", "b"), ("c", "b"), ("a", "b2")):
                scene.watch(stack, name, board)
            await scene.covers(J, J2, uri("a"), uri("c"), uri("a", "b2"))
            assert scene.feed.journals.covered == {J, J2}
            assert len(scene.pool.stream.log) == 2


async def test_a_polled_wait_needs_no_stream() -> None:
    async with running() as scene:
        with ExitStack() as stack:
            scene.watch(stack, "a", push=False)
            await anyio.wait_all_tasks_blocked()
            assert scene.pool.stream.log == []
            assert scene.feed.boards.keys() == {"b"}
        assert not scene.feed.boards


async def test_a_seat_lingers_and_then_leaves() -> None:
    async with running() as scene:
        with ExitStack() as stack:
            scene.watch(stack, "a")
            await scene.covers(J, uri("a"))
        await anyio.wait_all_tasks_blocked()
        assert scene.covered() == {J, uri("a")}
        scene.clock.now += LINGER - 1
        with ExitStack() as stack:  # another wait in time keeps it, at no cost
            scene.watch(stack, "a")
            scene.clock.now += LINGER
        await anyio.wait_all_tasks_blocked()
        assert len(scene.pool.stream.log) == 2
        scene.clock.now += LINGER
        scene.feed._linger_changed.set()  # the clock of this test does not wake anybody
        await scene.covers()
        await scene.until(lambda: not scene.feed.boards)


async def test_the_linger_wakes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINGER", 0.02)
    scene = Scene()
    scene.feed = Feed(scene.pool.as_pool, Seats(scene.pool.as_pool))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.feed.run)
        await scene.feed.started.wait()
        for name in "ac":
            with ExitStack() as stack:
                scene.watch(stack, name)
        await scene.until(lambda: scene.pool.stream.log)
        await scene.covers()
        tasks.cancel_scope.cancel()


async def test_a_left_seat_goes_at_once_and_the_others_stay() -> None:
    async with running() as scene:
        with ExitStack() as stack:
            for name in "ac":
                scene.watch(stack, name)
            await scene.covers(J, uri("a"), uri("c"))
        scene.feed.leave(seat("a"))
        await scene.covers(J, uri("c"))


async def test_a_seat_that_is_left_during_its_wait_goes_with_it() -> None:
    """A conversation is buried before the waits of its link have noticed: its seat must not linger for a minute."""
    async with running() as scene:
        with ExitStack() as other, ExitStack() as stack:
            scene.watch(other, "c")
            scene.watch(stack, "a")
            await scene.covers(J, uri("a"), uri("c"))
            scene.feed.leave(seat("a"))
            stack.close()
            await scene.covers(J, uri("c"))


async def test_a_seat_whose_join_changed_is_left_all_the_same() -> None:
    """Another time to live, another generation: it is the same seat to Central."""
    async with running() as scene:
        changed = Seat(seat("a").request, seat("a").agent_id, "PR-1", "worker", 60, "g2")
        with ExitStack() as other, ExitStack() as stack:
            scene.watch(other, "c")
            scene.watch(stack, "a")
            await scene.covers(J, uri("a"), uri("c"))
            stack.close()
            scene.feed.leave(changed)
            await scene.covers(J, uri("c"))


async def test_a_journal_that_is_numbered_anew_is_another_one() -> None:
    """RB-RPL-001: the same number under a new generation is not the same event. Other boards are not concerned."""
    async with running() as scene:
        with ExitStack() as stack:
            here, there = scene.watch(stack, "a"), scene.watch(stack, "a", "b2")
            scene.pool.write()
            for generation, resynced in (("first", False), ("first", False), ("second", True), ("second", False)):
                scene.pool.generation = generation
                await scene.seats.keepalive(seat("c"))
                assert here.is_foreign == resynced
                await scene.until(lambda: not here.is_due and not here.is_foreign)
                assert [page.resynced for page in here.take() if page.resynced] == [True] * resynced
            assert here.seat.generation == "second"
            assert not any(page.resynced for page in there.take())


async def test_cues_reach_the_board_they_name() -> None:
    async with running() as scene:
        with ExitStack() as stack:
            here, there = scene.watch(stack, "a"), scene.watch(stack, "a", "b2")
            await scene.covers(J, J2, uri("a"), uri("a", "b2"))
            await anyio.wait_all_tasks_blocked()
            for strange in ("board://", "board://nowhere/journal", "board://b/ticket/T", "x", ""):
                scene.feed.stream_cue(strange)
            here.take_marks(), there.take_marks()
            scene.feed.stream_cue(J)
            assert (here.marks.by_journal, bool(there.marks)) == (True, False)
            scene.feed.stream_cue(uri("a", "b2"))
            assert (here.marks.by_seat, there.marks.by_seat) == (False, True)
            assert scene.pool.counters.cues == 7


async def test_an_entry_waits_for_its_boards_stream() -> None:
    async with running() as scene:
        scene.pool.stream.errors = [REFUSED]
        with ExitStack() as stack:
            waiter = scene.watch(stack, "a")
            with anyio.fail_after(PATIENCE):
                await scene.feed.ready(waiter)  # trouble is an answer, too
            await scene.covers(J, uri("a"))
            with anyio.fail_after(PATIENCE):
                await scene.feed.ready(scene.watch(stack, "c"))


async def test_an_entry_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "READY_TIMEOUT", 0.02)

    @asynccontextmanager
    async def hang(uris: Any) -> AsyncIterator[Any]:
        await anyio.sleep_forever()
        yield None

    scene = Scene()
    scene.pool.listen = cast("Any", hang)
    scene.feed = Feed(scene.pool.as_pool, Seats(scene.pool.as_pool))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.feed.run)
        await scene.feed.started.wait()
        with ExitStack() as stack, anyio.fail_after(PATIENCE):
            await scene.feed.ready(scene.watch(stack, "a"))
        tasks.cancel_scope.cancel()


async def test_a_board_that_comes_back_before_its_stream_has_changed_is_covered() -> None:
    """Its last wait goes and the next one comes in one step: no stream changes, so nobody else would say it."""
    async with running() as scene:
        with ExitStack() as stack:
            scene.watch(stack, "a")
            await scene.covers(J, uri("a"))
            await anyio.wait_all_tasks_blocked()
            stack.close()
            scene.feed.leave(seat("a"))
            assert not scene.feed.boards
            waiter = scene.watch(stack, "a")
            assert scene.feed.boards["b"].is_covered
            with anyio.fail_after(PATIENCE):
                await scene.feed.ready(waiter)
            await anyio.wait_all_tasks_blocked()
            assert scene.feed.boards["b"].is_covered
            assert scene.covered() == {J, uri("a")}


async def test_a_denied_board_is_polled_and_the_others_are_not() -> None:
    async with running() as scene:
        scene.pool.stream.errors = [
            ProtocolRefused(f"subscription denied: principal is not authorized for resource {J2}")
        ]
        with ExitStack() as stack:
            good, bad = scene.watch(stack, "a"), scene.watch(stack, "a", "b2")
            for waiter in (good, bad):
                await scene.feed.ready(waiter)
            await scene.until(lambda: scene.feed.boards["b"].is_covered)
            assert "not authorized" in str(scene.feed.boards["b2"].poll_reason)
            assert scene.feed.boards["b2"].polls(bad)
            assert scene.feed.boards["b"].poll_reason is None
            scene.watch(stack, "c", "b2")  # the next wait asks again
            await scene.until(lambda: scene.feed.boards["b2"].is_covered)
            assert not scene.feed.boards["b2"].polls(bad)


@pytest.mark.parametrize(
    ("error", "polled"),
    [(REFUSED, False), (Unauthenticated("HTTP 401"), True), (ProtocolRefused("stream limit exceeded (cap=2)"), True)],
)
async def test_a_refused_stream_is_polled_and_an_unreachable_central_is_not(error: Any, polled: bool) -> None:
    async with running() as scene:
        scene.pool.stream.always = error
        with ExitStack() as stack:
            waiter = scene.watch(stack, "a")
            await scene.feed.ready(waiter)
            assert scene.feed.boards["b"].poll_reason == (str(error) if polled else None)
            scene.pool.stream.always = None
            await scene.covers(J, uri("a"))
            assert scene.feed.boards["b"].poll_reason is None


async def test_a_lost_journal_stream_is_a_gap_when_it_is_back() -> None:
    async with running() as scene:
        with ExitStack() as stack:
            waiter = scene.watch(stack, "a")
            await scene.covers(J, uri("a"))
            await scene.until(lambda: not waiter.marks)
            await anyio.wait_all_tasks_blocked()
            scene.pool.write()
            scene.pool.stream.streams[J].end(REFUSED)
            await scene.until(lambda: waiter.has_arrived)
            assert [event["seq"] for page in waiter.take() for event in page.events] == [1]
            assert scene.feed.boards["b"].is_covered


@pytest.mark.parametrize("first", ["journals", "seats"])
async def test_when_one_stream_is_back_the_other_does_not_wait(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "FIRST_RETRY", 1000.0)
    monkeypatch.setattr(streams, "LAST_RETRY", 1000.0)
    async with running() as scene:
        await anyio.wait_all_tasks_blocked()
        scene.pool.stream.always = REFUSED
        with ExitStack() as stack:
            scene.watch(stack, "a")
            await scene.until(lambda: scene.feed.journals.trouble and scene.feed.seats.trouble)
            await anyio.wait_all_tasks_blocked()
            scene.pool.stream.always = None
            getattr(scene.feed, first).retry()
            await scene.covers(J, uri("a"))


async def test_a_refused_connection_lets_both_streams_go() -> None:
    async with running() as scene:
        with ExitStack() as stack:
            scene.watch(stack, "a")
            await scene.covers(J, uri("a"))
            scene.pool.stream.always = REFUSED
            scene.pool.on_connect_refused()
            await scene.covers()
            closed = sorted([f"close {J}", f"close {uri('a')}"])
            await scene.until(lambda: sorted(scene.pool.stream.log[2:4]) == closed)
            scene.pool.stream.always = None
            await scene.covers(J, uri("a"))


async def test_another_central_at_the_address_is_noticed_after_a_loss_and_nobody_has_a_place_in_it() -> None:
    with ExitStack() as stack:
        async with running() as scene:
            waiter = scene.watch(stack, "a")
            await scene.covers(J, uri("a"))
            scene.pool.replaced = True
            scene.pool.stream.streams[J].end(None)
            await scene.until(lambda: scene.feed.journals.reconnects)
            await scene.covers(J, uri("a"))
            assert not waiter.is_foreign  # Central answered all the time: it can be no other
            scene.pool.reach.lost(Unreachable("cut"))
            scene.pool.stream.streams[J].end(Unreachable("cut"))
            await scene.until(lambda: waiter.has_arrived)
            assert waiter.take()[0].resynced


async def test_a_cue_for_a_seat_that_everybody_has_left_is_counted() -> None:
    with ExitStack() as stack:
        async with running() as scene:
            waiter = scene.watch(stack, "a")
            await scene.covers(J, uri("a"))
            scene.feed.stream_cue(uri("a"))
            scene.feed.leave(waiter.seat)
            stack.close()
            scene.feed.stream_cue(uri("a"))
            counts = {window.name: window.count for window in scene.pool.windows.snapshot()}
            assert counts["LW-PRESENCE"] == 1


async def test_what_nobody_asks_is_asked_once_in_a_while_as_long_as_a_stream_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "KNOCK", 0.002)
    with ExitStack() as stack:
        async with running() as scene:
            await anyio.sleep(0.02)
            assert "probe" not in scene.pool.asked  # nobody waits: nothing is asked
            scene.pool.errors = [Unauthenticated("no")]  # which ends nothing
            scene.watch(stack, "a")
            await scene.until(lambda: scene.pool.asked.count("probe") >= 2)


async def test_after_a_sleep_one_probe_comes_before_the_streams() -> None:
    with ExitStack() as stack:
        async with running() as scene:
            scene.watch(stack, "a")
            await scene.covers(J, uri("a"))
            scene.pool.stream.log.clear()
            await scene.feed.woke()
            await scene.until(lambda: len(scene.pool.stream.log) == 4)
            await scene.covers(J, uri("a"))
            assert scene.pool.asked.count("probe") == 1
            assert {entry.partition(" ")[0] for entry in scene.pool.stream.log[:2]} == {"close"}
