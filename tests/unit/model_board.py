"""A board of the model of Central: its journal, its tickets and its seats, and who sees what (central.md §4.5, §6).

Every act writes rows as the real board does, with the same recipients; the outlet of the board publishes their cues.
`reads` says afterwards what was asked, and what it would have shown to each seat.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pursersd.errors import ToolFailed
from pursersd.ids import agent_id, agent_uri, journal_uri

PRINCIPAL = "PR-daemon"
BOSS = "AI-boss"
"""A seat of somebody else's principal."""
REAPER = "board-reaper:PR-boss"

Json = dict[str, Any]


class Outlet(Protocol):
    """What a board needs of its Central."""

    coordinates: bool
    """Whether the credential holds board:coordinate."""

    @property
    def now(self) -> float:
        """The time, in seconds."""

    def publish(self, uris: Sequence[str], seq: int) -> None:
        """A row was written: its cues leave, in this order. None leave for a row that cues nobody."""


@dataclass(slots=True, eq=False)
class Row:
    """One row of a journal."""

    seq: int
    at: float
    event: Json
    recipients: frozenset[str]
    expired: bool = False
    """Whether its `expires_at` has passed."""

    @property
    def actor(self) -> str:
        return str(self.event["actor"])


@dataclass(slots=True)
class Ticket:
    """A ticket as `ticket_get` shows it, now and before."""

    versions: list[tuple[float, Json]]

    @property
    def now(self) -> Json:
        return self.versions[-1][1]

    @property
    def is_open(self) -> bool:
        return bool(self.now["status"] == "open")

    def between(self, start: float, end: float, *, after: bool = False) -> list[Json]:
        """Every version that was the current one at some moment from `start` (or `after` all of it) to `end`."""
        ends = [at for at, _ in self.versions[1:]] + [float("inf")]
        return [
            row
            for (at, row), until in zip(self.versions, ends, strict=True)
            if at <= end and (until > start or (until == start and not after))
        ]


@dataclass(frozen=True, slots=True)
class Read:
    """One catchup that was carried out, and what it would have shown to each seat of ours."""

    agent: str
    cursor: int
    next_cursor: int
    at: float
    has_more: bool
    reset: int | None
    """Where it sent a caller whose place the journal no longer has."""
    shows: Mapping[str, frozenset[int]]


