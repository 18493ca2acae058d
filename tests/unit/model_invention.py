"""Plays invented of a number, and made shorter when they fail.

The same number gives the same play. Each play has its own mixture of acts, faults and pauses, so that some are all about
one thing: with everything in all of them, rare combinations of a few would hardly ever come up.

Why not strategies of hypothesis, which would shrink by themselves? We tried: a sixth of its plays came twice, a third had
one caller only and three quarters one seat, where nothing is ever shared. 150 of them did not find that the cues of seats
were forgotten; of 150 of these, three do.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from typing import Any, Literal

from unit.model_play import ACTORS, SEATS, Actor, Play, Step, Talker

PAUSES = (0.0, 0.001, 0.002, 0.003, 0.004, 0.005, 0.01, 0.02, 0.04, 0.06, 0.1, 0.3, 3.0, 70.0)
DELAYS = (0.0, 0.001, 0.002, 0.003, 0.005, 0.01, 0.03, 0.1, 0.3)
QUICK = (0.0, 0.001, 0.002, 0.003, 0.005)

Menu = Mapping[str, Sequence[Step]]

ACTS: Menu = {
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
FAULTS: Menu = {
    "journal": [("cut", "journal"), ("overflow", "journal")],
    "agent": [("cut", "agent"), ("overflow", "agent")],
    "reset": [("reset",)],
    "outage": [("down", mode) for mode in ("down", "refusing", "overloaded", "up", "up", "up")],
    "denial": [("deny", "journal"), ("deny", "agent"), ("allow",)],
}

PLAIN = {
    "begins": True,
    "push": True,
    "pace": 0.0,
    "only_mine": False,
    "timeout_s": 500,
    "think": 0.1,
    "delivered": (True,),
}
"""What a caller should be like if it makes no difference."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the plays of a property are like. `favourite` is the act that half of all acts are."""

    callers: Literal["of the feed", "with a cursor", "without a cursor"] = "of the feed"
    favourite: str = "tell"
    faults: tuple[str, ...] = tuple(FAULTS)
    delays: tuple[float, ...] = DELAYS
    page_rows: tuple[int, ...] = (1000, 1000, 1, 2, 3)
    paces: tuple[float, ...] = (0.0, 0.0, 0.0, 0.05, 2.0)


def invented(number: int, kind: Kind) -> Play:
    """The play of this number."""
    chance = Random(number)
    pauses = chance.sample(PAUSES, 5)
    talks = kind.callers != "of the feed"
    seats = chance.choice([SEATS, SEATS[:2], SEATS[:1]]) if talks else SEATS
    acts = _mixture(chance, tuple(ACTS), kind.favourite)
    faults = _mixture(chance, kind.faults)
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
        return tuple(chance.choice(kind.delays) for _ in range(chance.randint(1, 6)))

    def actor() -> Actor | Talker:
        board, seat = chance.choice(boards), chance.choice(seats)
        begins, push = chance.random() < 0.8, chance.random() < 0.9
        if not talks:
            return Actor(board, seat, begins, push, pace=chance.choice(kind.paces))
        return Talker(
            board,
            seat,
            begins,
            push,
            omits=kind.callers == "without a cursor",
            only_mine=chance.random() < 0.5,
            timeout_s=chance.choice([5, 30, 500, 500]),
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
        page_rows=chance.choice(kind.page_rows),
        dispatch=chance.random() < 0.5,
        coordinates=chance.random() < 0.5,
    )


def _mixture(chance: Random, names: Sequence[str], favourite: str | None = None) -> list[str]:
    some = chance.sample(names, chance.randint(1, len(names)))
    return some + [favourite] * len(some) if favourite else some


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
