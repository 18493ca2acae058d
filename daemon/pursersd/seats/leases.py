"""Keep the leases of live conversations alive, honestly (bridge.md §3, RB-LSE-002, docs/decisions/0013).

Before each renewal Central is asked who holds the ticket: it would renew it for any seat of the credential (central.md
§7, ABA danger). One request at a time, on a connection that the feed's reads leave free; each batch is drawn out a little,
so that others get their turn at Central.
"""

import logging
from collections.abc import Callable, Sequence

import anyio

from pursersd.central.pool import Pool
from pursersd.clock import SleepWatch
from pursersd.errors import CentralError, Forbidden, ToolFailed, Unauthenticated
from pursersd.rules import lease as rules
from pursersd.rules.lease import Lease, Standing
from pursersd.rules.windows import LW_KEEPALIVE
from pursersd.seats import holdings
from pursersd.seats.downgrade import Downgrades
from pursersd.seats.holder import Holder, Identity
from pursersd.seats.holdings import Holdings
from pursersd.seats.kept import Kept
from pursersd.seats.seat import Seat, Seats, is_of_another_generation

log = logging.getLogger(__name__)

FRESH = 2.0
"""Seconds that an answer about who holds a ticket is good for; then it is asked again before the next renewal."""

BATCH = 50
"""Leases of one board that one question is about."""

ANSWER = (1.0, 10.0)
"""Shortest and longest time to wait for one answer, in seconds; between them a fifth of the TTL."""

PACE = 0.05
"""Part of the TTL over which the renewals of a batch may be drawn out."""

TICK = 10.0
"""Seconds between looks at the clocks while leases are kept: timers do not count a sleep of the machine."""