class ModelBoard:
    """A board. `seats` are ours, whether they have joined or not."""

    def __init__(self, outlet: Outlet, name: str, seats: Iterable[str], *, dispatch: bool = False) -> None:
        self.name = name
        self.rows: list[Row] = []
        self.tickets: dict[str, Ticket] = {}
        self.agents = {self.agent(seat) for seat in seats}
        self.active = {BOSS: True}
        self.acked: dict[str, int] = {}
        self.acks: list[tuple[str, int]] = []
        self.compacted_through = 0
        self.dispatch = dispatch
        self.page_rows = 1000
        self.reads: list[Read] = []
        self._outlet = outlet

    @property
    def head(self) -> int:
        return len(self.rows)

    def agent(self, name: str) -> str:
        """The agent id of a seat of ours, or of the boss."""
        return BOSS if name == "boss" else agent_id(self.name, PRINCIPAL, name)

    # --- what happens on it -----------------------------------------------------------------------------------------

    def create(self, actor: str, assignee: str | None = None) -> str:
        """A new ticket; where work is handed out it is offered to `assignee`, else assigned to it."""
        ticket_id = f"T-{len(self.tickets) + 1}"
        row: Json = {
            "ticket_id": ticket_id,
            "created_by_agent_id": actor,
            "claimed_by_agent_id": None,
            "target_url": f"{self.name}/{ticket_id}",
            "status": "none",
        }
        if self.dispatch:
            row["dispatch_state"] = {"state": "broadcast"}
        elif assignee:
            row["assigned"] = {"agent_id": assignee}
        self.tickets[ticket_id] = Ticket([(self._outlet.now, row)])
        told = frozenset() if self.dispatch else frozenset({assignee}) if assignee else self._others(actor)
        self._turn(actor, ticket_id, "open", told, kind="ticket_created")
        if self.dispatch and assignee:
            self.offer(ticket_id, assignee)
        return ticket_id

    def offer(self, ticket_id: str, seat: str) -> None:
        self._change(ticket_id, work_offer={"agent_id": seat}, dispatch_state={"state": "offered"})
        self._write(REAPER, "ticket_offered", {seat}, ticket_id, offer_kind="work", offered_agent_id=seat)

    def end_offer(self, ticket_id: str) -> None:
        """The offer has expired: anybody may claim now. Who has not read it yet will not see it any more."""
        offer = self.tickets[ticket_id].now.get("work_offer")
        if offer is None:
            return
        for row in self.rows:
            row.expired |= row.event["kind"] == "ticket_offered" and row.event.get("ticket_id") == ticket_id
        self._change(ticket_id, work_offer=None, dispatch_state={"state": "broadcast"})
        seat = offer["agent_id"]
        self._write(REAPER, "offer_expired", {seat}, ticket_id, offer_kind="work", offered_agent_id=seat)

    def claim(self, actor: str, ticket_id: str) -> None:
        if self.tickets[ticket_id].is_open:
            self._change(ticket_id, claimed_by_agent_id=actor, work_offer=None)
            self._turn(actor, ticket_id, "claimed", self._others(actor))

    def unclaim(self, ticket_id: str) -> None:
        ticket = self.tickets[ticket_id].now
        if ticket["status"] == "claimed":
            holder = ticket["claimed_by_agent_id"]
            self._free(ticket_id, holder)
            self._turn(holder, ticket_id, "open", self._others(holder))

    def lapse(self, ticket_id: str) -> None:
        """The lease of the holder has run out; everybody is told, the former holder too."""
        ticket = self.tickets[ticket_id].now
        if ticket["status"] == "claimed":
            holder = ticket["claimed_by_agent_id"]
            self._free(ticket_id, holder)
            self._turn(REAPER, ticket_id, "open", self._others(None), last_abandoned_by=holder)

    def finish(self, actor: str, ticket_id: str) -> None:
        ticket = self.tickets[ticket_id].now
        if ticket["status"] != "closed":
            concerned = {ticket["claimed_by_agent_id"], ticket["created_by_agent_id"]} - {None, actor}
            self._turn(actor, ticket_id, "closed", concerned & self._others(actor))

    def annotate(self, actor: str, ticket_id: str) -> None:
        """Told to the holder only, even if it is the actor (who does not see it)."""
        holder = self.tickets[ticket_id].now["claimed_by_agent_id"]
        self._write(actor, "ticket_annotated", {holder} - {None} if holder else (), ticket_id)

    def announce(self, actor: str) -> None:
        """Something for all others that belongs to no ticket."""
        self._write(actor, "board_claim_ttl_changed", self._others(actor))

    def tell(self, actor: str, *told: str) -> None:
        """Something for these seats that belongs to no ticket."""
        self._write(actor, "coordinator_question_answered", set(told) & self._others(None))

    def change_state(self, actor: str) -> None:
        """For tokens with board:coordinate only; cued twice, and to no seat."""
        self._write(actor, "board_state_changed", (), payload_ref=journal_uri(self.name))

    def whisper(self, actor: str) -> None:
        """A private memory: its author is cued and does not see it."""
        self._write(actor, "memory_written", {actor})

    def archive(self) -> None:
        """A row that nobody sees and that nothing cues."""
        self._write(BOSS, "ticket_archived", (), cued=False)

    def retire(self, actor: str, target: str) -> None:
        """The target is told nothing more until it joins again; it is cued for that, too, though it does not see it."""
        if self.active.get(target):
            self.active[target] = False
            self._write(actor, "agent_lifecycle_changed", self._others(actor), payload_ref=agent_uri(self.name, target))

    def rename(self, actor: str, target: str) -> None:
        """Cues the target twice if it is told."""
        told = self._others(actor)
        self._write(actor, "agent_display_name_changed", told, payload_ref=agent_uri(self.name, target))

    def join(self, name: str) -> str:
        agent = self.agent(name)
        if self.active.get(agent) is False:
            self.active[agent] = True
            told = self._others(agent)
            self._write(agent, "agent_lifecycle_changed", told, payload_ref=agent_uri(self.name, agent))
        self.active[agent] = True
        return agent

    def compact(self, keep: int) -> None:
        """Forget the journal but for its last rows."""
        self.compacted_through = max(self.compacted_through, self.head - keep)

    def _others(self, actor: str | None) -> frozenset[str]:
        return frozenset(agent for agent, active in self.active.items() if active and agent != actor)

    def _change(self, ticket_id: str, **fields: Any) -> None:
        ticket = self.tickets[ticket_id]
        stamp = {"updated_at": f"v{len(ticket.versions)}"}
        ticket.versions.append((self._outlet.now, {**ticket.now, **fields, **stamp}))

    def _free(self, ticket_id: str, holder: str) -> None:
        state = {"dispatch_state": {"state": "broadcast"}} if self.dispatch else {}
        self._change(ticket_id, claimed_by_agent_id=None, last_claimed_by_agent_id=holder, **state)

    def _turn(
        self,
        actor: str,
        ticket_id: str,
        status: str,
        told: Iterable[str],
        *,
        kind: str = "ticket_status_changed",
        **fields: Any,
    ) -> None:
        before = self.tickets[ticket_id].now["status"]
        self._change(ticket_id, status=status)
        self._write(actor, kind, told, ticket_id, status_from=before, status_to=status, **fields)

    def _write(
        self,
        actor: str,
        kind: str,
        told: Iterable[str],
        ticket_id: str | None = None,
        *,
        payload_ref: str | None = None,
        cued: bool = True,
        **fields: Any,
    ) -> None:
        seq = self.head + 1
        ref = payload_ref or f"board://{self.name}/ticket/{ticket_id}"
        event: Json = {"seq": seq, "board_id": self.name, "kind": kind, "actor": actor, "payload_ref": ref, **fields}
        if ticket_id is not None:
            event["ticket_id"] = ticket_id
        row = Row(seq, self._outlet.now, event, frozenset(told))
        self.rows.append(row)
        recipients = [agent_uri(self.name, agent) for agent in sorted(row.recipients)]
        self._outlet.publish([ref, journal_uri(self.name), *recipients] if cued else [], seq)

    # --- who sees what (central.md §6.3) ----------------------------------------------------------------------------

    def sees(self, agent: str, row: Row) -> bool:
        """Whether the row is in the pages of this seat now."""
        if row.actor == agent or row.expired:
            return False
        if agent in row.recipients:
            return True
        kind = row.event["kind"]
        if kind == "board_state_changed":
            return self._outlet.coordinates
        opened = kind in ("ticket_created", "ticket_status_changed") and row.event["status_to"] == "open"
        return opened and self.tickets[row.event["ticket_id"]].is_open

    def visible(self, agent: str, start: int, end: int | None = None) -> frozenset[int]:
        """The places after `start` up to `end` that this seat sees now."""
        return frozenset(row.seq for row in self.rows[start:end] if self.sees(agent, row))

    def catchup(self, agent: str, arguments: Mapping[str, Any]) -> Json:
        if agent not in self.active:
            raise ToolFailed("board_catchup", "agent is not a member of this board")
        if arguments["touch"] and not self.active[agent]:
            raise ToolFailed("board_catchup", "agent is not active; call board_onboard or board_join before more work")
        cursor = arguments.get("cursor", self.acked.get(agent, 0))
        if cursor > self.head:
            raise ToolFailed("board_catchup", f"cursor is ahead of journal: {cursor} > {self.head}")
        resync = cursor < self.compacted_through
        end = cursor if resync else min(self.head, cursor + min(arguments["limit"], self.page_rows))
        shows = {seat: self.visible(seat, cursor, end) for seat in self.agents}
        has_more = not resync and end < self.head
        self.reads.append(Read(agent, cursor, end, self._outlet.now, has_more, self.head if resync else None, shows))
        if arguments["touch"] and arguments["ack"] and not resync:
            self.acked[agent] = max(self.acked.get(agent, 0), end)
            self.acks.append((agent, end))
        return {
            "events": [dict(self.rows[seq - 1].event) for seq in sorted(shows[agent])],
            "next_cursor": end,
            "latest_cursor": self.head,
            "has_more": has_more,
            "scan_count": end - cursor,
            "resync_required": resync,
            "reset_cursor": self.head,
        }

    def listing(self, arguments: Mapping[str, Any]) -> Json:
        wanted = arguments.get("ticket_ids")
        rows = [ticket.now for ticket in self.tickets.values()]
        rows = [row for row in rows if arguments["include_closed"] or row["status"] != "closed"]
        rows = [row for row in rows if wanted is None or row["ticket_id"] in wanted]
        rows = [row for row in rows if arguments.get("status") in (None, row["status"])]
        filters = {"ticket_ids": sorted(wanted)} if wanted is not None else {}
        return {"tickets": rows, "total_matching": len(rows), "latest_seq": self.head, "filters": filters}
