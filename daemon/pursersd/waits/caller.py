"""What a wait needs of the conversation that makes it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from pursersd.central.pool import PoolKey
from pursersd.feed.centrals import Central
from pursersd.rules.denials import Denials
from pursersd.seats.holder import Holder
from pursersd.seats.seat import SeatRequest
from pursersd.settings import Settings
from pursersd.waits.board import Memory
from pursersd.waits.watched import Watched


class Renewal(Protocol):
    """The credential of a conversation, which may be replaced while a wait goes on (see conversation/configuration.py)."""

    @property
    def settings(self) -> Settings:
        """The settings of this moment."""

    @property
    def key(self) -> PoolKey | None:
        """What the calls of this moment are sent with."""

    def refused(self) -> bool:
        """Central refuses the credential: whether there is another one now."""

    def until_renewed(self) -> AbstractContextManager[None]:
        """The block is cancelled, quietly, when the credential is replaced."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who waits: what the engine needs of a conversation for one call."""

    id: str
    """The conversation's, for those who count whose seat it is."""
    settings: Settings
    renewal: Renewal
    memory: Memory
    denials: Denials
    """Refusals of boards, of the whole daemon."""
    connect: Callable[[], Awaitable[Central]]
    """The conversation's Central; raises a PursersError when it cannot have one."""
    seat_request: Callable[[str, str | None], SeatRequest]
    """The seat for a call, by board and the call's agent_name argument."""
    watching: Callable[[Sequence[Watched]], None]
    """Told when the wait begins to watch boards, so that `ps` can show how."""
    progress: Callable[[float, float, str], Awaitable[None]]
    """Tell the host: seconds waited, seconds in all, text."""
    holder: Holder = field(default_factory=Holder)
    """What the conversation must be told about its leases, and what it was given."""
