"""Seats: who we are on which board, joined once for all the conversations that share one.

A seat is (board, agent name) under the pool's principal. Joining is idempotent with allow_takeover (central.md §5), costs
a call that walks the board, and records activity, so it happens when a conversation first needs the seat, after Central
said that the seat is no longer active, and rarely as a keepalive.
"""

import logging
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import anyio

from pursersd.central.pool import Pool
from pursersd.errors import CentralError, ConfigurationError, ToolFailed, Unreachable
from pursersd.ids import agent_id, agent_uri
from pursersd.seats.first import Held, first_join
from pursersd.seats.observer import Observer

log = logging.getLogger(__name__)

JOIN_TIMEOUT = 10.0
"""Seconds until a join counts as failed (bridge.md §1.7); they begin anew while Central answers others."""

Source = Literal["model", "keepalive"]
"""Whom Central records as the one who joined and so renewed the seat's leases (central.md §7, markers)."""

Answer = TypeVar("Answer")

_NOW = sys.maxsize

_INACTIVE = ("call board_onboard or board_join before more work", "agent is not a member of this board")
_STALE_GENERATION = "stale or missing board generation"


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """The seat that a conversation wants: what is sent with its join."""

    board: str
    agent_name: str
    role: str | None
    capabilities: tuple[tuple[str, Any], ...] | None = None
    platform: str | None = None
    careful: bool = field(default=False, compare=False)
    """Whether its first join ever must not take the seat from somebody else (see seats/first.py)."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A joined seat, as Central answered it."""

    request: SeatRequest
    agent_id: str
    principal_id: str
    role: str
    claim_ttl_s: int
    generation: str | None

    @property
    def board(self) -> str:
        """The seat's board."""
        return self.request.board

    @property
    def agent_name(self) -> str:
        """The seat's name on the board."""
        return self.request.agent_name

    @property
    def uri(self) -> str:
        """The resource that Central cues when this seat is a recipient."""
        return agent_uri(self.board, self.agent_id)


class SeatTaken(ConfigurationError):
    """Another conversation of ours sits on the seat in another role; only the user can say which one is meant."""


@dataclass(slots=True)
class _Membership:
    """One seat of ours: who uses it, what Central knows of it, and until when its membership is beyond doubt."""

    wishes: dict[str, SeatRequest] = field(default_factory=dict)
    """What its users want to declare, the eldest user first. The first one's counts (docs/decisions)."""
    trying: list[str] = field(default_factory=list)
    """Who is about to become its user."""
    joining: anyio.Lock = field(default_factory=anyio.Lock)
    seat: Seat | None = None
    """None until Central has confirmed it."""
    sure_up_to: int = 0
    """Up to which place in the journal nothing can have ended it; _NOW: it just joined."""
    joined_at: float = 0.0
    """When it last joined, on our clock."""

    def wish(self, otherwise: SeatRequest) -> SeatRequest:
        """What is declared for the seat: `otherwise` while it has no user."""
        return next(iter(self.wishes.values()), otherwise)

    def standing(self, otherwise: SeatRequest) -> Seat | None:
        """The seat, if it is joined with what is declared for it now."""
        return self.seat if self.seat is not None and self.seat.request == self.wish(otherwise) else None


