"""Where a seat is in a journal that is read for digests, and who must be told."""

from dataclasses import dataclass, field
from typing import Protocol

from pursersd.central.account import Account
from pursersd.errors import CentralError
from pursersd.seats.seat import Seat


class Follower(Protocol):
    """Who follows boards. All calls are synchronous and quick."""

    def news(self, boards: frozenset[str]) -> None:
        """Something that it may know of has happened on these boards."""

    def registry_changed(self) -> None:
        """The registry of its home board may be another one now."""

    def ended(self) -> None:
        """Nothing more comes: the Central is closed."""


@dataclass(slots=True, eq=False)
class Place:
    """Up to where one seat's journal of one board has been read."""

    seat: Seat
    touched_at: float
    """When its seat last joined for it, on our clock."""
    followers: dict[Follower, Account | None] = field(default_factory=dict)
    """Each with who pays for what it makes us read."""
    cursor: int = 0
    is_dirty: bool = True
    """Whether something may have happened since the last read was sent."""
    is_being_read: bool = False
    reads: int = 0
    """How many reads have ended."""
    trouble: CentralError | None = None
    """Why it could not be read the last time."""
    missing: int = 0
    """Up to which place the journal had been compacted when we came there."""
    has_hidden: bool = False
    """Whether rows were left out of its pages since it was last made sure that the seat is told of what happens."""
    last_event_at: float | None = None
    """When something new was read last, by Central's clock."""

    @property
    def account(self) -> Account | None:
        """Who pays for its reads: the follower that has been here longest."""
        return next(iter(self.followers.values()), None)
