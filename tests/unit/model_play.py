"""A play: what happens on a model of Central and to its wires, when, and who waits meanwhile; and how it is performed."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.abc import TaskGroup

from pursersd.feed.board import SWEEP
from pursersd.feed.centrals import Central
from unit.model_board import ModelBoard
from unit.model_central import Delays, ModelCentral
from unit.model_chain import Chain, serving
from unit.model_conversation import Conversation, virtual_engine
from unit.virtual_time import run

Step = tuple[Any, ...]
"""An act on a board ("act", board, name, …), a fault ("fault", name, …) or what a caller does ("caller", name, number).

An act names seats by their names (`boss` is somebody else's) and tickets by numbers, the first one created being 0.
"""

Check = Callable[[Any], None]
"""What must be true of a caller whenever all has come to rest; raises AssertionError."""

SEATS = ("s0", "s1", "s2")
ACTORS = ("boss", *SEATS)
BOARDS = ("a", "b")

REST = 30.0
"""Seconds after which everything must have been told: more than the longest pause between two attempts."""

OUTAGE = 2.0
"""Seconds that Central stays away when nothing else happens: long enough for somebody to ask in vain."""

RESTLESS = 3
"""How often a rest is prolonged. Callers that come back all the time, to a board that denies them, allow none."""

OF_TICKETS = {"claim", "unclaim", "lapse", "end_offer", "finish", "annotate", "offer"}


@dataclass(frozen=True, slots=True)
class Actor:
    """A caller of the feed: which seat it waits on, and how."""

    board: str
    seat: str
    begins: bool
    """Whether it waits from the beginning."""
    push: bool
    pace: float
    """Seconds that it takes before it looks at what arrived."""


@dataclass(frozen=True, slots=True)
class Talker:
    """A conversation that uses a2a_wait: on which seat, and how. See `Conversation`."""

    board: str
    seat: str
    begins: bool
    push: bool
    omits: bool
    only_mine: bool
    timeout_s: int
    think: float
    delivered: tuple[bool, ...]


@dataclass(frozen=True)
class Play:
    """Several bursts of steps, each step after a pause; after each burst all that happened must have been told.

    `calls`, `journal` and `seats` are how long calls and the cues of the two streams take, in turn; `page_rows` how many
    rows Central reads for one page; `dispatch` whether it hands out work by offers.
    """

    actors: tuple[Actor | Talker, ...]
    bursts: tuple[tuple[tuple[float, Step], ...], ...]
    calls: tuple[float, ...]
    journal: tuple[float, ...]
    seats: tuple[float, ...]
    page_rows: int
    dispatch: bool
    coordinates: bool


def perform(play: Play, *checks: Check) -> None:
    """Perform a play in virtual time. Raises AssertionError for whatever a caller was told wrongly, or not."""
    try:
        run(lambda: _performed(play, checks))
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        raise error from None


async def _performed(play: Play, checks: Sequence[Check]) -> None:
    random.seed(0)  # for the pauses between attempts
    model = ModelCentral(Delays(play.calls, play.journal, play.seats), coordinates=play.coordinates)
    for name in BOARDS:
        board = model.board(name, SEATS, dispatch=play.dispatch)
        board.page_rows = play.page_rows
    with virtual_engine():
        async with serving(model) as central, anyio.create_task_group() as tasks:
            callers = [_caller(actor, central, model, tasks) for actor in play.actors]
            for caller in callers:
                if isinstance(caller, Conversation):
                    caller.shares = [c for c in callers if c is not caller and c.agent == caller.agent]
            for actor, caller in zip(play.actors, callers, strict=True):
                if actor.begins:
                    caller.start()
            for burst in play.bursts:
                for pause, step in burst:
                    await anyio.sleep(pause)
                    await _do(step, model, callers)
                await _rest(model, callers, checks)
            for caller in callers:
                caller.start()
            await _rest(model, callers, checks)
            for caller in callers:
                await caller.last()
            tasks.cancel_scope.cancel()


def _caller(actor: Actor | Talker, central: Central, model: ModelCentral, tasks: TaskGroup) -> Chain | Conversation:
    if isinstance(actor, Actor):
        return Chain(central, model, actor.board, actor.seat, push=actor.push, pace=actor.pace, tasks=tasks)
    return Conversation(
        central,
        model.boards[actor.board],
        actor.seat,
        tasks,
        push=actor.push,
        omits=actor.omits,
        only_mine=actor.only_mine,
        timeout_s=actor.timeout_s,
        think=actor.think,
        delivered=actor.delivered,
    )


async def _rest(model: ModelCentral, callers: Sequence[Chain | Conversation], checks: Sequence[Check]) -> None:
    if model.mode == "refusing":
        await anyio.sleep(2 * SWEEP)
        assert not model.streams, "Central cannot end: we keep a stream open"
    if model.mode != "up":
        await anyio.sleep(OUTAGE)
        model.down("up")
    await anyio.sleep(REST)
    for _ in range(RESTLESS):
        if model.changed <= anyio.current_time() - REST / 2:
            break  # else a seat came back by itself, or one left the streams
        await anyio.sleep(REST / 2)
    for caller in callers:
        for check in checks:
            check(caller)


async def _do(step: Step, model: ModelCentral, callers: Sequence[Chain | Conversation]) -> None:
    match step:
        case ("act", board, name, *arguments):
            _act(model.boards[board], name, arguments)
        case ("fault", name, *arguments):
            getattr(model, name)(*arguments)
        case ("caller", name, number):
            if name != "start":
                await callers[number % len(callers)].stop()
            if name != "stop":
                callers[number % len(callers)].start()


def _act(board: ModelBoard, name: str, arguments: Sequence[Any]) -> None:
    if name in OF_TICKETS:
        if not board.tickets:
            return
        tickets = list(board.tickets)
        arguments = [tickets[a % len(tickets)] if isinstance(a, int) else a for a in arguments]
    getattr(board, name)(*(board.agent(a) if a in ACTORS else a for a in arguments))
