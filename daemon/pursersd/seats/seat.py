"""Seats: who we are on which board, joined once for all the conversations that share one.

A seat is (board, agent name) under the pool's principal. Joining is idempotent with allow_takeover (central.md §5), costs
a call that walks the board, and records activity, so it happens when a conversation first needs the seat, after Central
said that the seat is no longer active, and rarely as a keepalive.
"""

import logging
import sys
from dataclasses import dataclass
from typing import Any, Literal

import anyio

from pursersd.central.pool import Pool
from pursersd.errors import CentralError, ToolFailed, Unreachable
from pursersd.ids import agent_id, agent_uri

log = logging.getLogger(__name__)

JOIN_TIMEOUT = 10.0
"""Seconds until a join counts as failed (bridge.md §1.7)."""

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


class Seats:
    """The joined seats of one pool; the only place that joins."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._joined: dict[SeatRequest, Seat] = {}
        self._joining: dict[SeatRequest, anyio.Lock] = {}
        self._confirmed: dict[SeatRequest, int] = {}
        """Up to which place in the journal nothing can have ended the membership of a joined seat; _NOW: it just joined."""

    async def join(self, request: SeatRequest) -> Seat:
        """The seat, joined by the first who asks and shared by the rest.

        Raises UnknownBoard, ToolFailed when Central refuses, Unreachable after JOIN_TIMEOUT, and other CentralErrors.
        """
        if seat := self._joined.get(request):
            if self._confirmed.get(request) == _NOW:
                del self._confirmed[request]  # it was joined for something else, some time ago
            return seat
        try:
            with anyio.fail_after(JOIN_TIMEOUT):
                async with self._joining.setdefault(request, anyio.Lock()):
                    if seat := self._joined.get(request):
                        return seat
                    await self._pool.require_board(request.board)
                    seat = self._joined[request] = await self._send(request, "model")
                    self._confirmed[request] = _NOW
                    return seat
        except TimeoutError as error:
            raise Unreachable(f"Central did not answer the join of {request.board} in {JOIN_TIMEOUT:.0f} s") from error

    async def rejoin(self, seat: Seat) -> Seat:
        """Join again after Central called the seat inactive or its generation stale. It is not the model that acts here."""
        await self.keepalive(seat)
        return self._joined.get(seat.request, seat)

    async def keepalive(self, seat: Seat) -> None:
        """Join without claiming model activity: keeps the seat from going stale and lets Central notice expired leases."""
        renewed = await self._send(seat.request, "keepalive", background=True)
        if seat.request in self._joined and renewed != self._joined[seat.request]:
            self._joined[seat.request] = renewed

    async def confirm(self, seat: Seat, head: int, *, hidden: bool) -> None:
        """Make sure that the seat is a recipient of events, now that its journal was read up to `head`.

        One that handed its work off, was retired or went stale still reads but is told nothing any more (central.md §5), and
        the event that says so is hidden from the seat itself. So `hidden` rows since we looked last cost a keepalive join.
        """
        known = self._confirmed.get(seat.request, 0)
        if hidden and head > known:
            await self.keepalive(seat)
        self._confirmed[seat.request] = head

    def forget(self, request: SeatRequest) -> None:
        """No conversation uses the seat any more: the next one joins afresh."""
        self._joined.pop(request, None)
        self._joining.pop(request, None)
        self._confirmed.pop(request, None)

    async def _send(
        self, request: SeatRequest, source: Literal["model", "keepalive"], *, background: bool = False
    ) -> Seat:
        arguments: dict[str, Any] = {
            "board_id": request.board,
            "agent_name": request.agent_name,
            "allow_takeover": True,
            "renewal_source": source,
        }
        if request.role is not None:
            arguments["role"] = request.role
        if request.capabilities is not None:
            arguments["capabilities"] = dict(request.capabilities)
        if request.platform is not None:
            arguments["agent_platform"] = request.platform
        answer = await self._pool.read("board_join", arguments, background=background)
        return _seat(request, answer)


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
    return isinstance(error, ToolFailed) and (
        any(text in str(error) for text in _INACTIVE) or str(error).startswith(_STALE_GENERATION)
    )
