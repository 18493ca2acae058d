"""What a wait needs of the conversation that makes it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pursersd.feed.centrals import Central
from pursersd.rules.denials import Denials
from pursersd.seats.seat import SeatRequest
from pursersd.settings import Settings
from pursersd.waits.board import BoardWait, Memory


@dataclass(frozen=True, slots=True)
class Caller:
    """Who waits: what the engine needs of a conversation for one call."""

    id: str
    """The conversation's, for those who count whose seat it is."""
    settings: Settings
    memory: Memory
    denials: Denials
    """Refusals of boards, of the whole daemon."""
    connect: Callable[[], Awaitable[Central]]
    """The conversation's Central; raises a PursersError when it cannot have one."""
    seat_request: Callable[[str, str | None], SeatRequest]
    """The seat for a call, by board and the call's agent_name argument."""
    watching: Callable[[Sequence[BoardWait]], None]
    """Told when the wait begins to watch boards, so that `ps` can show how."""
    progress: Callable[[float, float, str], Awaitable[None]]
    """Tell the host: seconds waited, seconds in all, text."""
