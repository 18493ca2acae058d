"""Central's leases in virtual time: who holds what until when, by the rules of central.md §7, and what we sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import anyio

from pursersd.central.pool import Pool
from pursersd.errors import CentralError, ToolFailed
from pursersd.ids import agent_id
from pursersd.windows import Windows
from unit.virtual_time import now

PRINCIPAL = "PR-1"
AHEAD = 3600.0
"""Central's clock is an hour ahead of ours."""


def agent(name: str, board: str = "b") -> str:
    return agent_id(board, PRINCIPAL, name)


def wall() -> float:
    """Our own wall clock."""
    return 1.7e9 + now()


@dataclass
class Ticket:
    """One ticket; `holder` is a seat's name."""

    status: str = "open"
    holder: str | None = None
    expires: float = 0.0
    ttl: int = 0
    source: str = "model"
    reason: str | None = None


@dataclass
class LeaseCentral:
    """Answers the calls that keep leases. `errors` fail the next requests, `delay` is what each of them takes."""

    ttl: int = 10
    delay: float = 0.01
    tickets: dict[str, Ticket] = field(default_factory=dict)
    errors: list[CentralError] = field(default_factory=list)
    is_down: CentralError | None = None
    sent: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)
    """When, which tool, with what."""
    wrong: list[str] = field(default_factory=list)
    """Renewals that should not have been sent."""
    seats: set[str] = field(default_factory=set)
    """Names of the seats that somebody uses."""
    windows: Windows = field(default_factory=Windows)
    running: int = 0
    most: int = 0
    seq: int = 0

    @property
    def as_pool(self) -> Pool:
        return cast("Pool", self)

    @property
    def let_go(self) -> int:
        """How many leases were counted as let go."""
        return sum(window.count for window in self.windows.snapshot() if window.counter == "leases_let_go")

    def count(self, tool: str) -> int:
        return sum(name == tool for _, name, _ in self.sent)

    # --- what models do ---------------------------------------------------------------------------------------------

    def claim(self, name: str, ticket: str) -> None:
        self.reap()
        found = self.tickets.setdefault(ticket, Ticket())
        if found.status == "open":
            self.seq += 1
            found.status, found.holder, found.reason = "claimed", name, None
            self._renew(found, "model")

    def touch(self, name: str) -> None:
        """Any call of a seat renews what it holds."""
        self.reap()
        for ticket in self.tickets.values():
            if ticket.holder == name and ticket.status == "claimed":
                self._renew(ticket, "model")

    def end(self, ticket: str, status: str, reason: str | None = None) -> None:
        self.seq += 1
        found = self.tickets[ticket]
        found.status, found.reason = status, reason
        if status == "open":
            found.holder = None

    def reap(self) -> None:
        for ticket_id, ticket in self.tickets.items():
            if ticket.status == "claimed" and ticket.expires <= now():
                self.end(ticket_id, "open", "lease expired")

    def is_held(self, name: str, ticket: str) -> bool:
        found = self.tickets[ticket]
        return found.status == "claimed" and found.holder == name and found.expires > now()

    # --- what the pool is asked -------------------------------------------------------------------------------------

    async def read(self, tool: str, arguments: Mapping[str, Any], **_: object) -> dict[str, Any]:
        return await self.call(tool, arguments)

    async def call(self, tool: str, arguments: Mapping[str, Any], **_: object) -> dict[str, Any]:
        self.sent.append((now(), tool, dict(arguments)))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await anyio.sleep(self.delay / 2)
            if self.is_down is not None:
                raise self.is_down
            if self.errors:
                raise self.errors.pop(0)
            answer: dict[str, Any] = getattr(self, f"_{tool}")(arguments)
            await anyio.sleep(self.delay / 2)
            return answer
        finally:
            self.running -= 1

    def _board_list(self, _: Mapping[str, Any]) -> dict[str, Any]:
        names = sorted({ticket.holder for ticket in self.tickets.values() if ticket.holder} | {"ann"})
        ids = [agent(name) for name in names]
        return {"boards": [{"board_id": "b", "agent_names": names, "agent_ids": ids}]}

    def _board_status(self, _: Mapping[str, Any]) -> dict[str, Any]:
        holders = {ticket.holder for ticket in self.tickets.values() if ticket.status == "claimed"}
        agents = [{"agent_id": agent(x), "role": "worker", "lease_expires_at": "soon"} for x in holders if x]
        return {"agents": agents, "claim_ttl_s": self.ttl, "latest_seq": self.seq}

    def _ticket_list(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        ids = arguments.get("ticket_ids", list(self.tickets))
        status = arguments.get("status")
        rows = [self.row(x) for x in ids if x in self.tickets and status in (None, self.tickets[x].status)]
        return {"tickets": rows, "latest_seq": self.seq, "has_more": False}

    def _lease_renew(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        assert arguments["renewal_source"] == "keepalive"
        self.reap()
        ticket = self.tickets[arguments["ticket_id"]]
        if ticket.status != "claimed":
            raise ToolFailed("lease_renew", "lease is not held by this principal; lease was released at then")
        if ticket.holder != arguments["agent_name"] or ticket.holder not in self.seats:
            self.wrong.append(f"{now():.3f}: {arguments['ticket_id']} of {ticket.holder} for {arguments['agent_name']}")
        self._renew(ticket, "keepalive")
        return {"ok": True, "lease_expires_at": moment(ticket.expires), "at": moment(now())}

    def row(self, ticket_id: str) -> dict[str, Any]:
        ticket = self.tickets[ticket_id]
        return {
            "ticket_id": ticket_id,
            "status": ticket.status,
            "claimed_by": ticket.holder,
            "claimed_by_agent_id": agent(ticket.holder) if ticket.holder else None,
            "ttl_s": ticket.ttl,
            "lease_expires_at": moment(ticket.expires),
            "last_release_reason": ticket.reason,
        }

    def _renew(self, ticket: Ticket, source: str) -> None:
        ticket.expires, ticket.ttl, ticket.source = now() + self.ttl, self.ttl, source


def moment(virtual: float) -> str:
    """A virtual time as Central writes it."""
    return datetime.fromtimestamp(1.7e9 + AHEAD + virtual, UTC).isoformat()
