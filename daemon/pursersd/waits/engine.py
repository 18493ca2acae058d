"""a2a_wait: join, catch up, block until something concerns the caller, and say it in the bridge's words (bridge.md §2).

The engine knows time and order; what concerns whom is decided by rules/, what happened is found out by BoardWait.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

import anyio

from pursersd.errors import ConfigurationError, PursersError
from pursersd.feed.centrals import Central
from pursersd.rules import outcome, views
from pursersd.rules.arguments import WaitArguments, budget_s
from pursersd.rules.relevance import Watcher
from pursersd.seats.seat import Seat, SeatRequest
from pursersd.settings import Settings
from pursersd.waits.board import BoardWait, Event, Memory

PROGRESS_MESSAGE = "Waiting for a Pursers subscription cue"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who waits: what the engine needs of a conversation for one call."""

    settings: Settings
    memory: Memory
    connect: Callable[[], Awaitable[Central]]
    """The conversation's Central; raises a PursersError when it cannot have one."""
    seat_request: Callable[[str | None], SeatRequest]
    """The seat for a call, by its agent_name argument."""
    watching: Callable[[Seat, BoardWait], None]
    """Told when the wait begins to watch a board, so that `ps` can show how."""
    progress: Callable[[float, float, str], Awaitable[None]]
    """Tell the host: seconds waited, seconds in all, text."""


@dataclass(slots=True)
class _Found:
    """What ended the blocking. Filled in the same step as the board's cursor moves: a deadline cannot come between."""

    events: list[Event] = field(default_factory=list)
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Waited:
    """A finished wait: the tool result, and how to acknowledge it at Central once the host has it (None: no need to)."""

    result: dict[str, object]
    acknowledge: Callable[[], Awaitable[None]] | None = None


async def wait(caller: Caller, arguments: WaitArguments, *, age_s: float = 0.0) -> Waited:
    """Carry out one call of a2a_wait whose arguments were checked.

    `age_s` is how long the caller has waited already, when the call came again because the daemon or the link was lost:
    only the remaining time is waited. A failure becomes the structured result of bridge.md §1.6; nothing has moved then.
    """
    started = time.monotonic() - max(0.0, age_s)
    try:
        return await _wait(caller, arguments, started)
    except PursersError as error:
        result = outcome.wait_error(
            error,
            caller_cursor=arguments.since_seq,
            wait_mode=caller.settings.wait_mode,
            boards=arguments.boards,
            home=caller.settings.board,
            waited_s=time.monotonic() - started,
        )
        return Waited(result)


async def _wait(caller: Caller, arguments: WaitArguments, started: float) -> Waited:
    if arguments.boards is not None:
        raise ConfigurationError(
            "This version waits on the conversation's own board only. Leave out the argument boards, "
            "and set ONBOARD_BOARD_ID to wait on another board."
        )
    central = await caller.connect()
    seat = await central.seats.join(caller.seat_request(arguments.agent_name))
    view = views.choose(arguments.wait_for, seat.role)
    budget = budget_s(arguments.timeout_s, caller.settings.role, seat.role)
    with central.feed.watch(seat, push=caller.settings.wait_mode == "push") as waiter:
        board = BoardWait(
            feed=central.feed.boards[seat.board],
            waiter=waiter,
            watcher=Watcher(
                board=seat.board,
                agent_id=seat.agent_id,
                agent_name=seat.agent_name,
                principal_id=seat.principal_id,
                view=view,
                only_mine=arguments.only_mine,
                project=arguments.project,
            ),
            memory=caller.memory,
            cursor=arguments.since_seq if isinstance(arguments.since_seq, int) else 0,
            cursor_omitted=arguments.since_seq is None,
        )
        caller.watching(seat, board)
        await central.feed.ready(waiter)
        result = await _until_events(caller, board, started, budget)
    if arguments.since_seq is not None:
        return Waited(result)
    reached = board.cursor
    return Waited(result, lambda: board.feed.catchup.acknowledge(seat, reached))


async def _until_events(caller: Caller, board: BoardWait, started: float, budget: float) -> dict[str, object]:
    """Enter the board, then block until something concerns the caller or the budget is spent; the tool's result."""
    found = _Found()
    mode: Literal["push", "poll"] = "poll"
    entered = False
    remaining = started + budget - time.monotonic()
    with anyio.move_on_after(max(0.0, remaining)):
        found.events = await board.enter()
        entered = True
        if not found.events and not board.partial:
            mode = "poll" if board.is_polled else "push"
            await _block(caller, board, found, started, budget)
    if entered and mode == "push" and board.is_polled:
        mode = "poll"
    if not entered:
        # The caller's cursor stays where it was: what was read but not judged will be read again.
        board.partial = True
    at_entry = bool(found.events) and found.reason is None
    board.returned(found.events, at_entry=at_entry)
    waited_s = 0.0 if at_entry else time.monotonic() - started
    return outcome.wait_result(
        new_seq=None if board.cursor_omitted and not entered else board.cursor,
        events=found.events,
        waited_s=waited_s,
        mode=mode,
        reason=None if found.reason == _JUDGED else found.reason,
        resynced=board.resynced,
        compacted=board.compacted,
        partial=board.partial,
        warnings=board.warnings,
    )


_JUDGED = "judged"
"""Marks a return whose reason is that of its events."""


async def _block(caller: Caller, board: BoardWait, found: _Found, started: float, budget: float) -> None:
    """Wait for events or open work, telling the host how long it takes; the deadline ends it from outside."""
    failure: PursersError | None = None
    async with anyio.create_task_group() as tasks:
        every = caller.settings.host.progress_every_s
        if every is not None:
            tasks.start_soon(_report, caller, started, budget, every)
        try:
            await _next_events(caller, board, found)
        except PursersError as error:
            failure = error  # raised below: a task group would wrap it
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _next_events(caller: Caller, board: BoardWait, found: _Found) -> None:
    next_scan = time.monotonic() + caller.settings.scan_interval_s
    while True:
        due = min(next_scan, caller.memory.suppression.next_expiry(board.watcher) or next_scan)
        with anyio.move_on_after(max(0.0, due - time.monotonic())) as clock:
            await board.arrived()
        if not clock.cancelled_caught:
            if events := await board.take():
                found.events, found.reason = events, "journal" if board.is_polled else _JUDGED
                return
            continue
        next_scan = time.monotonic() + caller.settings.scan_interval_s
        if events := await board.scan():
            found.events, found.reason = events, outcome.scan_reason(events)
            return


async def _report(caller: Caller, started: float, budget: float, every: float) -> None:
    while True:
        await anyio.sleep(every)
        await caller.progress(time.monotonic() - started, budget, PROGRESS_MESSAGE)
