"""`pursersctl join`: take a seat through a door, and keep the door once Central has taken the seat in.

Central is asked first and the door stored last, so that a join which is refused, by anybody, leaves nothing behind (D11):
no door, no used name, and no seat either.
"""

import itertools
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from anyio import to_thread

from pursersd import api
from pursersd.central.pool import PoolKey
from pursersd.errors import CentralError, ConfigurationError, ToolFailed, Unauthenticated, Unreachable
from pursersd.feed.centrals import Central, Centrals
from pursersd.ids import agent_uri, journal_uri
from pursersd.rules import door_list, seat_name
from pursersd.rules.capabilities import frozen, newcomer_capabilities
from pursersd.rules.door import Door
from pursersd.rules.door_request import requested
from pursersd.rules.environment import Reader
from pursersd.rules.hosts import profile
from pursersd.rules.instance import expected_instance
from pursersd.seats.first import is_collision
from pursersd.seats.seat import Seat, SeatRequest
from pursersd.state.doors import Doors

log = logging.getLogger(__name__)

PROBE_TIMEOUT = 3.0
"""Seconds in which Central must open a stream for the push probe (bridge.md §8.1)."""

WITHDRAW_TIMEOUT = 5.0
"""Seconds to take back a seat whose door could not be kept."""

NAME_TRIES = 20
"""How many automatic names are tried, should Central know each of them already."""

_users = itertools.count(1)


@dataclass(frozen=True, slots=True)
class _Wish:
    """A join that could be carried out, as far as can be told without Central."""

    door: Door
    key: PoolKey
    capabilities: tuple[tuple[str, object], ...]
    names: tuple[str, ...]
    """The names to try, one after the other."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What came of a join."""

    door: Door
    """As it is stored."""
    seat: Seat
    push: bool
    """Whether Central gave the seat a stream."""


async def join(centrals: Centrals, request: api.Join) -> Admission:
    """Join the seat, probe whether it would get its events pushed, and store the door with the seat's name.

    Raises DoorsError, ConfigurationError or CentralError; then neither Central nor the stored doors know of it.
    """
    doors = Doors(Path(request.folder))
    wish = _wish(request, await to_thread.run_sync(doors.load))
    async with _central(centrals, wish.key) as central:
        seat = await _introduce(central, wish)
        async with _unless_kept(central, seat):
            push = await _probe(central, seat)
            door = replace(wish.door, role=seat.role)
            door = await to_thread.run_sync(lambda: doors.store(door, rotate=request.rotate, name=seat.agent_name))
    log.info("a door was joined: board %s, role %s, key %s, seat %s", seat.board, seat.role, door.kid, seat.agent_name)
    return Admission(door, seat, push)


def _wish(request: api.Join, stored: tuple[Door, ...]) -> _Wish:
    door = requested(request.door, name=request.name, role=request.role, allow_remote=request.allow_remote)
    found = Reader(request.env)
    host, _ = profile(request.env.get("PURSERS_HOST"), None)
    declared = newcomer_capabilities(found, host, door.role)
    instance_id = expected_instance(found)
    if found.problems:
        raise ConfigurationError(found.problems[0])
    after = door_list.stored(stored, door, rotate=request.rotate, joined_at="now")
    return _Wish(
        door=door,
        key=PoolKey(door.url, door.token, instance_id),
        capabilities=frozen(declared),
        names=(request.name,) if request.name is not None else _automatic(after, door),
    )


def _automatic(stored: tuple[Door, ...], door: Door) -> tuple[str, ...]:
    known = door_list.find(stored, door.board, door.role)
    taken = list(known.seat_names_used) if known is not None else []
    for _ in range(NAME_TRIES):
        taken.append(seat_name.automatic(door.role, socket.gethostname(), taken))
    return tuple(taken[-NAME_TRIES:])


@asynccontextmanager
async def _central(centrals: Centrals, key: PoolKey) -> AsyncIterator[Central]:
    """The Central of a door, let go of afterwards."""
    user = f"join-{next(_users)}"
    try:
        yield await centrals.use(key, user)
    finally:
        centrals.release(user)


async def _introduce(central: Central, wish: _Wish) -> Seat:
    """The seat, under the first of the names that nobody has. Raises the refusal of the last one."""
    *others, last = wish.names
    for name in others:
        try:
            return await _introduce_as(central, wish, name)
        except ToolFailed as refused:
            if not is_collision(refused):
                raise
    return await _introduce_as(central, wish, last)


async def _introduce_as(central: Central, wish: _Wish, name: str) -> Seat:
    door = wish.door
    request = SeatRequest(door.board, name, door.role, wish.capabilities)
    try:
        # A token for one board cannot found it; any other is not let near a board that may not exist.
        return await central.seats.introduce(request, ask_first=not door.is_confined)
    except Unauthenticated as error:
        raise Unauthenticated(
            "Central does not accept the token of this door (HTTP 401): it is unknown, expired or revoked. Ask its "
            "operator for a new door."
        ) from error
    except Unreachable as error:
        if error.sent:
            raise Unreachable(f"{error}. The door was not stored; join again when Central answers.") from error
        raise Unreachable(
            f"Central is unreachable at {door.url}. Start it, or ask its operator for a new door.", sent=False
        ) from error


async def _probe(central: Central, seat: Seat) -> bool:
    """Whether Central gives this seat a stream; it is closed again, so that nothing is offered to a seat without a host."""
    try:
        with anyio.fail_after(PROBE_TIMEOUT):
            async with central.pool.listen([journal_uri(seat.board), agent_uri(seat.board, seat.agent_id)]):
                return True
    except (CentralError, TimeoutError) as error:
        log.info("push probe of %s on %s: %s", seat.agent_name, seat.board, error or "no answer in time")
        return False


@asynccontextmanager
async def _unless_kept(central: Central, seat: Seat) -> AsyncIterator[None]:
    """Take the seat back unless the block succeeds, also when it is cancelled."""
    kept = False
    try:
        yield
        kept = True
    finally:
        if not kept:
            with anyio.CancelScope(shield=True), anyio.move_on_after(WITHDRAW_TIMEOUT):
                await _withdraw(central, seat)


async def _withdraw(central: Central, seat: Seat) -> None:
    try:
        await central.seats.withdraw(seat)
    except CentralError as error:
        log.warning("%s stays a seat of %s although its door was not kept: %s", seat.agent_name, seat.board, error)
