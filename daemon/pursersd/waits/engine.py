"""a2a_wait: choose the boards, join, catch up, block until something concerns the caller, and say it in the bridge's words.

The engine knows order and shape; what concerns whom is decided by rules/, what happened on a board is found out by
BoardWait, when to look is known to Watch (bridge.md §2).
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass

import anyio

from pursersd.central.account import current
from pursersd.errors import CentralError, PursersError, ToolFailed, Unreachable, let_go
from pursersd.feed.centrals import Central
from pursersd.feed.registries import read_registry
from pursersd.feed.waiter import Bell
from pursersd.rules import multi_result, outcome, routing, selection, views
from pursersd.rules.arguments import WaitArguments, budget_s
from pursersd.rules.relevance import Watcher
from pursersd.rules.selection import Selection
from pursersd.seats.seat import Seat, Source
from pursersd.waits.board import BoardWait
from pursersd.waits.caller import Caller
from pursersd.waits.joining import Joined, join
from pursersd.waits.renewal import whoever_we_are
from pursersd.waits.watch import Routes, Watch

Result = dict[str, object]

REGISTRY_LIMIT = 10.0
"""Longest time in seconds that a call waits for the project registry, which is before its own time counts: with the join
after it, it must fit into the margin that is kept for the host."""


@dataclass(frozen=True, slots=True)
class Waited:
    """A finished wait: the tool result, and how to acknowledge it at Central once the host has it (None: no need to)."""

    result: Result
    acknowledge: Callable[[], Awaitable[None]] | None = None
    withdraw: Callable[[], None] | None = None
    """What to call when the host will never have the result: it was not told what is in it."""
    past_setup: bool = True
    """Whether it had its seats, or failed because the call names one that Central refuses: such results are counted."""
    cued_at: float | None = None
    """When the cue came that ended it (monotonic); None when none did."""


@dataclass(slots=True)
class _Progress:
    """How far a call has come."""

    past_setup: bool = False


async def wait(
    caller: Caller, arguments: WaitArguments, *, age_s: float = 0.0, began_elsewhere: bool = False
) -> Waited:
    """Carry out one call of a2a_wait whose arguments were checked.

    `age_s` is how long the caller has waited already, when the call came again because the daemon or the link was lost:
    only the remaining time is waited. `began_elsewhere`: it is not known here what its caller was shown before. A failure
    becomes the structured result of bridge.md §1.6; nothing has moved then.
    """
    started = time.monotonic() - max(0.0, age_s)
    progress = _Progress()
    try:
        return await whoever_we_are(
            caller,
            lambda caller, source: _wait(caller, arguments, started, source, progress, began_elsewhere),
            resumed=age_s > 0,
        )
    except PursersError as error:
        named = arguments.agent_name is not None and isinstance(error, ToolFailed)
        result = outcome.wait_error(
            error,
            caller_cursor=arguments.since_seq,
            wait_mode=caller.settings.wait_mode,
            boards=arguments.boards,
            home=caller.settings.board,
            waited_s=time.monotonic() - started,
        )
        let_go(error)
        return Waited(result, past_setup=progress.past_setup or named)


async def _wait(
    caller: Caller,
    arguments: WaitArguments,
    started: float,
    source: Source,
    progress: _Progress,
    began_elsewhere: bool,
) -> Waited:
    central = await caller.connect()
    chosen, routes = await _choose(caller, central, arguments)
    joined = await join(caller, central, chosen, arguments.agent_name, source=source)
    progress.past_setup = True
    if not joined.seats:
        return Waited(_none_joined(caller, arguments, joined, started))
    watchers = {board: _watcher(seat, arguments) for board, seat in joined.seats.items()}
    budget = budget_s(arguments.timeout_s, caller.settings.role, *(seat.role for seat in joined.seats.values()))
    bell = Bell()
    with ExitStack() as stack:
        stack.enter_context(caller.holder.listening(bell))
        boards = [
            _board(
                caller, central, stack, bell, joined.seats[name], watchers[name], chosen.cursors[name], began_elsewhere
            )
            for name in joined.seats
        ]
        caller.watching(boards)
        watch = Watch(caller, boards, bell, routes, single=chosen.shape == "single")
        async with anyio.create_task_group() as tasks:  # side by side: each may take as long as its stream
            for board in boards:
                tasks.start_soon(central.feed.ready, board.waiter)
        _note_fallbacks(boards)
        await watch.run(started, budget)
        _note_fallbacks(boards)
        result = _result(watch, chosen, joined, started)
    omitted = [(board, board.cursor) for board in boards if board.cursor_omitted and board.entered]
    cued_at = min((board.cued_at for board in boards if board.cued_at is not None), default=None)
    if not omitted and not watch.cues:
        return Waited(result, withdraw=watch.withdraw, cued_at=cued_at)
    return Waited(result, lambda: _delivered(caller, watch, omitted), watch.withdraw, cued_at=cued_at)


async def _choose(caller: Caller, central: Central, arguments: WaitArguments) -> tuple[Selection, Routes | None]:
    """The boards of the call, and the registry that routes its events if it came from there."""
    settings = caller.settings
    known: dict[str, object] | PursersError | None = None
    if selection.wants_registry(arguments.boards, settings.boards_filter):
        known = await _registry(central, settings.board, min(REGISTRY_LIMIT, settings.host.margin_s / 3))
    chosen = selection.select(
        arguments.boards,
        arguments.since_seq,
        home=settings.board,
        boards_filter=settings.boards_filter,
        registry=known,
    )
    if not chosen.routed or not isinstance(known, dict):
        return chosen, None
    return chosen, Routes(known, routing.is_claimable_call(arguments.wait_for, settings.role))


async def _registry(central: Central, board: str, limit_s: float) -> dict[str, object] | PursersError:
    """The registry on the home board, or why it cannot be had."""
    try:
        with anyio.fail_after(limit_s):
            await central.pool.require_board(board)
            return await read_registry(central.pool, board)
    except TimeoutError:
        return Unreachable(f"Central did not tell it in {limit_s:.0f} s")
    except PursersError as error:
        return error


def _watcher(seat: Seat, arguments: WaitArguments) -> Watcher:
    return Watcher(
        board=seat.board,
        agent_id=seat.agent_id,
        agent_name=seat.agent_name,
        principal_id=seat.principal_id,
        view=views.choose(arguments.wait_for, seat.role),
        only_mine=arguments.only_mine,
        project=arguments.project,
    )


def _board(
    caller: Caller,
    central: Central,
    stack: ExitStack,
    bell: Bell,
    seat: Seat,
    watcher: Watcher,
    cursor: int | None,
    began_elsewhere: bool,
) -> BoardWait:
    waiter = stack.enter_context(central.feed.watch(seat, push=caller.settings.wait_mode == "push", bell=bell))
    return BoardWait(
        feed=central.feed.boards[seat.board],
        waiter=waiter,
        watcher=watcher,
        memory=caller.memory,
        cursor=cursor or 0,
        cursor_omitted=cursor is None,
        was_shown=began_elsewhere and bool(cursor),
    )


def _note_fallbacks(boards: list[BoardWait]) -> None:
    """Note in the statistics which boards are polled although the conversation wants push."""
    account = current()
    for board in boards:
        if account is not None and board.waiter.push and board.feed.poll_reason is not None:
            account.polled(board.name, board.feed.poll_reason)


def _result(watch: Watch, chosen: Selection, joined: Joined, started: float) -> Result:
    """What the caller gets, in the shape of its call (bridge.md §2.10)."""
    waited_s = time.monotonic() - started
    if chosen.shape == "single":
        (board,) = watch.boards
        return outcome.wait_result(
            new_seq=board.reached,
            events=watch.found.events,
            waited_s=waited_s if watch.blocked or not board.entered else 0.0,
            mode="push" if (watch.blocked or watch.cues) and not board.is_polled else "poll",
            reason=watch.found.reason,
            resynced=board.resynced,
            compacted=board.compacted,
            partial=board.partial,
            warnings=_warnings(watch, board),
            registry_warning=chosen.registry_warning,
        )
    return multi_result.multi_result(
        cursors={**chosen.cursors, **watch.left_at},
        joined={board.watcher.board: _outcome(watch, board) for board in watch.boards},
        skipped=joined.skipped | watch.failed,
        events=watch.found.events,
        waited_s=waited_s,
    )


def _outcome(watch: Watch, board: BoardWait) -> multi_result.BoardOutcome:
    return multi_result.BoardOutcome(
        cursor=board.reached,
        mode=multi_result.board_mode(blocked=watch.blocked, polled=board.is_polled),
        resynced=board.resynced,
        compacted=board.compacted,
        partial=board.partial,
        warnings=_warnings(watch, board),
    )


def _warnings(watch: Watch, board: BoardWait) -> list[dict[str, object]]:
    """What the caller should know of a board; also why it was polled, if the wait went on beyond its entry."""
    if not watch.blocked or board.poll_reason is None:
        return board.warnings
    return [*board.warnings, outcome.polled_warning(board.poll_reason)]


def _none_joined(caller: Caller, arguments: WaitArguments, joined: Joined, started: float) -> Result:
    return multi_result.none_joined(
        boards=list(joined.skipped),
        skipped=joined.skipped,
        final=joined.is_final,
        requested=arguments.boards,
        caller_cursor=arguments.since_seq,
        wait_mode=caller.settings.wait_mode,
        home=caller.settings.board,
        waited_s=time.monotonic() - started,
    )


async def _delivered(caller: Caller, watch: Watch, omitted: list[tuple[BoardWait, int]]) -> None:
    """The host has the result. Raises CentralError if Central cannot be told."""
    caller.holder.delivered(watch.cues)
    await _acknowledge(omitted)


async def _acknowledge(reached: list[tuple[BoardWait, int]]) -> None:
    """Move the seats' own cursors, all at once: the next wait without a cursor must find each of these under way.

    Raises the first failure once the others are through.
    """
    failures: list[CentralError] = []

    async def acknowledge(board: BoardWait, cursor: int) -> None:
        try:
            await board.feed.catchup.acknowledge(board.waiter.seat, cursor)
        except CentralError as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        for board, cursor in reached:
            tasks.start_soon(acknowledge, board, cursor)
    if failures:
        raise failures[0]
