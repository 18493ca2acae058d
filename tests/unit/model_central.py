"""An executable model of Central: who sees what, who is cued, and what of it gets lost (central.md §4 to §6).

It stands where CentralClient stands, below a real Pool: calls take time, are carried out in one step, and their answers
may be lost; cues are sent when something is written and arrive in order on each stream, but late, and on two streams
independently. `reads` and `cues` say afterwards what was asked and told.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Literal

import anyio

from pursersd.errors import CentralError, Overloaded, ProtocolRefused, ToolFailed, Unreachable
from pursersd.ids import agent_id, agent_uri, journal_uri

PRINCIPAL = "PR-daemon"
BOSS = "AI-boss"
"""A seat of somebody else's principal."""
REAPER = "board-reaper:PR-boss"

Mode = Literal["up", "down", "refusing", "overloaded"]
Json = dict[str, Any]


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
    resynced: bool
    shows: Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Cue:
    """A cue that reached the daemon."""

    uri: str
    seq: int
    at: float


@dataclass(slots=True)
class Delays:
    """How long things are on their way, in seconds; each list is used over and over."""

    calls: Sequence[float] = (0.001,)
    journal: Sequence[float] = (0.001,)
    seats: Sequence[float] = (0.001,)
    _turns: dict[str, Iterator[float]] = field(default_factory=dict)

    def next(self, what: Literal["calls", "journal", "seats"]) -> float:
        return next(self._turns.setdefault(what, cycle(getattr(self, what))))


class ModelBoard:
    """A board: its journal, its tickets and its seats. Every act writes rows, which `central` tells of."""

    def __init__(self, central: "ModelCentral", name: str, seats: Iterable[str], *, dispatch: bool = False) -> None:
        self.name = name
        self.rows: list[Row] = []
        self.tickets: dict[str, Ticket] = {}
        self.agents = {self.agent(seat) for seat in seats}
        """Our seats, whether they have joined or not."""
        self.active = {BOSS: True}
        self.acked: dict[str, int] = {}
        self.acks: list[tuple[str, int]] = []
        self.compacted_through = 0
        self.dispatch = dispatch
        self.page_rows = 1000
        self.reads: list[Read] = []
        self._central = central

    @property
    def head(self) -> int:
        return len(self.rows)

    def agent(self, name: str) -> str:
        """The agent id of a seat of ours, or of the boss."""
        return BOSS if name == "boss" else agent_id(self.name, PRINCIPAL, name)

    @property
    def cues(self) -> list[Cue]:
        """Every cue that reached the daemon."""
        return self._central.cues

    def is_live(self, agent: str) -> bool:
        """Whether Central takes the seat for live, or has denied to listen to it."""
        return agent_uri(self.name, agent) in self._central.listeners | self._central.was_denied

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
        self.tickets[ticket_id] = Ticket([(self._central.now, row)])
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
        ticket.versions.append((self._central.now, {**ticket.now, **fields, **stamp}))

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
        row = Row(seq, self._central.now, event, frozenset(told))
        self.rows.append(row)
        self._central.changed = row.at
        if cued:
            recipients = [agent_uri(self.name, agent) for agent in sorted(row.recipients)]
            self._central.publish([ref, journal_uri(self.name), *recipients], seq)

    # --- who sees what (central.md §6.3) ----------------------------------------------------------------------------

    def sees(self, agent: str, row: Row) -> bool:
        """Whether the row is in the pages of this seat now."""
        if row.actor == agent or row.expired:
            return False
        if agent in row.recipients:
            return True
        kind = row.event["kind"]
        if kind == "board_state_changed":
            return self._central.coordinates
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
        self.reads.append(Read(agent, cursor, end, self._central.now, has_more, resync, shows))
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


@dataclass(slots=True, eq=False)
class _Stream:
    """One open subscription: cues on their way, and how it ends."""

    uris: frozenset[str]
    arrived: float
    queue: deque[Cue] = field(default_factory=deque)
    end: CentralError | None = None
    is_over: bool = False
    """Nothing is sent on it any more; what is on its way still arrives, unless `end` is set."""
    news: anyio.Event = field(default_factory=anyio.Event)

    def send(self, uri: str, seq: int, at: float) -> None:
        self.arrived = max(self.arrived, at)
        self.queue.append(Cue(uri, seq, self.arrived))
        self.news.set()

    def cut(self, error: CentralError) -> None:
        self.end, self.is_over = error, True
        self.news.set()

    def overflow(self) -> None:
        self.is_over = True
        self.news.set()


