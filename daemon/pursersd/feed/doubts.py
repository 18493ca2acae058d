"""Which of the seats that wait on a board may have left it, or were made to: they are told nothing any more (central.md §5).

The event of it is hidden from the seat itself, so that whatever a seat was cued for and does not see may have been that.
"""

import logging
from collections.abc import Iterable

from pursersd.central.account import charged_to
from pursersd.errors import CentralError, Overloaded, Unreachable
from pursersd.feed.reads import SharedReads
from pursersd.feed.waiter import Marks, Waiter
from pursersd.seats.seat import Seats

log = logging.getLogger(__name__)


class Doubts:
    """The doubts about the seats of one board."""

    def __init__(self, board: str, seats: Seats) -> None:
        self._board = board
        self._seats = seats
        self._missed: set[str] = set()
        """Agent ids of seats whose pages left out rows since it was last clear that they are members."""
        self._doubtful: set[str] = set()
        """Those of them that were, or may have been, told of such a row: it may have been their leaving."""

    def __bool__(self) -> bool:
        return bool(self._doubtful)

    def __repr__(self) -> str:
        return f"<Doubts about {len(self._doubtful)} of {self._board}>"

    def missed(self, agent_id: str) -> None:
        """There are rows that this seat's pages do not show."""
        self._missed.add(agent_id)

    def told(self, agent_id: str, marks: Marks) -> None:
        """This seat was cued so; what its pages showed of it has been noted."""
        if agent_id in self._missed and (marks.by_seat or marks.uncertain):
            self._doubtful.add(agent_id)

    def spread(self) -> bool:
        """Doubt all who missed rows, however they were cued: nobody is cued of a handoff of its own (central.md §5).

        Whether there is anything to resolve now.
        """
        self._doubtful |= self._missed
        return bool(self)

    def add(self, agent_id: str) -> None:
        """Nobody knows whether this seat is a member."""
        self._doubtful.add(agent_id)

    async def resolve(self, waiters: Iterable[Waiter], reads: SharedReads, *, live: bool) -> None:
        """Ask once who is on the board, and join those of the doubtful seats again that wait and are not.

        Raises Unreachable and Overloaded; the doubts stay then.
        """
        waiting = {waiter.seat.agent_id: waiter for waiter in waiters}
        asked = frozenset(self._doubtful)  # others may come while Central answers
        doubtful = [waiting[agent_id] for agent_id in asked if agent_id in waiting]
        try:
            if doubtful:
                await self._ask_about(doubtful, reads, live=live)
        except (Unreachable, Overloaded):
            raise
        except CentralError as error:
            log.info("board %s: who has left it cannot be found out: %s", self._board, error)
        self._missed -= asked
        self._doubtful -= asked

    async def _ask_about(self, doubtful: list[Waiter], reads: SharedReads, *, live: bool) -> None:
        head = max(waiter.cursor for waiter in doubtful)
        with charged_to(doubtful[0].account):
            status = await reads.read("board_status", {}, at_least=head, live=live)
        members = {row.get("agent_id") for row in status["agents"] if row.get("lifecycle_status") == "active"}
        for waiter in doubtful:
            if waiter.seat.agent_id not in members:
                with charged_to(waiter.account):
                    await self._seats.keepalive(waiter.seat)
