"""Watch the boards of one wait: enter them, then block until one of them has something for the caller.

Whatever is found is noted in the same step in which its board's cursor moves, so that a deadline or a cancellation
between two boards loses nothing.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

from pursersd.errors import PursersError, ToolFailed, UnknownBoard
from pursersd.feed.waiter import Bell
from pursersd.rules import outcome, routing
from pursersd.rules.awards import is_for_one
from pursersd.rules.events import OFFER_RECONCILIATION, ticket_of
from pursersd.rules.multi_result import tagged
from pursersd.rules.reconciliation import Found, as_offers
from pursersd.waits.board import BoardWait, Event
from pursersd.waits.caller import Caller

PROGRESS_MESSAGE = "Waiting for a Pursers subscription cue"

RECONCILE_LIMIT = 1.0
"""Longest time that a wait which is about to return spends on a last look at the offers, in seconds."""

ROUTE_LIMIT = 2.0
"""Longest time that the routes of a result may take, in seconds."""

ROUTE_THREADS = 4
"""How many results may get their routes at once. Threads whose folder hangs stay, and others need threads, too."""

_route_threads: RunVar[anyio.CapacityLimiter] = RunVar("route threads")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Routes:
    """The registry by which the events of a call get their routes (bridge.md §2.7)."""

    registry: Mapping[str, object]
    claimable_call: bool

    async def apply(self, events: Sequence[Event]) -> list[Event]:
        """The events with their routes; without, when they cannot be had in ROUTE_LIMIT.

        It happens in a thread, because a registered folder may lie on a disk that hangs.
        """
        work = partial(routing.route, events, self.registry, claimable_call=self.claimable_call)
        with anyio.move_on_after(ROUTE_LIMIT):
            return await to_thread.run_sync(work, abandon_on_cancel=True, limiter=_limiter())
        log.warning("the folders of the project registry do not answer: events are told without their routes")
        return list(events)


def _limiter() -> anyio.CapacityLimiter:
    """Of this event loop."""
    try:
        return _route_threads.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(ROUTE_THREADS)
        _route_threads.set(limiter)
        return limiter


class Watch:
    """The boards of one call and what they brought; `found` is the answer once `run` has returned.

    `blocked` says whether the wait went beyond its entry. `failed` are boards of many that Central took away meanwhile.
    """

    def __init__(
        self, caller: Caller, boards: Sequence[BoardWait], bell: Bell, routes: Routes | None, *, single: bool
    ) -> None:
        self.boards = list(boards)
        self.found = Found()
        self.blocked = False
        self.failed: dict[str, str] = {}
        self.left_at: dict[str, int] = {}
        """Up to where those of them were read whose cursor the caller left out."""
        self.cues: list[Event] = []
        """What the answer tells of leases."""
        self._caller = caller
        self._bell = bell
        self._routes = routes
        self._single = single
        self._events: dict[str, list[Event]] = {}
        """What was found, by board: nothing of it is lost from here on."""
        self._reason: str | None = None
        """What a single board's result says instead of what its events say."""

    async def run(self, started: float, budget_s: float) -> None:
        """Wait until there is something for the caller or `budget_s` after `started` has passed.

        Raises the error of a board if no other is left, and every error that is not one board's.
        """
        with anyio.move_on_after(max(0.0, started + budget_s - time.monotonic())):
            await self._enter()
            if not await self._told() and not any(board.partial for board in self.boards):
                self.blocked = True
                await self._block(started, budget_s)
        for board in self.boards:
            # What was read but not judged in time is read again: the caller's cursor is still before it.
            board.partial |= not board.entered
        told = await self._told()
        self.cues = [cue for cue in self._cues() if any(cue is event for event in told)]
        self.found = await self._reconciled(Found(told, self._reason))
        for board in self.boards:
            found = self._of(board)
            board.returned(found, at_entry=not self.blocked)
            self._caller.holder.given(board.waiter.seat.agent_id, (ticket_of(x) for x in found if is_for_one(x)))

    def withdraw(self) -> None:
        """The caller will never have what was found."""
        for board in self.boards:
            board.withdrawn(self._of(board))

    async def _enter(self) -> None:
        """Enter all boards side by side: none has to wait for the history of another."""
        failures: list[tuple[BoardWait, PursersError]] = []

        async def enter(board: BoardWait) -> None:
            try:
                self._events[board.name] = self._entry_events(await board.enter())
            except PursersError as error:
                failures.append((board, error))

        async with anyio.create_task_group() as tasks:
            for board in self.boards:
                tasks.start_soon(enter, board)
        for board, error in failures:
            self._lose(board, error)

    def _entry_events(self, events: list[Event]) -> list[Event]:
        if self._single:
            return events
        return [as_offers([event])[0] if event.get("source") == OFFER_RECONCILIATION else event for event in events]

    async def _block(self, started: float, budget_s: float) -> None:
        """Wait for news, telling the host how long it takes; the deadline ends it from outside."""
        failure: PursersError | None = None
        async with anyio.create_task_group() as tasks:
            every = self._caller.settings.host.progress_every_s
            if every is not None:
                tasks.start_soon(self._report, started, budget_s, every)
            try:
                await self._until_news()
            except PursersError as error:
                failure = error  # raised below: a task group would wrap it
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _until_news(self) -> None:
        next_scan = self._next_scan()
        while not await self._told():
            with anyio.move_on_after(max(0.0, self._due(next_scan) - time.monotonic())) as clock:
                await self._arrival()
            if not clock.cancelled_caught:
                await self._take()
                continue
            next_scan = self._next_scan()
            await self._scan()

    def _next_scan(self) -> float:
        return time.monotonic() + self._caller.settings.scan_interval_s

    def _due(self, next_scan: float) -> float:
        """When to look at the open work again: at the scan, or when something that was shown may be shown again."""
        suppression = self._caller.memory.suppression
        return min([next_scan, *(at for board in self.boards if (at := suppression.next_expiry(board.watcher)))])

    async def _arrival(self) -> None:
        while not self._cues() and not any(board.has_arrived for board in self.boards):
            await self._bell.wait()

    async def _take(self) -> None:
        """Judge what arrived, board by board in the order of the call."""
        for board in [board for board in self.boards if board.has_arrived]:
            losses = len(board.warnings)
            try:
                events = await board.take()
            except PursersError as error:
                self._lose(board, error)
                continue
            self._note(board, events, "journal" if board.is_polled else None)
            has_lost_its_place = len(board.warnings) > losses  # what came meanwhile, only its open work tells
            if (board.scans_again or has_lost_its_place) and not events:
                await self._look(board)

    async def _scan(self) -> None:
        for board in self.boards:
            await self._look(board)

    async def _look(self, board: BoardWait) -> None:
        events = await board.scan()
        self._note(board, events, outcome.scan_reason(events))

    def _note(self, board: BoardWait, events: list[Event], reason: str | None) -> None:
        if events:
            self._events.setdefault(board.name, []).extend(events)
            self._reason = reason if self._single else None

    def _lose(self, board: BoardWait, error: PursersError) -> None:
        """A board failed: that is the call's failure if it was the last one, or if the cause is not the board's."""
        if self._single or len(self.boards) == 1 or not isinstance(error, (ToolFailed, UnknownBoard)):
            raise error
        self.boards.remove(board)
        self.failed[board.name] = str(error)
        if board.cursor_omitted and board.entered:
            self.left_at[board.name] = board.cursor

    async def _told(self) -> list[Event]:
        """All that was found so far, as the caller gets it; empty when nothing of it is for the caller (D7)."""
        cues = self._cues()
        if not any(self._events.values()):
            return cues
        events = self._shaped(self._events)
        if self._routes is not None:
            routed = await self._routes.apply(events)
            self._pass_over(events, routed)
            events = routed
        return cues + events

    def _pass_over(self, events: Sequence[Event], routed: Sequence[Event]) -> None:
        """What the routes took away no seat can claim, however long this wait goes on."""
        kept = {(event["board_id"], ticket_of(event)) for event in routed}
        for board in self.boards:
            board.passed_over(
                [e for e in events if e["board_id"] == board.name and (board.name, ticket_of(e)) not in kept]
            )
        if not routed:
            self._events.clear()

    def _cues(self) -> list[Event]:
        """What the keeping of leases has to tell the seats of this wait; it is no board's event."""
        return [cue for board in self.boards for cue in self._caller.holder.cues(board.waiter.seat.agent_id)]

    def _shaped(self, events: Mapping[str, list[Event]]) -> list[Event]:
        if self._single:
            return list(events.get(self.boards[0].name, ()))
        return tagged([board.name for board in self.boards], events)

    async def _reconciled(self, found: Found) -> Found:
        """A last look at the offers, when the answer tells of none (bridge.md §2.6, final reconcile)."""
        dispatched = [board for board in self.boards if board.is_dispatched and board.entered]
        if not dispatched or not found.needs_offers:
            return found
        offers: dict[str, list[Event]] = {}
        with anyio.move_on_after(RECONCILE_LIMIT):
            for board in dispatched:
                offers[board.name] = await board.offers()
        told = self._shaped(offers)
        return found.with_offers(told if self._routes is None else await self._routes.apply(told))

    def _of(self, board: BoardWait) -> list[Event]:
        return [event for event in self.found.events if self._single or event["board_id"] == board.name]

    async def _report(self, started: float, budget_s: float, every: float) -> None:
        while True:
            await anyio.sleep(every)
            await self._caller.progress(time.monotonic() - started, budget_s, PROGRESS_MESSAGE)
