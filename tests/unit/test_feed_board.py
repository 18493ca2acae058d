"""feed/board: who is read when, and whose page is whose. On the real Central: central/test_feed."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from pursersd.errors import CentralError, ToolFailed, Unreachable
from pursersd.feed import board as module
from pursersd.feed.board import BoardFeed
from pursersd.feed.waiter import QUEUE, Waiter
from pursersd.ids import agent_id
from pursersd.seats.observer import Observer
from pursersd.seats.seat import Seats
from unit.scripted_pool import BOARD, PRINCIPAL, ScriptedPool, seat

pytestmark = pytest.mark.anyio

PATIENCE = 30.0  # seconds for something that must happen


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Scene:
    """A board's feed at work, its journal in `pool`."""

    def __init__(self) -> None:
        self.pool = ScriptedPool()
        self.seats = Seats(self.pool.as_pool)
        self.feed = BoardFeed(self.pool.as_pool, self.seats, BOARD)
        self.waiters: dict[str, Waiter] = {}

    def add(self, name: str, *, cursor: int | None = None, push: bool = True) -> Waiter:
        """A waiter whose gate is open at the end of the journal."""
        waiter = self.waiters[name] = Waiter(seat(name.partition("/")[0]), push=push)
        waiter.open(len(self.pool.rows) if cursor is None else cursor)
        self.feed.add(waiter)
        self.pool.members.append(waiter.seat.agent_name)
        return waiter

    def write(self, *recipients: str, cued: bool = True, **fields: str) -> None:
        """Write an event and cue as Central does: the journal, then the recipients."""
        self.pool.write(*recipients, **fields)
        if cued:
            self.cue(*recipients)

    def cue(self, *recipients: str) -> None:
        self.feed.journal_cued(frozenset(waiter.seat.uri for waiter in self.waiters.values()))
        for waiter in self.waiters.values():
            if not recipients or waiter.seat.agent_name in recipients:
                self.feed.seat_cued(waiter.seat.uri)

    async def settled(self) -> None:
        """Everybody has been read for who had to be."""
        with anyio.fail_after(PATIENCE):
            while any(waiter.is_due for waiter in self.waiters.values()):
                await anyio.sleep(0.001)
        await anyio.wait_all_tasks_blocked()

    async def answer(self) -> None:
        """Let Central answer what it was asked, and nothing that it is asked then."""
        go, self.pool.go = self.pool.go, anyio.Event()
        go.set()
        await anyio.wait_all_tasks_blocked()

    @property
    def reads(self) -> list[str]:
        """Who read from where, in order."""
        return [asked for asked in self.pool.asked if " from " in asked]

    def got(self, name: str) -> list[int]:
        return [event["seq"] for page in self.waiters[name].take() for event in page.events]


@asynccontextmanager
async def running() -> AsyncIterator[Scene]:
    scene = Scene()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(scene.feed.run)
        tasks.start_soon(scene.feed.sweep)
        yield scene
        tasks.cancel_scope.cancel()


