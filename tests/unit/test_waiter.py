"""feed/waiter: why one wait must be read, its gate and its queue."""

from types import SimpleNamespace

import anyio
import pytest

from pursersd.errors import Unreachable
from pursersd.feed import waiter as module
from pursersd.feed.waiter import QUEUE, Bell, Marks, Page, Waiter
from pursersd.seats.seat import Seat, SeatRequest

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def waiter(bell: Bell | None = None) -> Waiter:
    seat = Seat(SeatRequest("b", "ann", "worker"), "AI-1", "PR-1", "worker", 900, None)
    return Waiter(seat, push=True, bell=bell)


def page(cursor: int) -> Page:
    return Page([{"seq": cursor}], cursor)


async def test_it_is_read_when_it_is_marked_and_its_gate_is_open() -> None:
    one = waiter()
    one.mark("journal")
    assert not one.is_due
    one.open(7)
    assert one.is_due
    assert one.cursor == 7
    assert one.take_marks() == Marks(by_journal=True)
    assert not one.is_due


async def test_the_entry_covers_what_was_cued_before_and_not_what_comes_during_it() -> None:
    one = waiter()
    one.mark("seat")
    one.begin()
    one.open(1)
    assert not one.is_due
    other = waiter()
    other.begin()
    other.mark("seat")
    other.open(1)
    assert other.is_due


async def test_marks_add_up() -> None:
    one = waiter()
    one.mark("seat")
    one.mark("journal")
    assert one.take_marks() == Marks(by_seat=True, by_journal=True)
    one.mark("journal", uncertain=True)
    one.marks.add(Marks(by_seat=True))
    assert one.take_marks() == Marks(by_seat=True, by_journal=True, uncertain=True)
    one.mark("gap")
    assert one.take_marks() == Marks(uncertain=True)
    assert not Marks()


async def test_a_page_moves_the_cursor_and_is_taken_once_in_order() -> None:
    one = waiter()
    one.open(0)
    for cursor in (3, 5):
        one.deliver(page(cursor))
    assert (one.cursor, one.has_arrived) == (5, True)
    await one.arrived()
    assert one.take() == [page(3), page(5)]
    assert one.take() == []
    assert not one.has_arrived


async def test_a_full_queue_is_not_read_for_until_it_is_emptied() -> None:
    one = waiter()
    one.open(0)
    for cursor in range(1, QUEUE + 1):
        one.mark("seat")
        assert one.is_due
        one.deliver(page(cursor))
    assert not one.is_due
    one.take()
    assert one.is_due


async def test_a_failure_comes_after_the_pages_before_it() -> None:
    one = waiter()
    one.open(0)
    one.mark("seat")
    one.deliver(page(1))
    one.fail(Unreachable("gone"))
    assert not one.is_due
    await one.arrived()
    assert one.take() == [page(1)]
    assert one.has_arrived
    with pytest.raises(Unreachable):
        await one.arrived()
    with pytest.raises(Unreachable):
        one.take()


@pytest.mark.parametrize("event", ["page", "failure"])
async def test_what_arrives_rings_the_bell_of_the_whole_wait(event: str) -> None:
    bell = Bell()
    waiters = [waiter(bell) for _ in range(3)]
    rung = anyio.Event()

    async def listen() -> None:
        await bell.wait()
        rung.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await anyio.wait_all_tasks_blocked()
        assert not rung.is_set()
        if event == "page":
            waiters[1].deliver(page(1))
        else:
            waiters[1].fail(Unreachable("gone"))
        with anyio.fail_after(30):
            await rung.wait()


async def test_a_ring_before_the_wait_is_not_missed_and_counts_once() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    with anyio.fail_after(30):
        await bell.wait()
    with anyio.move_on_after(0.01) as scope:
        await bell.wait()
    assert scope.cancelled_caught


async def test_waiting_for_a_page_can_be_given_up_without_loss() -> None:
    one = waiter()
    with anyio.move_on_after(0.01):
        await one.arrived()
    one.deliver(page(1))
    with anyio.fail_after(30):
        await one.arrived()
    assert one.take() == [page(1)]


async def test_the_first_cue_counts_for_the_latency_and_a_gap_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    one = waiter()
    one.mark("gap")
    assert one.take_marks().cued_at is None
    one.mark("journal")
    now[0] = 101.0
    one.mark("seat")
    taken = one.take_marks()
    assert taken.cued_at == 100.0
    one.mark("seat")
    one.marks.add(taken)
    assert one.take_marks().cued_at == 100.0, "it was not read: the first cue still counts"
