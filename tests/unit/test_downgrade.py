"""seats/downgrade: one declaration at each edge, and none for a seat that somebody uses."""

from dataclasses import replace
from typing import Any

import anyio
import pytest

from pursersd.errors import CentralError, Unreachable
from pursersd.seats.downgrade import AGAIN, Downgrades
from pursersd.seats.holder import Holder
from pursersd.seats.kept import NEVER, Kept
from pursersd.seats.seat import Seat, Seats
from unit.scripted_pool import ScriptedPool, seat

CAPABLE = (("can_work", True), ("tier_max", 3))
ANN = replace(seat("ann"), request=replace(seat("ann").request, capabilities=CAPABLE))


class Joins(Seats):
    """Notes what was declared."""

    def __init__(self) -> None:
        super().__init__(ScriptedPool().as_pool)
        self.declared: list[Any] = []
        self.error: CentralError | None = None

    async def keepalive(self, seat: Seat) -> None:
        self._note(dict(seat.request.capabilities or ()))

    async def declare(self, seat: Seat, changes: Any) -> None:
        self._note({**dict(seat.request.capabilities or ()), **changes})

    def _note(self, what: Any) -> None:
        if self.error is not None:
            raise self.error
        self.declared.append(what)


class Scene:
    def __init__(self) -> None:
        self.now = 0.0
        self.kept = Kept(clock=lambda: self.now)
        self.joins = Joins()
        self.downgrades = Downgrades(self.kept, self.joins)

    def holder(self, seat: Seat = ANN, *, downgrades: bool = True, limit: float = 10.0) -> Holder:
        holder = Holder(idle_limit=limit, downgrades=downgrades, clock=lambda: self.now)
        holder.enter(self.kept)
        holder.use(seat)
        return holder

    def run(self) -> list[Any]:
        """Do what is due now; what was declared by it."""
        before = len(self.joins.declared)
        if self.downgrades.next(self.now) <= self.now:
            anyio.run(self.downgrades.declare, self.now)
        return self.joins.declared[before:]


DOWN = {"can_work": False, "can_review": False, "tier_max": 3}
UP = dict(CAPABLE)


def test_one_declaration_at_each_edge() -> None:
    scene = Scene()
    holder = scene.holder()
    assert scene.downgrades.next(0.0) == 10.0
    scene.now = 10.0
    assert scene.run() == [DOWN]
    assert scene.downgrades.next(scene.now) == NEVER
    scene.now = 500.0
    assert scene.run() == []
    with holder.calling():
        assert scene.run() == [UP]
        assert scene.run() == []
    scene.now = 511.0
    assert scene.run() == [DOWN]


def test_a_seat_that_another_conversation_uses_is_left_alone() -> None:
    scene = Scene()
    scene.holder()
    other = scene.holder(downgrades=False)
    scene.now = 9.0
    with other.calling():
        scene.now = 100.0
        assert scene.run() == []
    assert scene.downgrades.next(scene.now) == 110.0
    scene.now = 110.0
    assert scene.run() == [DOWN], "all are idle, and one of them is of such a host"
    with other.calling():
        assert scene.run() == [UP]


@pytest.mark.parametrize("case", ["another host", "nothing declared"])
def test_who_is_never_downgraded(case: str) -> None:
    scene = Scene()
    scene.holder(seat("ann") if case == "nothing declared" else ANN, downgrades=case == "nothing declared")
    assert scene.downgrades.next(1e6) == NEVER


def test_a_central_that_is_away_is_asked_again() -> None:
    scene = Scene()
    scene.holder()
    scene.now, scene.joins.error = 10.0, Unreachable("away")
    assert scene.run() == []
    assert scene.downgrades.next(scene.now) == 10.0 + AGAIN
    scene.now, scene.joins.error = 15.0, None
    assert scene.run() == [DOWN]


def test_a_seat_whose_conversations_are_gone_is_forgotten() -> None:
    scene = Scene()
    holder = scene.holder()
    scene.now = 10.0
    assert scene.run() == [DOWN]
    holder.leave()
    assert scene.downgrades.next(scene.now) == NEVER
    scene.holder()
    assert scene.run() == [], "a new conversation has joined with what it can do"