class Leases:
    """All leases kept at one Central with one credential; the only place that renews. `run()` owns the work."""

    def __init__(self, pool: Pool, seats: Seats, *, kept: Kept | None = None, sleep: SleepWatch | None = None) -> None:
        self.kept = kept or Kept()
        self.want: Callable[[frozenset[str]], None] = _nothing
        """Told the boards whose journal cues are wanted."""
        self._pool = pool
        self._seats = seats
        self._sleep = sleep or SleepWatch()
        self._downgrades = Downgrades(self.kept, seats)
        seats.observer = self.kept

    def __repr__(self) -> str:
        return f"<Leases {self.kept!r} {self._downgrades!r}>"

    def enter(self, holder: Holder) -> None:
        """This conversation works with this Central from now on; with another credential before, it may hold something."""
        if holder.enter(self.kept):
            for identity in holder.seats.values():
                self.kept.look_soon(identity.board)

    async def adopt(self, holder: Holder, agent_name: str) -> None:
        """Find the seats of this name, and soon what they hold, for a conversation that an earlier daemon knew.

        Raises CentralError.
        """
        listed = await self._pool.read("board_list", {}, background=True)
        for row in listed.get("boards", []):
            board = str(row["board_id"])
            for name, agent in zip(row["agent_names"], row["agent_ids"], strict=True):
                if name == agent_name and agent not in holder.seats:
                    holder.know(Identity(board, agent, name))
                    self.kept.look_soon(board)

    async def run(self) -> None:
        """Do what is due, one thing after the other, until cancelled."""
        while True:
            self.kept.changed = anyio.Event()
            if self._sleep.slept():
                self.kept.slept()
            for key in self.kept.settle():
                self._pool.windows.opened(LW_KEEPALIVE, f"{self.kept.named(key)} is not renewed any more: model idle")
            self.want(self.kept.boards)
            now = self.kept.clock()
            pause = min(self.kept.next(now), self._downgrades.next(now)) - now
            if pause > 0:
                with anyio.move_on_after(min(pause, TICK) if self.kept.leases else pause):
                    await self.kept.changed.wait()
                continue
            await self._downgrades.declare(now)
            if due := self.kept.due(now):
                await self._renew(due[:BATCH])
            for board in self.kept.looks_due(now):
                await self._look(board)

    async def _renew(self, due: Sequence[Lease]) -> None:
        """Ask who holds these, which are of one board, then renew those that are still ours, each on its own."""
        asked = self.kept.clock()
        found = await self._ask(due)
        if found is None:
            return
        for lease in due:
            began = self.kept.clock()
            if began - asked > FRESH:
                return  # the rest is still due: it is asked about again
            if lease.key in self.kept.leases:
                await self._renew_one(self.kept.leases[lease.key], found)
                await anyio.sleep(min(self.kept.clock() - began, PACE * lease.ttl_s / len(due)))

    async def _ask(self, due: Sequence[Lease]) -> Holdings | None:
        """How the tickets of these stand; None if Central does not say, which is noted."""
        try:
            with anyio.fail_after(_patience(min(lease.ttl_s for lease in due))):
                return await holdings.of_tickets(self._pool, due[0].key.board, {x.key.ticket_id for x in due})
        except (CentralError, TimeoutError) as error:
            for lease in due:
                self._missed(lease, error)
            return None

    async def _renew_one(self, lease: Lease, found: Holdings) -> None:
        key = lease.key
        ticket = found.tickets.get(key.ticket_id)
        stands = rules.standing(lease, ticket)
        identity = self.kept.identity(key.agent_id)
        if ticket is None or stands != "held" or identity is None:
            self._lost(lease, stands, rules.LOST)
            return
        for claim in rules.claims(key.board, ticket):
            if claim.key == key:
                self.kept.saw(claim, found.seq)
        lease = self.kept.leases[key]
        if not rules.is_due(lease, self.kept.clock()):  # a call of the model has renewed it meanwhile
            self.kept.put(key, rules.held(lease))
            return
        await self._send(lease, identity)

    async def _send(self, lease: Lease, identity: Identity) -> None:
        key = lease.key
        arguments = {
            "board_id": key.board,
            "ticket_id": key.ticket_id,
            "agent_name": identity.agent_name,
            "renewal_source": "keepalive",
        }
        generation = self._seats.generation(key.board)
        try:
            with anyio.fail_after(_patience(lease.ttl_s)):
                # Sent once: before it is sent again, it must be asked again who holds the ticket.
                answer = await self._pool.call("lease_renew", arguments, generation=generation)
        except ToolFailed as error:
            if identity.seat is not None and is_of_another_generation(error):
                await self._join(lease, identity.seat)
                return
            again = await self._ask([lease])
            if again is not None:
                self._lost(lease, rules.standing(lease, again.tickets.get(key.ticket_id)), str(error))
        except (CentralError, TimeoutError) as error:
            self._missed(lease, error)
        else:
            self.kept.renewed(key, answer)

    async def _join(self, lease: Lease, seat: Seat) -> None:
        """Learn the board's generation by a join, which renews what the seat holds; then the lease is tried again."""
        try:
            with anyio.fail_after(_patience(lease.ttl_s)):
                await self._seats.keepalive(seat)
        except (CentralError, TimeoutError) as error:
            self._missed(lease, error)
            return
        current = self.kept.leases.get(lease.key)
        if current is not None and rules.is_due(current, self.kept.clock()):  # the join did not tell of it
            self.kept.put(lease.key, rules.unanswered(current, self.kept.clock()))

    def _missed(self, lease: Lease, error: Exception) -> None:
        """A question or a renewal came to nothing. If the tool refuses to say who holds it, the board is not ours any more."""
        if isinstance(error, ToolFailed):
            self._lost(lease, None, str(error))
        elif lease.key in self.kept.leases:
            log.info("%s is tried again: %s", self.kept.named(lease.key), str(error) or "no answer in time")
            refused = isinstance(error, (Unauthenticated, Forbidden))
            current = self.kept.leases[lease.key]
            self.kept.put(lease.key, rules.unanswered(current, self.kept.clock(), refused=refused))

    def _lost(self, lease: Lease, stands: Standing | None, error: str) -> None:
        """It could not be renewed: tell those who must know."""
        if lease.key not in self.kept.leases:
            return  # an event has told it
        keepers = self.kept.keepers(lease.key)
        kept, cue = rules.not_renewed(lease, stands, self.kept.clock(), error)
        log.info("%s was not renewed: it is %s (%s)", self.kept.named(lease.key), stands or "unknown", error)
        if kept is None and stands != "ended" and not lease.is_resumed:  # else the pause has been counted
            self._pool.windows.opened(LW_KEEPALIVE, f"{self.kept.named(lease.key)}: {error}")
        self.kept.put(lease.key, kept)
        for holder in keepers if cue is not None else ():
            holder.tell(lease.key.agent_id, cue or {})

    async def _look(self, board: str) -> None:
        """Find what the seats in use on a board hold."""
        since = self.kept.looked(board)
        try:
            with anyio.fail_after(ANSWER[1]):
                survey = await holdings.of_seats(self._pool, board, self.kept.agents(board), since=since)
        except (CentralError, TimeoutError) as error:
            log.info("board %s: it cannot be told who holds what: %s", board, str(error) or "no answer in time")
            if not isinstance(error, (ToolFailed, Unauthenticated, Forbidden)):
                self.kept.journal_cued(board)  # look again soon
            return
        self.kept.surveyed(board, survey.seq)
        if survey.ttl_s is not None:
            self.kept.set_ttl(board, survey.ttl_s)
        for claim in survey.claims:
            self.kept.saw_if_ours(claim, survey.seq)


def _patience(ttl_s: float) -> float:
    """How long to wait for one answer about a lease."""
    return min(max(ttl_s / 5, ANSWER[0]), ANSWER[1])


def _nothing(_: frozenset[str]) -> None:
    """Nobody to tell."""
