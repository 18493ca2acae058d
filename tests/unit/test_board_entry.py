"""waits/board: how a wait enters its board, and what is remembered of its result. On the real Central: central/test_waits.

The real pool, seats and feed run on the model of Central, in virtual time.
"""

from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

import anyio

from pursersd.errors import ToolFailed
from pursersd.feed.centrals import Central
from pursersd.feed.waiter import QUEUE, Bell
from pursersd.rules.relevance import Watcher
from pursersd.rules.suppression import Suppression, SyntheticGuard
from pursersd.seats.seat import SeatRequest
from pursersd.waits.board import BoardWait, Memory
from unit.model_board import PRINCIPAL, ModelBoard
from unit.model_central import Delays, ModelCentral
from unit.model_chain import serving
from unit.virtual_time import now, run

BOSS = "AI-boss"
REST = 5.0


class Scene:
    """A board of the model with seats of ours, on which waits enter."""

    def __init__(self, central: Central, model: ModelCentral, stack: ExitStack) -> None:
        self.central = central
        self.model = model
        self.board: ModelBoard = model.boards["a"]
        self.memory = Memory(Suppression(clock=now), SyntheticGuard())
        self._stack = stack

    def agent(self, name: str) -> str:
        return self.board.agent(name)

    async def arrive(self, name: str = "ann", cursor: int | None = 0, **options: Any) -> BoardWait:
        """A wait that is about to enter: its seat has joined, its streams are open."""
        seat = await self.central.seats.join(SeatRequest("a", name, "worker"), name)
        waiter = self._stack.enter_context(self.central.feed.watch(seat, push=True, bell=Bell()))
        await self.central.feed.ready(waiter)
        await anyio.sleep(REST)
        return BoardWait(
            feed=self.central.feed.boards["a"],
            waiter=waiter,
            watcher=Watcher("a", seat.agent_id, name, PRINCIPAL, "claimable", only_mine=False),
            memory=options.pop("memory", self.memory),
            cursor=cursor or 0,
            cursor_omitted=cursor is None,
            **options,
        )

    async def enter(self, name: str = "ann", cursor: int | None = 0, **options: Any) -> tuple[BoardWait, list[Any]]:
        wait = await self.arrive(name, cursor, **options)
        return wait, await wait.enter()

    async def requests(self, act: Callable[[], Awaitable[object]]) -> int:
        """How many requests it costs, with what comes of it."""
        counters = self.central.pool.counters
        before = counters.requests
        await act()
        await anyio.sleep(REST)
        return counters.requests - before

    def windows(self) -> dict[str, int]:
        return {window.name: window.count for window in self.central.pool.windows.snapshot() if window.count}


def on_a_board(body: Callable[[Scene], Awaitable[None]], *, dispatch: bool = False) -> None:
    """Run a test on a board where nothing has happened."""

    async def whole() -> None:
        model = ModelCentral(Delays())
        model.board("a", {"ann", "bob"}, dispatch=dispatch)
        async with serving(model) as central:
            with ExitStack() as stack:
                await body(Scene(central, model, stack))

    run(whole)


def told(events: list[Any]) -> list[object]:
    """Numbers of the journal's events; ids of the tickets that were found by looking."""
    return [event.get("seq", event.get("ticket_id")) for event in events]


def test_the_history_comes_first_and_live_pages_go_on_behind_it() -> None:
    async def body(scene: Scene) -> None:
        scene.board.create(BOSS)
        wait, events = await scene.enter()
        assert (told(events), wait.cursor, wait.reached) == ([1], 1, 1)
        assert wait.entered
        scene.board.create(BOSS)
        await anyio.sleep(REST)
        assert wait.has_arrived
        assert (told(await wait.take()), wait.cursor) == ([2], 2)
        assert not wait.partial
        assert not wait.resynced
        assert wait.warnings == []

    on_a_board(body)


def test_what_was_cued_before_the_entry_is_not_read_again_and_nothing_is_asked_in_vain() -> None:
    async def body(scene: Scene) -> None:
        wait = await scene.arrive()
        scene.board.create(BOSS)
        await anyio.sleep(REST)
        assert wait.waiter.marks
        assert await scene.requests(wait.enter) == 2  # the journal and the tickets: no join, nothing twice
        assert not wait.waiter.marks

    on_a_board(body)


def test_what_is_cued_during_the_entry_is_read_when_the_gate_opens() -> None:
    async def body(scene: Scene) -> None:
        wait = await scene.arrive()
        confirm = wait.feed.confirm

        async def meanwhile(*arguments: Any, **options: Any) -> None:
            await confirm(*arguments, **options)
            scene.board.create(BOSS)
            await anyio.sleep(REST)

        wait.feed.confirm = meanwhile  # type: ignore[method-assign]
        assert await wait.enter() == []
        await anyio.sleep(REST)
        assert told(await wait.take()) == [1]

    on_a_board(body)