class Seats:
    """The joined seats of one pool; the only place that joins, and the only one that knows who uses which seat."""

    def __init__(self, pool: Pool, held: Held | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.observer = Observer()
        self._pool = pool
        self._held = held
        self._clock = clock
        self._members: dict[tuple[str, str], _Membership] = {}
        """By board and agent name."""
        self._joining: set[anyio.CancelScope] = set()
        """The joins in progress."""
        self._generations: dict[str, str] = {}
        """By board: Central's token for the numbering of its journal, as the newest join was told (central.md §6.5)."""
        self.on_renumbered: Callable[[str], None] = _nobody
        """Called with a board whose journal Central numbers anew."""

    async def join(self, request: SeatRequest, user: str = "", *, source: Source = "model") -> Seat:
        """The seat, joined by the first who asks and shared by the rest; `user` keeps it until `leave`.

        `source` is what Central records: a call that came again after a daemon was lost is no new sign of the model.

        Users may declare different things: the eldest one's count, so that no join changes what another one declared. Raises
        SeatTaken when they want different roles, UnknownBoard, ToolFailed when Central refuses, Unreachable after
        JOIN_TIMEOUT, and other CentralErrors.
        """
        member = self._members.setdefault((request.board, request.agent_name), _Membership())
        if user in member.wishes:
            member.wishes[user] = request
        _check_role(member, request, user)
        if seat := member.standing(request):
            member.wishes[user] = request
            if member.sure_up_to == _NOW:
                member.sure_up_to = 0  # it was joined for something else, some time ago
            return seat
        member.trying.append(user)
        try:
            with self._while_joins_are_answered():
                return await self._join_first(member, request, user, source)
        except TimeoutError as error:
            raise Unreachable(f"Central did not answer the join of {request.board} in {JOIN_TIMEOUT:.0f} s") from error
        finally:
            if user in member.trying:
                member.trying.remove(user)

    async def introduce(self, request: SeatRequest, *, ask_first: bool) -> Seat:
        """Join a seat that nobody may have yet; Central refuses a name that is in use under this principal.

        It is joined once and not kept here: nobody uses it. Not sent again when the connection breaks, since a repetition
        would collide with itself. `ask_first`: make sure that the board exists, if the credential could found it.
        Raises like `join`.
        """
        try:
            with anyio.fail_after(JOIN_TIMEOUT):
                if ask_first:
                    await self._pool.require_board(request.board)
                answer = await self._pool.call("board_join", _arguments(request, "model", takeover=False))
                return _seat(request, answer)
        except TimeoutError as error:
            raise Unreachable(f"Central did not answer the join of {request.board} in {JOIN_TIMEOUT:.0f} s") from error

    async def withdraw(self, seat: Seat) -> None:
        """Take back an introduction. Raises CentralError if that does not succeed."""
        arguments = {"board_id": seat.board, "agent_name": seat.agent_name, "target_agent_id": seat.agent_id}
        await self._pool.call("agent_retire", arguments, generation=seat.generation)

    async def keepalive(self, seat: Seat) -> Seat:
        """Join again without claiming model activity, and return the seat as it is then.

        It keeps the seat from going stale, lets Central notice expired leases, and brings back a seat that Central called
        inactive, or whose generation it called stale.
        """
        member = self._member(seat)
        if member is None:  # of a conversation that has just gone
            return (await self._send(seat.request, "keepalive", background=True, careful=False))[0]
        return await self._join(member, member.wish(seat.request), "keepalive", background=True)

    async def seated(self, seat: Seat, send: Callable[[Seat], Awaitable[Answer]]) -> Answer:
        """What `send` gives; sent once more after another join if Central says that the seat has left the board."""
        try:
            return await send(seat)
        except ToolFailed as error:
            if not needs_rejoin(error):
                raise
        return await send(await self.keepalive(seat))

    async def declare(self, seat: Seat, changes: Mapping[str, object]) -> None:
        """Declare other capabilities than those that count, until `keepalive` declares these again."""
        member = self._member(seat)
        wish = member.wish(seat.request) if member else seat.request
        declared = tuple({**dict(wish.capabilities or ()), **changes}.items())
        await self._send(replace(wish, capabilities=declared), "keepalive", background=True, careful=False)

    async def confirm(self, seat: Seat, head: int, *, hidden: bool) -> bool:
        """Make sure that the seat is a recipient of events, now that its journal was read up to `head`.

        One that handed its work off, was retired or went stale still reads but is told nothing any more (central.md §5), and
        the event that says so is hidden from the seat itself. So `hidden` rows since we looked last cost a keepalive join.
        False if they do not, because the seat has just joined: nearly all of them are older than that.
        """
        member = self._member(seat)
        known = member.sure_up_to if member else 0
        if hidden and head > known:
            await self.keepalive(seat)
            head = max(head, member.sure_up_to if member else 0)
        if member:
            member.sure_up_to = head
        return not hidden or known != _NOW

    def longest_untouched(self, seats: Iterable[Seat]) -> Seat:
        """That of some seats whose last join is furthest back."""
        return min(seats, key=lambda seat: member.joined_at if (member := self._member(seat)) else 0.0)

    def generation(self, board: str) -> str | None:
        """What a call that changes something on the board must name; None for a board that has no generations.

        It is the board's and not a seat's: whoever joins is told the newest one, and it counts for all.
        """
        return self._generations.get(board)

    def forget_all(self) -> None:
        """Another Central answers: nobody has joined it."""
        self._generations.clear()
        for member in self._members.values():
            member.seat, member.sure_up_to = None, 0

    def users(self, seat: Seat) -> int:
        """How many conversations use the seat."""
        member = self._member(seat)
        return len(member.wishes) if member else 0

    def declares(self, seat: Seat, user: str) -> bool:
        """Whether what somebody wants to declare for the seat is what is declared."""
        member = self._member(seat)
        return member is not None and member.wishes.get(user) == member.wish(seat.request)

    def of(self, user: str) -> list[Seat]:
        """The seats that somebody uses, as Central described them last."""
        return [m.seat for m in self._members.values() if user in m.wishes and m.seat is not None]

    def leave(self, user: str) -> list[Seat]:
        """Somebody is gone; returns the seats that nobody uses any more. They are left alone: whoever wants one joins afresh."""
        left = []
        for key, member in list(self._members.items()):
            was_used = bool(member.wishes)
            member.wishes.pop(user, None)
            member.trying = [other for other in member.trying if other != user]
            if member.wishes or member.trying:
                continue
            del self._members[key]
            if was_used and member.seat is not None:
                left.append(member.seat)
        return left

    @contextmanager
    def _while_joins_are_answered(self) -> Iterator[None]:
        """Raises TimeoutError when Central has answered no join for JOIN_TIMEOUT: two hundred may have to wait for their turn."""
        with anyio.fail_after(JOIN_TIMEOUT) as scope:
            self._joining.add(scope)
            try:
                yield
            finally:
                self._joining.discard(scope)

    def _member(self, seat: Seat) -> _Membership | None:
        return self._members.get((seat.board, seat.agent_name))

    async def _join_first(self, member: _Membership, request: SeatRequest, user: str, source: Source) -> Seat:
        async with member.joining:
            _check_role(member, request, user)
            seat = member.standing(request)
            if seat is None:
                await self._pool.require_board(request.board)
                seat = await self._join(member, member.wish(request), source)
                member.sure_up_to = _NOW
            if user in member.trying:  # it has not left meanwhile
                member.wishes.setdefault(user, request)
            return seat

    async def _join(self, member: _Membership, wish: SeatRequest, source: Source, *, background: bool = False) -> Seat:
        careful = wish.careful and member.seat is None
        seat, back_since = await self._send(wish, source, background=background, careful=careful)
        member.sure_up_to = max(member.sure_up_to, back_since)
        member.joined_at = self._clock()
        if member.seat != seat:
            member.seat = seat
        return member.seat

    def _numbered(self, board: str, generation: str) -> None:
        """A join was told how Central numbers the board's journal."""
        before, self._generations[board] = self._generations.get(board), generation
        for member in self._members.values():
            if member.seat is not None and member.seat.board == board:
                member.seat = replace(member.seat, generation=generation)
        if before not in (None, generation):
            log.warning("board %s: Central numbers its journal anew", board)
            self.on_renumbered(board)

    async def _send(self, request: SeatRequest, source: Source, *, background: bool, careful: bool) -> tuple[Seat, int]:
        """The seat, and where the journal says that it is back after it had left; 0 if it had not."""
        answer = None
        if careful and self._held is not None:
            answer = await first_join(self._pool, self._held, _arguments(request, source, takeover=False))
        if answer is None:
            answer = await self._pool.read("board_join", _arguments(request, source), background=background)
        for scope in self._joining:
            scope.deadline = anyio.current_time() + JOIN_TIMEOUT
        event = answer.get("lifecycle_event")
        back_since = event.get("seq") if isinstance(event, dict) else None
        seat = _seat(request, answer)
        self.observer.joined(seat.board, answer)
        if seat.generation is not None:
            self._numbered(seat.board, seat.generation)
        return seat, back_since if isinstance(back_since, int) else 0


def _nobody(_: str) -> None:
    """Nobody to tell."""


def _arguments(request: SeatRequest, source: Source, *, takeover: bool = True) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "board_id": request.board,
        "agent_name": request.agent_name,
        "allow_takeover": takeover,
        "renewal_source": source,
    }
    if request.role is not None:
        arguments["role"] = request.role
    if request.capabilities is not None:
        arguments["capabilities"] = dict(request.capabilities)
    if request.platform is not None:
        arguments["agent_platform"] = request.platform
    return arguments