async def until(condition: Callable[[], object]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():
            await anyio.sleep(0.001)


async def test_one_read_serves_all_with_the_same_cursor() -> None:
    async with running() as scene:
        for name in "abcde":
            scene.add(name)
        scene.write()
        await scene.settled()
        assert [scene.got(name) for name in "abcde"] == [[1]] * 5
        assert scene.pool.asked == ["a from 0"]
        assert {waiter.cursor for waiter in scene.waiters.values()} == {1}


async def test_when_all_cues_are_there_it_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COALESCE", 3600.0)
    async with running() as scene:
        scene.add("a")
        scene.add("b")
        scene.add("c").begin()
        scene.waiters["c"].opened = False  # who is still entering is not read for, and keeps nobody waiting
        scene.write("a", "b")
        await scene.settled()
        assert scene.pool.asked == ["a from 0"]


@pytest.mark.parametrize("came", ["journal", "seat"])
async def test_the_other_stream_is_waited_for(came: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COALESCE", 3600.0)
    async with running() as scene:
        waiter = scene.add("a")
        scene.pool.write("a")
        if came == "journal":
            scene.cue("nobody")
        else:
            scene.feed.seat_cued(waiter.seat.uri)
        await anyio.wait_all_tasks_blocked()
        assert scene.pool.asked == []


async def test_what_is_for_one_is_for_nobody_else() -> None:
    async with running() as scene:
        for name in "abc":
            scene.add(name)
        scene.write("b")
        await scene.settled()
        assert [scene.got(name) for name in "abc"] == [[], [1], []]
        assert scene.pool.asked == ["b from 0"]


async def test_two_rows_are_not_shared() -> None:
    """With two rows in the page nobody knows which of them another seat was cued for."""
    async with running() as scene:
        for name in "ab":
            scene.add(name)
        scene.write("a")
        scene.write("b")
        await scene.settled()
        assert [scene.got(name) for name in "ab"] == [[1], [2]]
        assert sorted(asked for asked in scene.pool.asked if "from" in asked) == ["a from 0", "b from 0"]


def offer(scene: Scene, name: str) -> None:
    """A ticket on a board that hands out its work: everybody may see it, one is told that it is offered."""
    scene.write("nobody", kind="ticket_created", status_to="open")
    scene.pool.rows[-1] = (scene.pool.rows[-1][0], None)
    scene.write(name, kind="ticket_offered", offered_agent_id=agent_id(BOARD, PRINCIPAL, name))


async def test_a_ticket_that_is_offered_to_one_is_read_once_for_all() -> None:
    async with running() as scene:
        for name in "abcde":
            scene.add(name)
        for number in (0, 2):
            offer(scene, "b")
            await scene.settled()
            assert [scene.got(name) for name in "abcde"] == [
                [number + 1, number + 2] if name == "b" else [number + 1] for name in "abcde"
            ]
        assert scene.pool.asked == ["b from 0", "b from 2"]
        assert {waiter.cursor for waiter in scene.waiters.values()} == {4}
        assert scene.feed.is_quiet


async def test_offers_to_two_are_read_twice_for_all() -> None:
    async with running() as scene:
        for name in "abcde":
            scene.add(name)
        offer(scene, "b")
        offer(scene, "d")
        await scene.settled()
        told = {"b": [1, 2, 3], "d": [1, 3, 4]}
        assert {name: scene.got(name) for name in "abcde"} == {name: told.get(name, [1, 3]) for name in "abcde"}
        assert scene.reads == ["b from 0", "d from 0"]


async def test_who_may_have_missed_a_cue_reads_offers_for_itself() -> None:
    async with running() as scene:
        for name in "abc":
            scene.add(name)
        scene.waiters["c"].mark("gap")
        offer(scene, "b")
        await scene.settled()
        assert [scene.got(name) for name in "abc"] == [[1], [1, 2], [1]]
        assert sorted(scene.reads) == ["b from 0", "c from 0"]


async def test_who_is_cued_as_a_seat_is_not_kept_waiting_by_those_who_look_in_vain() -> None:
    """A row that nobody sees costs each a read of its own: two hundred take seconds, and an offer must not wait for them."""
    async with running() as scene:
        for name in "abcde":
            scene.add(name)
        scene.pool.go = anyio.Event()
        scene.write("somebody else")
        await until(lambda: scene.pool.asked)
        scene.write("e")
        scene.pool.go.set()
        await scene.settled()
        assert scene.reads[:5] == ["a from 0", "e from 0", "b from 0", "c from 0", "d from 0"]
        assert [scene.got(name) for name in "abcde"] == [[], [], [], [], [2]]
        assert scene.feed.is_quiet


@pytest.mark.parametrize("every", [1, 2])
async def test_who_looks_in_vain_has_its_turn_between_those_who_are_cued(every: int) -> None:
    """During each read, or each second one, another seat is cued."""
    async with running() as scene:
        for name in "abcdef":
            scene.add(name)
        scene.pool.go = anyio.Event()
        scene.write("somebody else")
        for number in range(1, 10):
            with anyio.fail_after(PATIENCE):
                while len(scene.reads) < number:
                    await scene.answer()
            if number % every == 0:
                scene.write("ef"[number // every % 2])
        scene.pool.go.set()
        await scene.settled()
        assert set("abcd") < {read[0] for read in scene.reads[:9]}
        assert [scene.got(name) for name in "abcd"] == [[]] * 4


async def test_waiters_of_one_seat_share_every_page() -> None:
    async with running() as scene:
        scene.add("a/1")
        scene.add("a/2")
        for _ in range(3):
            scene.write("a")
        await scene.settled()
        assert scene.got("a/1") == scene.got("a/2") == [1, 2, 3]
        assert scene.pool.asked == ["a from 0"]


async def test_different_cursors_are_read_apart() -> None:
    async with running() as scene:
        for _ in range(2):
            scene.pool.write()
        scene.add("a", cursor=0)
        scene.add("b", cursor=1)
        scene.write()
        await scene.settled()
        assert (scene.got("a"), scene.got("b")) == ([1, 2, 3], [2, 3])


async def test_cues_during_a_read_cause_another_one() -> None:
    async with running() as scene:
        scene.add("a")
        scene.pool.go = anyio.Event()
        scene.write()
        await until(lambda: scene.pool.asked)
        scene.write()
        scene.write()
        scene.pool.go.set()
        await scene.settled()
        assert scene.got("a") == [1, 2, 3]
        assert len(scene.pool.asked) == 2


async def test_a_seat_that_was_not_listened_to_reads_for_itself() -> None:
    async with running() as scene:
        for name in "ab":
            scene.add(name)
        scene.pool.write("a", "b")
        scene.feed.journal_cued(frozenset({scene.waiters["a"].seat.uri}))
        scene.feed.seat_cued(scene.waiters["a"].seat.uri)
        await scene.settled()
        assert (scene.got("a"), scene.got("b")) == ([1], [1])
        assert sorted(scene.pool.asked) == ["a from 0", "b from 0"]


async def test_a_seat_whose_stream_was_interrupted_is_read_when_it_is_back() -> None:
    """Its cue may have been lost with the stream, also if the journal was cued all the time."""
    async with running() as scene:
        for name in "ab":
            scene.add(name)
        both = frozenset(waiter.seat.uri for waiter in scene.waiters.values())
        scene.pool.write("a", "b")
        scene.feed.journal_cued(both)  # the seat stream is dead, but nobody knows yet
        await scene.settled()
        assert (scene.got("a"), scene.got("b")) == ([1], [])
        scene.feed.seats_changed(frozenset(), both)
        scene.feed.seats_changed(both, frozenset())
        scene.feed.nudge()
        await scene.settled()
        assert (scene.got("a"), scene.got("b")) == ([], [1])
        scene.feed.seats_changed(both, frozenset())
        assert not any(waiter.marks for waiter in scene.waiters.values())  # nothing was lost this time


async def test_a_gap_is_read_for_everybody() -> None:
    async with running() as scene:
        for name in "ab":
            scene.add(name)
        scene.write(cued=False)
        scene.feed.gap()
        await scene.settled()
        assert (scene.got("a"), scene.got("b")) == ([1], [1])


async def test_a_closed_gate_is_not_read_for() -> None:
    async with running() as scene:
        waiter = Waiter(seat("a"), push=True)
        scene.waiters["a"] = waiter
        scene.feed.add(waiter)
        scene.write()
        await scene.settled()
        assert scene.pool.asked == []
        waiter.open(0)
        scene.feed.nudge()
        await scene.settled()
        assert scene.got("a") == [1]


async def test_a_waiter_that_does_not_take_is_not_read_for() -> None:
    async with running() as scene:
        scene.add("a")
        for number in range(1, QUEUE + 3):
            scene.write()
            await scene.settled()
            assert scene.waiters["a"].cursor == min(number, QUEUE)
        assert scene.got("a") == list(range(1, QUEUE + 1))
        scene.feed.nudge()
        await scene.settled()
        assert scene.got("a") == [QUEUE + 1, QUEUE + 2]


@pytest.mark.parametrize("reason", ["asked for", "no stream"])
async def test_polling_goes_by_the_clock(reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL", 0.01)
    async with running() as scene:
        scene.add("a", push=reason == "no stream")
        scene.add("b")
        scene.feed.poll_reason = "denied" if reason == "no stream" else None
        scene.feed.nudge()
        scene.write(cued=False)
        await until(lambda: scene.got("a") == [1])
        if reason == "no stream":
            await until(lambda: scene.got("b") == [1])
        else:
            assert scene.got("b") == []


async def test_others_that_are_read_do_not_hasten_the_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "POLL", 3600.0)
    async with running() as scene:
        scene.add("polled", push=False)
        scene.add("pushed")
        await until(lambda: scene.reads)
        for _ in range(3):
            scene.pool.write("pushed")
            scene.feed.seat_cued(scene.waiters["pushed"].seat.uri)
            await until(lambda: scene.got("pushed"))
        assert [read for read in scene.reads if read.startswith("polled")] == ["polled from 0"]


@pytest.mark.parametrize("cue", ["journal", "gap", "another journal", None])
async def test_what_was_read_of_the_board_is_history_with_the_next_cue(cue: str | None) -> None:
    """The shared reads of tickets are the waits' own; a seat's cue comes with one of its board's journal."""
    async with running() as scene:
        await scene.feed.reads.read("board_status", {})
        match cue:
            case "journal":
                scene.feed.journal_cued(frozenset())
            case "gap":
                scene.feed.gap()
            case "another journal":
                scene.feed.replaced()
        await scene.feed.reads.read("board_status", {})
        assert scene.pool.asked == ["who is there"] * (2 if cue else 1)


async def test_a_waiter_that_left_is_marked_no_more_and_its_seat_is_forgotten() -> None:
    async with running() as scene:
        first, second = scene.add("a"), scene.add("a/2")
        scene.feed.remove(first)
        scene.write("a")
        await scene.settled()
        assert not first.marks
        assert scene.got("a/2") == [1]
        scene.feed.remove(second)
        scene.feed.seat_cued(second.seat.uri)
        assert not second.marks
        assert not scene.feed._by_seat  # a daemon that runs for months has seen many


@pytest.mark.parametrize(("cued", "asked"), [(True, 1), (False, 0)])
async def test_the_doubt_about_a_seat_whose_waiter_has_left_is_not_forgotten(cued: bool, asked: int) -> None:
    """It saw a row less than there was, and was cued for another that nobody reads for it any more."""
    async with running() as scene:
        for name in "ab":
            scene.add(name)
        scene.write("nobody")
        await scene.settled()
        scene.pool.asked.clear()
        if cued:
            scene.waiters["a"].mark("seat")
        scene.feed.remove(scene.waiters.pop("a"))
        scene.feed.add(Waiter(seat("a"), push=True))
        scene.waiters["b"].mark("journal")
        scene.feed.nudge()
        await scene.settled()
        assert scene.pool.asked.count("who is there") == asked


@pytest.mark.parametrize("hidden", [True, False])
async def test_who_enters_past_hidden_rows_right_after_its_join_is_looked_for(hidden: bool) -> None:
    async with running() as scene:
        waiter = scene.add("a")
        await scene.seats.join(waiter.seat.request)
        scene.pool.write("nobody")
        scene.pool.asked.clear()
        await scene.feed.confirm(waiter.seat, 1, hidden=hidden)
        scene.feed.nudge()
        await until(lambda: scene.feed.is_quiet)
        assert scene.pool.asked == (["who is there"] if hidden else [])


async def test_a_central_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_RETRY", 0.001)
    async with running() as scene:
        for name in "ab":
            scene.add(name)
        scene.pool.errors = [Unreachable("gone")] * 3
        scene.write()
        await until(lambda: scene.waiters["a"].has_arrived and scene.waiters["b"].has_arrived)
        assert (scene.got("a"), scene.got("b")) == ([1], [1])


@pytest.mark.parametrize("error", [ToolFailed("t", "board access denied"), CentralError("what")])
async def test_a_refusal_ends_one_wait_and_no_other(error: CentralError) -> None:
    async with running() as scene:
        for name in "ab":
            scene.add(name)
        scene.pool.errors = [error]
        scene.write()
        await scene.settled()
        assert scene.waiters["a"].failure is error
        assert scene.got("b") == [1]


async def test_a_cursor_beyond_the_journal_is_put_to_its_end() -> None:
    async with running() as scene:
        scene.pool.write()
        scene.add("a", cursor=50)
        scene.cue()
        await scene.settled()
        (page,) = scene.waiters["a"].take()
        assert (page.events, page.next_cursor, page.resynced) == ([], 1, True)
        scene.write()
        await scene.settled()
        assert scene.got("a") == [2]


async def test_a_journal_that_was_compacted_past_the_cursor_is_said_and_left_behind() -> None:
    async with running() as scene:
        for _ in range(9):
            scene.pool.write()
        scene.add("a", cursor=2)
        scene.pool.compacted_through = 5
        scene.cue()
        await scene.settled()
        (page,) = scene.waiters["a"].take()
        assert (page.events, page.next_cursor, page.resynced) == ([], 9, True)
        assert counted(scene) == {"LW-RESYNC": 1}
        scene.write()
        await scene.settled()
        assert scene.got("a") == [10]


async def test_in_another_journal_everybody_goes_on_at_its_end() -> None:
    async with running() as scene:
        for _ in range(3):
            scene.pool.write()
        scene.add("a", cursor=1)
        scene.add("b", cursor=1)
        scene.feed.replaced()
        await scene.settled()
        for name in "ab":
            (page,) = scene.waiters[name].take()
            assert (page.events, page.next_cursor, page.resynced) == ([], 3, True)
        assert counted(scene) == {"LW-RESYNC": 2}
        scene.write()
        await scene.settled()
        assert [scene.got(name) for name in "ab"] == [[4], [4]]


def counted(scene: Scene) -> dict[str, int]:
    return {window.name: window.count for window in scene.pool.windows.snapshot() if window.count}


async def test_a_waiter_that_left_is_not_read_for() -> None:
    async with running() as scene:
        for name in "ab":
            scene.add(name)
        scene.pool.go = anyio.Event()
        scene.write("a", "b")
        scene.write("a", "b")
        await until(lambda: scene.pool.asked)
        scene.feed.remove(scene.waiters["b"])
        scene.pool.go.set()
        await scene.settled()
        assert scene.pool.asked == ["a from 0"]


@pytest.mark.parametrize("missing", ["a", ""])
async def test_a_seat_that_is_cued_and_sees_nothing_joins_if_it_has_left(missing: str) -> None:
    """The event of its leaving is hidden from it (central.md §5, §4.5); so are its own acts."""
    async with running() as scene:
        for name in "ab":
            scene.add(name)
            await scene.seats.join(scene.waiters[name].seat.request)
        scene.pool.members = ["b"] if missing else ["a", "b"]
        scene.pool.asked.clear()
        scene.write("a", "b", kind="agent_lifecycle_changed", actor="a")
        await scene.settled()
        assert scene.got("b") == [1]
        assert scene.pool.asked.count("who is there") == 1
        assert [asked for asked in scene.pool.asked if "joins" in asked] == (
            ["a joins as keepalive"] if missing else []
        )


@pytest.mark.parametrize("seen_by", ["b", "nobody"])
async def test_a_seat_that_left_without_a_cue_is_looked_for_with_the_next_sweep(
    seen_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SWEEP", 0.05)
    async with running() as scene:
        for name in "ab":
            scene.add(name)
            await scene.seats.join(scene.waiters[name].seat.request)
        scene.pool.members = ["b"]
        scene.pool.asked.clear()
        scene.write(seen_by, kind="agent_lifecycle_changed", actor="a")
        await until(lambda: "who is there" in scene.pool.asked)
        after = scene.pool.asked.index("who is there") + 1
        await until(lambda: scene.pool.asked[after:])
        assert scene.pool.asked[after] == "a joins as keepalive"


async def test_a_seat_whose_leaving_it_may_not_have_been_told_joins_after_the_gap() -> None:
    async with running() as scene:
        for name in "ab":
            scene.add(name)
            await scene.seats.join(scene.waiters[name].seat.request)
        scene.pool.members = ["b"]
        scene.write("b", cued=False)
        scene.feed.gap()
        await scene.settled()
        assert "a joins as keepalive" in scene.pool.asked
        assert "b joins as keepalive" not in scene.pool.asked


async def test_a_doubt_about_a_seat_outlives_a_central_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_RETRY", 0.001)
    async with running() as scene:
        scene.add("a")
        scene.pool.members.clear()
        scene.write("nobody", cued=False)
        read = scene.pool.read

        async def once_in_vain(tool: str, *arguments: Any, **options: Any) -> Any:
            if tool == "board_status":
                monkeypatch.setattr(scene.pool, "read", read)
                raise Unreachable("gone for a moment")
            return await read(tool, *arguments, **options)

        monkeypatch.setattr(scene.pool, "read", once_in_vain)
        scene.feed.gap()
        await until(lambda: "a joins as keepalive" in scene.pool.asked)


async def test_a_late_cue_costs_a_read_and_no_join() -> None:
    async with running() as scene:
        scene.add("a")
        scene.write(cued=False)
        scene.feed.journal_cued(frozenset({scene.waiters["a"].seat.uri}))
        await scene.settled()
        scene.feed.seat_cued(scene.waiters["a"].seat.uri)
        await scene.settled()
        assert scene.pool.asked == ["a from 0", "a from 1"]
        assert scene.got("a") == [1]


async def test_while_somebody_waits_the_seats_are_kept_alive_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SWEEP", 0.004)
    async with running() as scene:
        await anyio.sleep(0.02)
        assert scene.pool.asked == []  # nobody waits
        for name in ["a", "b", "c", "c/2"]:
            await scene.seats.join(scene.add(name).seat.request, "a user")
        first = len(scene.pool.asked)
        scene.pool.errors = [Unreachable("gone")]  # which ends nothing
        await until(lambda: len(scene.pool.asked) >= first + 7)
        turns = [asked.partition(" ")[0] for asked in scene.pool.asked[first : first + 7]]
        assert turns == ["a", *"abcabc"]  # the seat that was joined longest ago, also when several wait on one
        assert {asked.partition(" ")[2] for asked in scene.pool.asked[first:]} == {"joins as keepalive"}


@pytest.mark.parametrize(("seats", "pause_s"), [(0, 60.0), (1, 60.0), (200, 60.0), (360, 60.0), (720, 30.0)])
def test_every_seat_has_its_turn_long_before_it_goes_stale(seats: int, pause_s: float) -> None:
    assert module.sweep_pause_s(seats) == pause_s
    day_s = 24 * 3600  # the shortest stale_after_days
    assert seats * pause_s * 1.25 < day_s / 2


class Reluctant(Observer):
    def may_join(self, agent: str) -> bool:
        return agent != agent_id(BOARD, PRINCIPAL, "b")


async def test_a_seat_whose_lease_shall_lapse_is_not_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SWEEP", 0.004)
    async with running() as scene:
        scene.seats.observer = Reluctant()
        for name in "abc":
            await scene.seats.join(scene.add(name).seat.request, "a user")
        first = len(scene.pool.asked)
        await until(lambda: len(scene.pool.asked) >= first + 4)
        assert {asked.partition(" ")[0] for asked in scene.pool.asked[first:]} == {"a", "c"}
