"""A board that somebody watches: its feed and the waiter there, and how it is read."""

from dataclasses import dataclass

from pursersd.feed.board import BoardFeed
from pursersd.feed.waiter import Waiter


@dataclass(slots=True)
class Watched:
    """One board of one wait, as `ps` shows it."""

    feed: BoardFeed
    waiter: Waiter

    @property
    def name(self) -> str:
        """The board."""
        return self.waiter.seat.board

    @property
    def is_polled(self) -> bool:
        """Whether this board is read by the clock and not by cues."""
        return self.feed.polls(self.waiter)

    @property
    def poll_reason(self) -> str | None:
        """Why this board is polled although the caller wants push; None if it is not."""
        return self.feed.poll_reason if self.waiter.push else None

    @property
    def lag(self) -> int | None:
        """How many journal entries it is behind the newest one that anybody here has read of; None before it has read.

        Not all of them need concern it. It goes on after the wait, as long as others read.
        """
        head = self.feed.catchup.head_of(self.name)
        return max(0, head - self.waiter.cursor) if self.waiter.opened and head is not None else None