class ModelCentral:
    """Boards, streams and the wires to them. `mode` says whether Central answers."""

    def __init__(self, delays: Delays, *, coordinates: bool = False) -> None:
        self.boards: dict[str, ModelBoard] = {}
        self.mode: Mode = "up"
        self.delays = delays
        self.coordinates = coordinates
        """Whether the credential holds board:coordinate."""
        self.cues: list[Cue] = []
        self.listeners: set[str] = set()
        """Seats that Central takes for live: a set, from which the older of two streams takes what the newer put in."""
        self.denied: set[str] = set()
        self.was_denied: set[str] = set()
        self.streams: list[_Stream] = []
        self.changed = 0.0
        """When something was written last, or a stream opened or closed."""
        self._era = 0

    @property
    def now(self) -> float:
        return anyio.current_time()

    def board(self, name: str, seats: Iterable[str], *, dispatch: bool = False) -> ModelBoard:
        self.boards[name] = ModelBoard(self, name, seats, dispatch=dispatch)
        return self.boards[name]

    # --- faults -----------------------------------------------------------------------------------------------------

    def cut(self, part: Literal["journal", "agent"]) -> None:
        """The connection of stream J or S breaks; what is on its way is lost."""
        for stream in self._of(part):
            stream.cut(Unreachable("the stream was cut"))

    def overflow(self, part: Literal["journal", "agent"]) -> None:
        """Central drops cues of stream J or S and ends it with a result, after what was sent before."""
        for stream in self._of(part):
            stream.overflow()

    def reset(self) -> None:
        """Every connection breaks; calls that were carried out are not answered."""
        self._era += 1
        for stream in self.streams:
            stream.cut(Unreachable("the connection was reset"))

    def deny(self, part: Literal["journal", "agent"]) -> None:
        """What is open of stream J or S may not be listened to any more."""
        for stream in self._of(part):
            self.denied |= stream.uris
        self.was_denied |= self.denied
        self.cut(part)

    def allow(self) -> None:
        """Everything may be listened to again."""
        self.denied.clear()

    def down(self, mode: Mode) -> None:
        """`down`: Central is gone. `refusing`: it takes no new connection, yet its streams live. `overloaded`: HTTP 503."""
        self.mode = mode
        if mode == "down":
            self.reset()

    def _of(self, part: str) -> list[_Stream]:
        return [stream for stream in self.streams if any(f"/{part}" in uri for uri in stream.uris)]

    # --- what CentralClient does ------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Nothing to close."""

    async def call(self, tool: str, arguments: Mapping[str, Any], *, generation: str | None = None) -> Json:
        self._check(sent=False)
        await anyio.sleep(self.delays.next("calls"))
        self._check(sent=True)
        era, error, answer = self._era, None, {}
        try:
            answer = self._answer(tool, arguments)
        except ToolFailed as failed:
            error = failed
        await anyio.sleep(self.delays.next("calls"))
        if era != self._era:
            raise Unreachable("the answer was lost")
        if error is not None:
            raise error
        return answer

    @asynccontextmanager
    async def listen(self, uris: Iterable[str]) -> AsyncIterator[AsyncIterator[str]]:
        wanted = frozenset(uris)
        self._check(sent=False)
        await anyio.sleep(self.delays.next("calls"))
        self._check(sent=True)
        for uri in sorted(wanted & self.denied):
            raise ProtocolRefused(f"subscription denied: principal is not authorized for resource {uri}")
        stream = _Stream(wanted, self.now + self.delays.next("calls"))
        self.streams.append(stream)
        self.listeners |= wanted
        self.changed = self.now
        try:
            await anyio.sleep(stream.arrived - self.now)
            if stream.end is not None:
                raise stream.end
            yield self._arriving(stream)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(self.delays.next("calls"))
            self.streams.remove(stream)
            self.listeners -= wanted
            self.changed = self.now

    def publish(self, uris: Sequence[str], seq: int) -> None:
        """Something was written: its cues leave, in this order."""
        for stream in self.streams:
            for uri in uris:
                if uri in stream.uris and not stream.is_over:
                    stream.send(uri, seq, self.now + self.delays.next("journal" if "/journal" in uri else "seats"))

    async def _arriving(self, stream: _Stream) -> AsyncIterator[str]:
        while True:
            stream.news = anyio.Event()
            if stream.end is not None:
                raise stream.end
            if stream.queue and stream.queue[0].at <= self.now:
                cue = stream.queue.popleft()
                self.cues.append(cue)
                yield cue.uri
            elif stream.is_over and not stream.queue:
                return
            else:
                with anyio.move_on_after(stream.queue[0].at - self.now if stream.queue else None):
                    await stream.news.wait()

    def _check(self, *, sent: bool) -> None:
        if self.mode == "overloaded":
            raise Overloaded("Central answered HTTP 503", sent=sent)
        if self.mode != "up":
            raise Unreachable("connection refused" if not sent else "connection lost", sent=sent)

    def _answer(self, tool: str, arguments: Mapping[str, Any]) -> Json:
        if tool == "board_list":
            return {"boards": [{"board_id": name} for name in self.boards]}
        board = self.boards[arguments["board_id"]]
        if tool == "board_join":
            name, role = arguments["agent_name"], arguments.get("role", "worker")
            return {"agent_id": board.join(name), "principal_id": PRINCIPAL, "role": role, "claim_ttl_s": 900}
        if tool == "board_catchup":
            return board.catchup(board.agent(arguments["agent_name"]), arguments)
        if tool == "ticket_list":
            return board.listing(arguments)
        assert tool == "ticket_get", f"the model does not know {tool}"
        ticket = board.tickets.get(arguments["ticket_id"])
        if ticket is None:
            raise ToolFailed(tool, "ticket not found", "not_found")
        return {"ticket": ticket.now, "latest_seq": board.head}
