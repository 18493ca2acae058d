"""A play: what happens on a model of Central and to its wires, when, and who waits meanwhile.

`invented` makes one of a number; each has its own mixture, so that some are all about one thing. `shorter` takes out of
a play whatever its failure does not need.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from typing import Any

import anyio
from anyio.abc import TaskGroup

from pursersd.feed.board import SWEEP
from pursersd.feed.centrals import Central
from unit.model_central import Delays, ModelBoard, ModelCentral
from unit.model_chain import Chain, serving
from unit.model_conversation import Conversation, virtual_engine

Step = tuple[Any, ...]
"""An act on a board ("act", board, name, …), a fault ("fault", name, …) or what a caller does ("caller", name, number)."""

SEATS = ("s0", "s1", "s2")
ACTORS = ("boss", *SEATS)
BOARDS = ("a", "b")
PAUSES = (0.0, 0.001, 0.002, 0.003, 0.004, 0.005, 0.01, 0.02, 0.04, 0.06, 0.1, 0.3, 3.0, 70.0)
DELAYS = (0.0, 0.001, 0.002, 0.003, 0.005, 0.01, 0.03, 0.1, 0.3)
REST = 30.0
"""Seconds after which everything must have been told: more than the longest pause between two attempts."""

ACTS: dict[str, list[Step]] = {
    "tell": [("tell", actor, *told) for actor in ACTORS for size in (1, 2, 3) for told in combinations(SEATS, size)],
    "create": [("create", actor, assignee) for actor in ("boss", "s0") for assignee in (None, "s1", "s2")],
    "claim": [("claim", actor, number) for actor in ACTORS for number in range(3)],
    "free": [(name, number) for name in ("unclaim", "lapse", "end_offer") for number in range(3)],
    "change": [
        (name, actor, number) for name in ("finish", "annotate") for actor in ("boss", "s0") for number in range(3)
    ],
    "offer": [("offer", number, seat) for number in range(3) for seat in SEATS],
    "other": [(name, actor) for name in ("announce", "change_state", "whisper") for actor in ACTORS],
    "seat": [(name, actor, seat) for name in ("rename", "retire") for actor in ("boss", "s0", "s1") for seat in SEATS],
    "archive": [("archive",)],
    "compact": [("compact", keep) for keep in (2, 3)],
}
FAULTS: dict[str, list[Step]] = {
    "journal": [("cut", "journal"), ("overflow", "journal")],
    "agent": [("cut", "agent"), ("overflow", "agent")],
    "reset": [("reset",)],
    "outage": [("down", mode) for mode in ("down", "refusing", "overloaded", "up", "up", "up")],
    "denial": [("deny", "journal"), ("deny", "agent"), ("allow",)],
}
PLAIN = {
    "pace": 0.0,
    "begins": True,
    "push": True,
    "omits": False,
    "only_mine": False,
    "timeout_s": 500,
    "think": 0.1,
    "delivered": (True,),
}
"""What an actor should be like if it makes no difference."""
OF_TICKETS = {"claim", "unclaim", "lapse", "end_offer", "finish", "annotate", "offer"}


@dataclass(frozen=True, slots=True)
class Actor:
    """One caller: which seat it waits on, and how."""

    board: str
    seat: str
    push: bool
    pace: float
    """Seconds that it takes before it looks at what arrived."""
    begins: bool
    """Whether it waits from the beginning."""


@dataclass(frozen=True, slots=True)
class Talker:
    """One conversation: which seat it waits on with a2a_wait, and how."""

    board: str
    seat: str
    push: bool
    omits: bool
    only_mine: bool
    timeout_s: int
    think: float
    delivered: tuple[bool, ...]
    begins: bool


@dataclass(frozen=True)
class Play:
    """Several bursts of steps, each step after a pause; after each burst all that happened must have been told."""

    actors: tuple[Actor | Talker, ...]
    bursts: tuple[tuple[tuple[float, Step], ...], ...]
    calls: tuple[float, ...]
    journal: tuple[float, ...]
    seats: tuple[float, ...]
    page_rows: int
    dispatch: bool
    coordinates: bool


def invented(number: int, *, talking: bool = False) -> Play:
    """The play of this number: with callers of the feed, or `talking` ones, who use a2a_wait."""
    chance = Random(number)
    pauses = chance.sample(PAUSES, 5)
    seats = chance.choice([SEATS, SEATS[:2], SEATS[:1]]) if talking else SEATS
    acts = _mixture(chance, list(ACTS), "create" if talking else "tell")
    faults = _mixture(chance, list(FAULTS), None)
    kinds = ["act"] * 6 + ["fault"] * chance.choice([0, 1, 3]) + ["caller"] * chance.choice([0, 1, 3])
    boards = chance.choice(["a", "aaaab"])
    count = chance.randint(2, 5)

    def step() -> Step:
        match chance.choice(kinds):
            case "act":
                return ("act", chance.choice(boards), *chance.choice(ACTS[chance.choice(acts)]))
            case "fault":
                return ("fault", *chance.choice(FAULTS[chance.choice(faults)]))
        return ("caller", chance.choice(["stop", "start", "again", "again"]), chance.randrange(count))

    def delays() -> tuple[float, ...]:
        return tuple(chance.choice(DELAYS) for _ in range(chance.randint(1, 6)))

    def actor() -> Actor | Talker:
        common = {
            "board": chance.choice(boards),
            "seat": chance.choice(seats),
            "push": chance.random() < 0.9,
            "begins": chance.random() < 0.8,
        }
        if not talking:
            return Actor(**common, pace=chance.choice([0.0, 0.0, 0.0, 0.05, 2.0]))
        return Talker(
            **common,
            omits=chance.random() < 0.4,
            only_mine=chance.random() < 0.5,
            timeout_s=chance.choice([1, 5, 500, 500]),
            think=chance.choice([0.1, 1.0, 5.0]),
            delivered=chance.choice([(True,), (True,), (True, False), (False, True, True)]),
        )

    return Play(
        actors=tuple(actor() for _ in range(count)),
        bursts=tuple(
            tuple((chance.choice(pauses), step()) for _ in range(chance.randint(2, 8)))
            for _ in range(chance.randint(1, 3))
        ),
        calls=delays(),
        journal=delays(),
        seats=delays(),
        page_rows=chance.choice([1000, 1000, 1, 2, 3]),
        dispatch=chance.random() < 0.5,
        coordinates=chance.random() < 0.5,
    )


def _mixture(chance: Random, names: list[str], favourite: str | None) -> list[str]:
    some = chance.sample(names, chance.randint(1, len(names)))
    return some + [favourite] * len(some) if favourite else some


async def performed(play: Play) -> None:
    """Perform a play; raises AssertionError for whatever a caller was told wrongly, or not."""
    random.seed(0)  # for the pauses between attempts
    model = ModelCentral(Delays(play.calls, play.journal, play.seats), coordinates=play.coordinates)
    for name in BOARDS:
        board = model.board(name, SEATS, dispatch=play.dispatch)
        board.page_rows = play.page_rows
    with virtual_engine():
        async with serving(model) as central, anyio.create_task_group() as tasks:
            callers = [_caller(actor, central, model.boards[actor.board], tasks) for actor in play.actors]
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
                await _rest(model, callers)
            for caller in callers:
                caller.start()
            await _rest(model, callers)
            for caller in callers:
                await caller.last()
            tasks.cancel_scope.cancel()


def _caller(actor: Actor | Talker, central: Central, board: ModelBoard, tasks: TaskGroup) -> Chain | Conversation:
    if isinstance(actor, Actor):
        return Chain(central, board, actor.seat, push=actor.push, pace=actor.pace, tasks=tasks)
    return Conversation(
        central,
        board,
        actor.seat,
        tasks,
        push=actor.push,
        omits=actor.omits,
        only_mine=actor.only_mine,
        timeout_s=actor.timeout_s,
        think=actor.think,
        delivered=actor.delivered,
    )


async def _rest(model: ModelCentral, chains: Sequence[Chain | Conversation]) -> None:
    if model.mode == "refusing":
        await anyio.sleep(2 * SWEEP)
        assert not model.streams, "Central cannot end: we keep a stream open"
    model.down("up")
    await anyio.sleep(REST)
    while model.changed > anyio.current_time() - REST / 2:  # a seat came back by itself, or one left the streams
        await anyio.sleep(REST / 2)
    for chain in chains:
        chain.check()
        if chain.is_running:
            chain.check_rest()


async def _do(step: Step, model: ModelCentral, chains: Sequence[Chain | Conversation]) -> None:
    match step:
        case ("act", board, name, *arguments):
            _act(model.boards[board], name, arguments)
        case ("fault", name, *arguments):
            getattr(model, name)(*arguments)
        case ("caller", name, number):
            if name != "start":
                await chains[number % len(chains)].stop()
            if name != "stop":
                chains[number % len(chains)].start()


def _act(board: ModelBoard, name: str, arguments: Sequence[Any]) -> None:
    if name in OF_TICKETS:
        if not board.tickets:
            return
        tickets = list(board.tickets)
        arguments = [tickets[a % len(tickets)] if isinstance(a, int) else a for a in arguments]
    getattr(board, name)(*(board.agent(a) if a in ACTORS else a for a in arguments))


def shorter(play: Play, fails: Callable[[Play], bool]) -> Play:
    """The play without all that can be left out or made plainer while it still fails."""
    while (less := next((less for less in _lessened(play) if fails(less)), None)) is not None:
        play = less
    return play


def _lessened(play: Play) -> Iterator[Play]:
    for at in range(len(play.bursts)):
        yield replace(play, bursts=_without(play.bursts, at))
    for at, burst in enumerate(play.bursts):
        for inner, (pause, step) in enumerate(burst):
            yield replace(play, bursts=_with(play.bursts, at, _without(burst, inner)))
            if pause:
                yield replace(play, bursts=_with(play.bursts, at, _with(burst, inner, (0.0, step))))
    for at, actor in enumerate(play.actors):
        yield replace(play, actors=_without(play.actors, at))
        for name, plain in PLAIN.items():
            if getattr(actor, name, plain) != plain:
                yield replace(play, actors=_with(play.actors, at, replace(actor, **{name: plain})))
    for name in ("calls", "journal", "seats"):
        delays = getattr(play, name)
        if len(delays) > 1:
            yield from (replace(play, **{name: (delay,)}) for delay in sorted(set(delays)))
            yield replace(play, **{name: delays[:-1]})
    for plain in (replace(play, page_rows=1000), replace(play, dispatch=False), replace(play, coordinates=False)):
        if plain != play:
            yield plain


def _without(items: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    return items[:at] + items[at + 1 :]


def _with(items: tuple[Any, ...], at: int, item: Any) -> tuple[Any, ...]:
    return (*items[:at], item, *items[at + 1 :])