def _check_role(member: _Membership, request: SeatRequest, user: str) -> None:
    others = [wish for name, wish in member.wishes.items() if name != user]
    if not others or request.role is None:
        return
    role = others[0].role or (member.seat.role if member.seat else None)
    if role not in (None, request.role):
        raise SeatTaken(
            f"The seat {request.agent_name} on board {request.board} is used by another conversation as {role}, so that "
            f"this one cannot be its {request.role}. Set another ONBOARD_AGENT_NAME or ONBOARD_AGENT_INSTANCE for one of them."
        )


def _seat(request: SeatRequest, answer: dict[str, Any]) -> Seat:
    principal = str(answer.get("principal_id", ""))
    derived = agent_id(request.board, principal, request.agent_name)
    if answer.get("agent_id") != derived:
        raise CentralError(
            f"Central answered the join of {request.agent_name} on {request.board} with another agent id than its own rule gives"
        )
    token, role, ttl = answer.get("generation_token"), answer.get("role"), answer.get("claim_ttl_s")
    return Seat(
        request=request,
        agent_id=derived,
        principal_id=principal,
        role=role if isinstance(role, str) else request.role or "worker",
        claim_ttl_s=ttl if isinstance(ttl, int) else 900,
        generation=token if isinstance(token, str) and token else None,
    )


def needs_rejoin(error: BaseException) -> bool:
    """Whether Central says that the seat must join before it can go on (central.md §2.4)."""
    inactive = isinstance(error, ToolFailed) and any(text in str(error) for text in _INACTIVE)
    return inactive or is_of_another_generation(error)


def is_of_another_generation(error: BaseException) -> bool:
    """Whether Central says that the call named another generation of the board than the present one, or none."""
    return isinstance(error, ToolFailed) and str(error).startswith(_STALE_GENERATION)
