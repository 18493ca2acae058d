"""Seats of hosts that keep the servers of closed windows: while nobody is at work they take none (bridge.md §3, codex).

One join declares that when the last conversation of a seat goes idle, and one takes it back when the first of them is
active again: never from time to time, which would make Central's offers come and go.
"""

import logging

import anyio

from pursersd.errors import CentralError
from pursersd.seats.kept import NEVER, Kept
from pursersd.seats.seat import Seat, Seats

log = logging.getLogger(__name__)

ANSWER = 10.0
"""Seconds to wait for the join."""

AGAIN = 5.0
"""Seconds until it is tried again after Central did not answer."""

_NO_WORK = {"can_work": False, "can_review": False}


class Downgrades:
    """Which seats of a pool were declared to take no work, and when that changes."""

    def __init__(self, kept: Kept, seats: Seats) -> None:
        self._kept = kept
        self._seats = seats
        self._down: set[str] = set()
        self._again: dict[str, float] = {}

    def __repr__(self) -> str:
        return f"<Downgrades {len(self._down)} seats>"

    def next(self, now: float) -> float:
        """When a seat must be declared anew."""
        self._down &= self._kept.users.keys()
        return min((self._due(agent, now) for agent in self._kept.users), default=NEVER)

    async def declare(self, now: float) -> None:
        """Declare anew what is due."""
        for agent in [agent for agent in self._kept.users if self._due(agent, now) <= now]:
            seat = self._seat(agent) if agent in self._kept.users else None
            if seat is not None:
                await self._declare(agent, seat)

    def _due(self, agent: str, now: float) -> float:
        seat = self._seat(agent)
        if seat is None:
            return NEVER
        ttl_s = self._kept.ttl_s(seat.board)
        idle_at = max(user.idle_at(ttl_s) for user in self._kept.users[agent])
        if agent in self._down:
            idle_at = now if idle_at > now else NEVER
        return max(idle_at, self._again.get(agent, idle_at))

    def _seat(self, agent: str) -> Seat | None:
        """The seat, if one of its conversations is of such a host and has declared what it can do.

        One that declared nothing is left alone: a declaration makes the whole board hand out its work by offers.
        """
        for user in self._kept.users[agent]:
            seat = user.seats[agent].seat
            if user.downgrades and seat is not None and seat.request.capabilities is not None:
                return seat
        return None

    async def _declare(self, agent: str, seat: Seat) -> None:
        back = agent in self._down
        try:
            with anyio.fail_after(ANSWER):
                await (self._seats.keepalive(seat) if back else self._seats.declare(seat, _NO_WORK))
        except (CentralError, TimeoutError) as error:
            self._again[agent] = self._kept.clock() + AGAIN
            log.info("the seat %s is declared anew later: %s", seat.agent_name, error or "no answer in time")
            return
        self._again.pop(agent, None)
        self._down ^= {agent}
        log.info("the seat %s takes %s", seat.agent_name, "work again" if back else "no work: its model is idle")