def test_what_is_written_between_the_journal_and_the_tickets_is_told_by_its_event_and_once() -> None:
    async def body(scene: Scene) -> None:
        wait = await scene.arrive()
        read, happened = scene.central.pool.read, False

        async def meanwhile(tool: str, *arguments: Any, **options: Any) -> Any:
            nonlocal happened
            if tool == "ticket_list" and not happened:
                happened = True
                scene.board.create(BOSS)
            return await read(tool, *arguments, **options)

        scene.central.pool.read = meanwhile  # type: ignore[method-assign]
        assert (told(await wait.enter()), wait.cursor) == ([1], 1)
        await anyio.sleep(REST)
        assert await wait.take() == []

    on_a_board(body)


def test_an_offer_that_this_seat_has_taken_is_none_any_more() -> None:
    async def body(scene: Scene) -> None:
        await scene.arrive()
        ticket = scene.board.create(BOSS, scene.agent("ann"))
        assert [event["reason"] for event in (await scene.enter(cursor=1))[1]] == ["offer"]
        scene.board.claim(scene.agent("ann"), ticket)
        assert (await scene.enter(cursor=1))[1] == []

    on_a_board(body, dispatch=True)


def test_who_took_what_had_piled_up_is_read_for_again() -> None:
    async def body(scene: Scene) -> None:
        wait, _ = await scene.enter()
        for _ in range(QUEUE + 2):
            scene.board.announce(BOSS)
            await anyio.sleep(REST)
        assert wait.waiter.cursor == QUEUE
        assert await wait.take() == []
        await anyio.sleep(REST)
        assert await wait.take() == []
        assert wait.cursor == QUEUE + 2

    on_a_board(body)


def test_a_seat_that_left_before_the_entry_is_back_after_it() -> None:
    async def body(scene: Scene) -> None:
        wait = await scene.arrive()
        await wait.enter()
        scene.board.retire(BOSS, scene.agent("ann"))
        again, _ = await scene.enter(cursor=0)
        await anyio.sleep(REST)
        assert scene.board.active[scene.agent("ann")]
        assert again.entered

    on_a_board(body)


def test_open_work_is_told_once_and_not_to_a_caller_that_comes_again() -> None:
    async def body(scene: Scene) -> None:
        ticket = scene.board.create(BOSS)
        wait, events = await scene.enter(cursor=1)
        assert told(events) == [ticket]
        wait.returned(events, at_entry=True)
        assert (await scene.enter(cursor=1))[1] == []
        fresh = Memory(Suppression(clock=now), SyntheticGuard())
        assert (await scene.enter(cursor=1, memory=fresh, was_shown=True))[1] == []
        fresh = Memory(Suppression(clock=now), SyntheticGuard())
        assert told((await scene.enter(cursor=1, memory=fresh))[1]) == [ticket]

    on_a_board(body)


def test_two_things_each_keep_a_caller_from_being_told_at_once_of_the_same_open_work() -> None:
    """That it was told of it, for a while; and that nothing has happened since, however long ago that is."""

    async def body(scene: Scene) -> None:
        ticket = scene.board.create(BOSS)
        forgetful = Memory(Suppression(0.0, clock=now), SyntheticGuard())
        for memory in (forgetful, scene.memory):
            wait, events = await scene.enter(cursor=1, memory=memory)
            assert told(events) == [ticket]
            wait.returned(events, at_entry=True)
        assert (await scene.enter(cursor=1, memory=forgetful))[1] == []
        assert (await scene.enter(cursor=1, memory=Memory(scene.memory.suppression, SyntheticGuard())))[1] == []

    on_a_board(body)


def test_work_that_an_event_told_of_is_known_until_something_happens_to_it() -> None:
    async def body(scene: Scene) -> None:
        ticket = scene.board.create(BOSS)
        wait, events = await scene.enter(cursor=0)
        wait.returned(events, at_entry=True)
        assert (await scene.enter(cursor=1))[1] == []
        assert await wait.scan() == []
        scene.board._write(BOSS, "ticket_claim_refused", {scene.agent("ann")}, ticket)
        assert told((await scene.enter(cursor=1))[1]) == [ticket]

    on_a_board(body)


def test_what_a_live_event_told_of_is_known_to_the_next_wait() -> None:
    async def body(scene: Scene) -> None:
        wait, _ = await scene.enter()
        scene.board.create(BOSS)
        await anyio.sleep(REST)
        wait.returned(await wait.take(), at_entry=False)
        assert (await scene.enter(cursor=1))[1] == []

    on_a_board(body)


