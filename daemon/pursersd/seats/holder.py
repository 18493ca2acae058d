"""A conversation as its leases see it: is anybody there, which seats are its own, and what its next wait must be told."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from pursersd.clock import boottime
from pursersd.rules.lease import Cue, Lease, LeaseKey, idle_limit_s
from pursersd.rules.presence import Presence
from pursersd.seats.seat import Seat

CUES = 100
"""Cues kept for a conversation that does not wait; the oldest go first."""

GIVEN = 100
"""Tickets remembered as given to a conversation: it takes one of the last, if any."""


class Rings(Protocol):
    """Something that wakes a wait."""

    def ring(self) -> None:
        """There is something to look at."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A seat by its ids; `seat` is the joined one, None while it is only known to exist."""

    board: str
    agent_id: str
    agent_name: str
    seat: Seat | None = None


class Keeper(Protocol):
    """Where the leases of conversations are kept."""

    def note(self, holder: "Holder") -> None:
        """It became active, or took a seat."""

    def drop(self, holder: "Holder") -> None:
        """Nobody is behind it any more."""

    def kept_for(self, holder: "Holder") -> list[tuple[Lease, float]]:
        """Its leases, each with the seconds that are left."""


class Holder:
    """Presence, seats and cues of one conversation. The conversation and its waits report here, `Leases` asks and tells.

    `downgrades` says that its seats shall take no work while it is idle (bridge.md §3: hosts that keep the servers of
    closed windows).
    """

    def __init__(
        self,
        conversation: str = "",
        *,
        idle_limit: float | None = None,
        downgrades: bool = False,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self.conversation = conversation
        """Its id, for the log."""
        self.downgrades = downgrades
        self.seats: dict[str, Identity] = {}
        """By agent id. Changed by `use` alone."""
        self._keeper: Keeper | None = None
        self._idle_limit = idle_limit
        self._clock = clock
        self.presence = Presence(clock())
        """Its running calls. Changed here alone."""
        self._cues: list[tuple[str, Cue]] = []
        self._bells: list[Rings] = []
        self._given: dict[tuple[str, str], None] = {}
        """By agent and ticket id, those that were given last at the end."""

    def __repr__(self) -> str:
        return f"<Holder {self.presence!r} {len(self.seats)} seats {len(self._cues)} cues>"

    # --- what the conversation reports ------------------------------------------------------------------------------

    @contextmanager
    def calling(self) -> Iterator[None]:
        """A tool call of the model runs."""
        self.presence.began(self._clock())
        self._changed()
        try:
            yield
        finally:
            self.presence.ended(self._clock())
            self._changed()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The running call waits."""
        self.presence.wait_began()
        try:
            yield
        finally:
            self.presence.wait_ended()

    def forms_changed(self, change: int) -> None:
        """So many more forms than before (or fewer) are open at its host."""
        if change:
            self.presence.forms_changed(self._clock(), change)
            self._changed()

    def use(self, seat: Seat) -> None:
        """It took this seat."""
        self.know(Identity(seat.board, seat.agent_id, seat.agent_name, seat))

    def know(self, identity: Identity) -> None:
        """The seat is its own."""
        known = self.seats.get(identity.agent_id)
        self.seats[identity.agent_id] = (
            identity if known is None or identity.seat else replace(identity, seat=known.seat)
        )
        if known is None:
            self._changed()

    def resumed(self, idle_s: float) -> None:
        """It was known to an earlier daemon, and its model has been silent for so long."""
        self.presence.resumed(self._clock() - idle_s)

    def enter(self, keeper: "Keeper") -> bool:
        """Its leases are kept there from now on; returns whether they were not before."""
        if keeper is self._keeper:
            return False
        self.leave()
        self._keeper = keeper
        self._changed()
        return True

    def leave(self) -> None:
        """Nobody is behind it any more."""
        if self._keeper is not None:
            self._keeper.drop(self)
            self._keeper = None

    def leases(self) -> list[tuple[Lease, float]]:
        """What it holds, as far as is known, each with the seconds that are left."""
        return self._keeper.kept_for(self) if self._keeper is not None else []

    def _changed(self) -> None:
        if self._keeper is not None:
            self._keeper.note(self)

    # --- what waits do ----------------------------------------------------------------------------------------------

    @contextmanager
    def listening(self, bell: Rings) -> Iterator[None]:
        """A wait hears of new cues by `bell`."""
        self._bells.append(bell)
        try:
            yield
        finally:
            self._bells.remove(bell)

    def cues(self, agent_id: str) -> list[Cue]:
        """What this seat must be told; it stays until `delivered`."""
        return [cue for agent, cue in self._cues if agent == agent_id]

    def delivered(self, cues: Iterable[Cue]) -> None:
        """The host has these."""
        gone = {id(cue) for cue in cues}
        self._cues = [(agent, cue) for agent, cue in self._cues if id(cue) not in gone]

    def given(self, agent_id: str, tickets: Iterable[str | None]) -> None:
        """A wait of this seat returns with these tickets as work to take."""
        for ticket in tickets:
            if ticket is not None:
                self._given.pop((agent_id, ticket), None)
                self._given[agent_id, ticket] = None
        while len(self._given) > GIVEN:
            del self._given[next(iter(self._given))]

    # --- what leases ask and tell -----------------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether its model does nothing but wait."""
        return self.presence.is_waiting

    def limit_s(self, ttl_s: float) -> float:
        """How long it may be silent until it counts as idle for a lease with this TTL."""
        return idle_limit_s(ttl_s, self._idle_limit)

    def idle_at(self, ttl_s: float) -> float:
        """When it counts as idle, if it stays silent."""
        return self.presence.idle_at(self.limit_s(ttl_s))

    def is_active(self, now: float, ttl_s: float) -> bool:
        """Whether somebody is at work here, for a lease with this TTL."""
        return self.presence.is_active(now, self.limit_s(ttl_s))

    def was_given(self, key: LeaseKey) -> bool:
        """Whether a wait of its returned with the ticket as work to take."""
        return (key.agent_id, key.ticket_id) in self._given

    def tell(self, agent_id: str, cue: Cue) -> None:
        """Tell it at once if it waits with this seat, else when it does so next."""
        self._cues.append((agent_id, dict(cue)))
        del self._cues[:-CUES]
        for bell in self._bells:
            bell.ring()
