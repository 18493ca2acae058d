"""What is known of the leases of one pool: who uses which seat, what each holds, when something is due. Asks nobody.

The model claims through a connector of its own, so leases are found: in the answers of our joins, in the tickets that
waits read anyway, and by a rare look at a board on which somebody works without waiting.
"""

import logging
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from pursersd.clock import boottime
from pursersd.rules import lease as rules
from pursersd.rules.lease import Claim, Lease, LeaseKey
from pursersd.seats.holder import Holder, Identity
from pursersd.seats.observer import Observer

log = logging.getLogger(__name__)

LOOK = (0.2, 45.0)
"""Shortest and longest time from a cue to the look at its board, in seconds; between them a twentieth of the TTL."""

LAPSED = 2.0
"""Seconds after which a lease that was not renewed has lapsed at Central, too."""

NEVER = float("inf")


@dataclass(slots=True)
class _Board:
    """One board on which seats are in use."""

    looked: float
    surveyed: int = 0
    """Up to which place in the journal it is known what the seats in use hold."""
    users: dict[Holder, None] = field(default_factory=dict)
    ttl_s: float = rules.DEFAULT_TTL_S
    dirty: float | None = None
    """When the first cue came since the last look."""


class Kept(Observer):
    """The leases of all seats in use, each as rules/lease.py has it. `changed` is set when something may be due earlier."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = boottime,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.changed = anyio.Event()
        self.leases: dict[LeaseKey, Lease] = {}
        self.users: dict[str, dict[Holder, None]] = {}
        """The live conversations of each seat, by agent id."""
        self.clock = clock
        self._chance = chance
        self._boards: dict[str, _Board] = {}
        self._ahead: float | None = None
        """Central's seconds since 1970 minus `clock`; None until it told its time. Our own wall clock plays no part."""

    def __repr__(self) -> str:
        paused = sum(lease.is_paused for lease in self.leases.values())
        return f"<Kept {len(self.leases)} leases ({paused} paused) of {len(self.users)} seats>"

    # --- who uses which seat ----------------------------------------------------------------------------------------

    def note(self, holder: Holder) -> None:
        """A conversation became active, or took a seat."""
        for identity in holder.seats.values():
            board = self._board(identity.board)
            board.users[holder] = None
            if identity.agent_id not in self.users:
                board.surveyed = 0  # not for this seat
            self.users.setdefault(identity.agent_id, {})[holder] = None
        self.changed.set()

    def drop(self, holder: Holder) -> None:
        """Nobody is behind it any more: what nobody else uses is forgotten, its leases lapse."""
        for agent in holder.seats:
            self.users.get(agent, {}).pop(holder, None)
        self.users = {agent: users for agent, users in self.users.items() if users}
        for board in self._boards.values():
            board.users.pop(holder, None)
        self._boards = {name: board for name, board in self._boards.items() if board.users}
        self.leases = {key: lease for key, lease in self.leases.items() if key.agent_id in self.users}
        self.changed.set()

    def keepers(self, key: LeaseKey) -> list[Holder]:
        """Whose lease it is: of several conversations on a seat the one that was given the ticket, if just one was."""
        users = list(self.users.get(key.agent_id, ()))
        given = [holder for holder in users if holder.was_given(key)]
        return given if len(given) == 1 else users

    def named(self, key: LeaseKey) -> str:
        """A lease and whose it is, for the log."""
        whose = ", ".join(holder.conversation for holder in self.keepers(key) if holder.conversation)
        return f"the {key.kind} lease of {key.ticket_id} on {key.board}{f' ({whose})' if whose else ''}"

    def kept_for(self, holder: Holder) -> list[tuple[Lease, float]]:
        """The leases that are this conversation's, each with the seconds that are left of it."""
        mine = [lease for key, lease in self.leases.items() if holder in self.keepers(key)]
        return [(lease, max(0.0, lease.expires - self.clock())) for lease in mine]

    def identity(self, agent: str) -> Identity | None:
        """A seat in use, the joined one if there is one."""
        found = [user.seats[agent] for user in self.users.get(agent, ())]
        return next((identity for identity in found if identity.seat), found[0] if found else None)

    def agents(self, board: str) -> set[str]:
        """The seats in use on a board."""
        users = self._boards[board].users if board in self._boards else ()
        return {identity.agent_id for user in users for identity in user.seats.values() if identity.board == board}

    def ttl_s(self, board: str) -> float:
        """The TTL of a board's leases, as far as we know."""
        return self._board(board).ttl_s

    # --- what is seen by the way ------------------------------------------------------------------------------------

    def joined(self, board: str, answer: Mapping[str, Any]) -> None:
        """A join has renewed all that its seat holds, and tells it; what else we thought it held must be asked about."""
        if (ttl_s := rules.number(answer.get("claim_ttl_s"))) is not None:
            self._board(board).ttl_s = ttl_s
        held = rules.joined_claims(board, answer)
        for claim in held:
            self.tells_time(claim.expires_at, claim.ttl_s)
            self.saw(claim, None)
        keys = {claim.key for claim in held}
        agent = answer.get("agent_id")
        self.ask_now(key for key in self.leases if key.agent_id == agent and key not in keys)

    def tickets(self, board: str, answer: Mapping[str, Any]) -> None:
        """Tickets were read for a wait: some may be held by a seat in use."""
        seq = rules.number(answer.get("latest_seq"))
        rows = answer["tickets"] if isinstance(answer.get("tickets"), list) else [answer.get("ticket")]
        for row in rows:
            for claim in rules.claims(board, row) if isinstance(row, dict) else ():
                self.saw_if_ours(claim, None if seq is None else int(seq))

    def events(self, board: str, events: Sequence[Mapping[str, Any]]) -> None:
        """Events were read for a wait: some may end a lease, or change the board's TTL."""
        now = self.clock()
        held = {key.ticket_id for key in self.leases if key.board == board}
        for event in events:
            if (ttl_s := rules.changed_ttl(event)) is not None:
                self.set_ttl(board, ttl_s)
            if event.get("ticket_id") not in held:
                continue
            for key, lease in list(self.leases.items()):
                if key.board == board and key.ticket_id == event["ticket_id"]:
                    self.put(key, rules.after_event(lease, event, now))

    def journal_cued(self, board: str) -> None:
        """Something happened: a seat of ours may have claimed a ticket."""
        known = self._boards.get(board)
        if known is not None and known.dirty is None:
            known.dirty = self.clock()
            self.changed.set()

    def may_join(self, agent: str) -> bool:
        """Not while a lease of its is left to lapse: of two conversations on a seat one may be idle and the other wait."""
        now = self.clock()
        mine = [lease for key, lease in self.leases.items() if key.agent_id == agent and lease.is_paused]
        return all(lease.expires + LAPSED <= now for lease in mine)

    def saw_if_ours(self, claim: Claim, seq: int | None) -> None:
        """A ticket is held, maybe by a seat in use."""
        if claim.key.agent_id in self.users:
            self.saw(claim, seq)

    def saw(self, claim: Claim, seq: int | None) -> None:
        """A seat of ours holds this."""
        before = self.leases.get(claim.key)
        left_s = None
        # One that was renewed before the board's TTL changed will be shorter or longer from the next renewal on.
        is_current = claim.ttl_s is None or claim.ttl_s == self.ttl_s(claim.key.board)
        if claim.expires_at is not None and self._ahead is not None and is_current:
            left_s = claim.expires_at - self._ahead - self.clock()
        if before is None:
            log.info("%s is kept for %s", self.named(claim.key), claim.agent_name)
        self.put(claim.key, rules.seen(claim, before, self.clock(), left_s=left_s, seq=seq, jitter=self._chance()))

    def set_ttl(self, board: str, ttl_s: float) -> None:
        """The board's TTL is this one."""
        self._board(board).ttl_s = ttl_s
        for key, lease in list(self.leases.items()):
            if key.board == board and lease.ttl_s != ttl_s:
                self.put(key, rules.ttl_changed(lease, self.clock(), ttl_s))

    def tells_time(self, expires_at: float | None, ttl_s: float | None) -> None:
        """Central has renewed a lease just now, so its clock shows what is left when the TTL is taken off."""
        if expires_at is not None and ttl_s is not None:
            self._ahead = expires_at - ttl_s - self.clock()

    def renewed(self, key: LeaseKey, answer: Mapping[str, Any]) -> None:
        """Central answered lease_renew."""
        expires, at = rules.moment(answer.get("lease_expires_at")), rules.moment(answer.get("at"))
        ttl_s = rules.number(answer.get("ttl_s"))
        if ttl_s is None and expires is not None and at is not None:
            ttl_s = float(round(expires - at))
        if ttl_s is not None:
            self._board(key.board).ttl_s = ttl_s
        self.tells_time(expires, ttl_s)
        if key in self.leases:  # an event may have ended it while Central answered
            self.put(key, rules.renewed(self.leases[key], self.clock(), ttl_s, self._chance()))
        log.debug("%s is renewed", self.named(key))

    def put(self, key: LeaseKey, lease: Lease | None) -> None:
        """What has become of a lease; None forgets it."""
        if lease is None:
            self.leases.pop(key, None)
        else:
            self.leases[key] = lease
        self.changed.set()

    # --- what is due ------------------------------------------------------------------------------------------------

    def ask_now(self, keys: Iterable[LeaseKey]) -> None:
        """Something may have happened to these: ask who holds them."""
        for key in list(keys):
            self.put(key, rules.asked_now(self.leases[key], self.clock()))

    def slept(self) -> None:
        """The machine slept: no lease and no clock is what it was."""
        self._ahead = None
        self.ask_now(self.leases)

    def settle(self) -> list[LeaseKey]:
        """Pause what nobody works on, resume what somebody works on again; returns what is paused from now on."""
        now, ceased = self.clock(), []
        for key, lease in list(self.leases.items()):
            keepers = self.keepers(key)
            active = any(holder.is_active(now, lease.ttl_s) for holder in keepers)
            if lease.is_paused and active:
                self.leases[key] = rules.resumed(lease, now)
            elif not keepers and lease.due <= now:
                del self.leases[key]
            elif keepers and not (lease.is_paused or active) and lease.due <= now:
                self.leases[key] = rules.paused(lease)
                ceased.append(key)
                for holder in keepers:
                    holder.tell(key.agent_id, rules.paused_cue(lease, holder.limit_s(lease.ttl_s)))
        return ceased

    @property
    def boards(self) -> frozenset[str]:
        """The boards on which leases are renewed."""
        return frozenset(key.board for key, lease in self.leases.items() if not lease.is_paused)

    def due(self, now: float) -> list[Lease]:
        """The leases to ask about, those of one board, the most urgent first; none if none is due.

        With one that is due come those that soon will be: one question serves all.
        """
        kept = sorted((lease for lease in self.leases.values() if not lease.is_paused), key=lambda lease: lease.due)
        if not kept or kept[0].due > now:
            return []
        return [lease for lease in kept if rules.is_due(lease, now) and lease.key.board == kept[0].key.board]

    def next(self, now: float) -> float:
        """When there is something to ask."""
        renewals = (lease.due for lease in self.leases.values() if not lease.is_paused)
        return min((*renewals, *(self.look_due(name, now) for name in self._boards)), default=NEVER)

    def looks_due(self, now: float) -> list[str]:
        """The boards to look at."""
        return [name for name in self._boards if self.look_due(name, now) <= now]

    def look_due(self, name: str, now: float) -> float:
        """When to look at a board: while somebody works there who does not wait, after a cue, and once in a while.

        Who waits cannot claim, and its wait reads the tickets anyway.
        """
        board = self._boards[name]
        if not any(not user.is_waiting and user.is_active(now, board.ttl_s) for user in board.users):
            return NEVER
        routine = board.looked + rules.interval_s(board.ttl_s)
        if board.dirty is None:
            return routine
        delay = min(max(board.ttl_s / 20, LOOK[0]), LOOK[1])
        return min(routine, max(board.dirty, board.looked) + delay)

    def look_soon(self, board: str) -> None:
        """A seat on this board may hold anything."""
        self._board(board).looked = -NEVER
        self.changed.set()

    def looked(self, board: str) -> int:
        """Somebody looks at the board now; returns up to where it is known."""
        known = self._board(board)
        known.looked, known.dirty = self.clock(), None
        return known.surveyed

    def surveyed(self, board: str, seq: int) -> None:
        """What the seats in use hold is known up to this place in the journal."""
        self._board(board).surveyed = seq

    def _board(self, name: str) -> _Board:
        return self._boards.setdefault(name, _Board(self.clock()))