def test_of_a_seat_two_share_what_one_was_given_at_its_entry_does_not_wake_the_other() -> None:
    async def body(scene: Scene) -> None:
        other, _ = await scene.enter(cursor=0, memory=Memory(Suppression(clock=now), SyntheticGuard()))
        wait = await scene.arrive()
        other.waiter.opened = False  # it is read for only after the entry of the first
        scene.board.create(BOSS)
        events = await wait.enter()
        wait.returned(events, at_entry=True)
        other.waiter.open(0)
        other.feed.nudge()
        await anyio.sleep(REST)
        assert told(events) == [1]
        assert await other.take() == []
        assert other.cursor == 1

    on_a_board(body)


def test_a_caller_without_a_cursor_gets_a_short_history_and_no_backlog() -> None:
    async def body(scene: Scene) -> None:
        first = scene.board.create(BOSS)
        scene.board.acked[scene.agent("ann")] = 1
        second = scene.board.create(BOSS)
        scene.board.claim(scene.agent("bob"), second)
        scene.board.unclaim(second)
        wait, events = await scene.enter(cursor=None)
        assert (told(events), wait.cursor) == ([4], 4)
        assert wait.compacted is not None
        assert (wait.compacted.dropped, scene.windows()) == (1, {"LW-COMPACT": 1})
        assert first not in told(events)
        wait, events = await scene.enter(cursor=1)
        assert wait.compacted is None
        assert told(events)[-1] == first

    on_a_board(body)


def test_a_short_history_that_lost_nothing_is_no_loss() -> None:
    async def body(scene: Scene) -> None:
        scene.board.create(BOSS)
        wait, events = await scene.enter(cursor=None)
        assert (told(events), wait.compacted is not None, scene.windows()) == ([1], True, {})

    on_a_board(body)


def test_who_lost_its_place_goes_on_at_the_end_and_is_warned() -> None:
    async def body(scene: Scene) -> None:
        for _ in range(3):
            scene.board.announce(BOSS)
        scene.board.compact(keep=1)
        wait, events = await scene.enter(cursor=1)
        assert (events, wait.cursor, wait.resynced) == ([], 3, True)
        assert [warning["code"] for warning in wait.warnings] == ["lossy_window"]
        assert scene.windows() == {"LW-RESYNC": 1}

    on_a_board(body)


def test_who_is_ahead_of_the_journal_is_set_back_and_warned() -> None:
    async def body(scene: Scene) -> None:
        scene.board.announce(BOSS)
        wait, events = await scene.enter(cursor=7)
        assert (events, wait.cursor, wait.resynced) == ([], 1, False)
        assert wait.warnings == [{"code": "cursor_ahead_clamped", "requested_cursor": 7, "clamped_cursor": 1}]

    on_a_board(body)


def test_the_end_of_my_work_is_told_though_the_ticket_is_in_no_list() -> None:
    async def body(scene: Scene) -> None:
        ticket = scene.board.create(BOSS)
        scene.board.claim(scene.agent("ann"), ticket)
        await scene.arrive()
        scene.board.annotate(BOSS, ticket)
        scene.board.finish(BOSS, ticket)
        _, events = await scene.enter(cursor=2)  # what was said of it before is past
        assert [(event["seq"], event["reason"]) for event in events] == [(4, "held_ticket_update")]

    on_a_board(body)


def test_tickets_that_cannot_be_read_are_said_and_hide_no_event() -> None:
    async def body(scene: Scene) -> None:
        scene.board.create(BOSS)
        wait = await scene.arrive()
        read = scene.central.pool.read

        async def broken(tool: str, *arguments: Any, **options: Any) -> Any:
            if tool == "ticket_list":
                raise ToolFailed(tool, "the listing is broken")
            return await read(tool, *arguments, **options)

        scene.central.pool.read = broken  # type: ignore[method-assign]
        (event,) = await wait.enter()
        assert (event["projection_state"], wait.partial, wait.cursor) == ("unprojected", True, 1)
        assert "ticket_projection_failed" in [warning["code"] for warning in wait.warnings]

    on_a_board(body)


def test_a_board_that_hands_out_work_is_known_by_its_tickets_and_its_events() -> None:
    async def by_history(scene: Scene) -> None:
        scene.board.create(BOSS)
        wait, _ = await scene.enter(cursor=1)
        assert wait.is_dispatched

    async def by_event(scene: Scene) -> None:
        wait, _ = await scene.enter()
        assert not wait.is_dispatched
        scene.board.create(BOSS, scene.agent("ann"))
        await anyio.sleep(REST)
        events = await wait.take()
        assert wait.is_dispatched
        assert "offer" in [event["reason"] for event in events]
        assert [event["kind"] for event in await wait.offers()] == ["ticket_offered"]

    async def by_looking(scene: Scene) -> None:
        wait, _ = await scene.enter()
        wait.waiter.opened = False
        scene.board.create(BOSS)
        await anyio.sleep(REST)
        await wait.scan()
        assert wait.is_dispatched

    on_a_board(by_looking, dispatch=True)
    on_a_board(by_history, dispatch=True)
    on_a_board(by_event, dispatch=True)
