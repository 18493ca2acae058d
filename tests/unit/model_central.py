"""An executable model of Central: boards behind wires on which calls and cues take time and get lost (central.md §4, §6).

It stands where CentralClient stands, below a real Pool: calls take time, are carried out in one step, and their answers
may be lost; cues are sent when something is written and arrive in order on each stream, but late, and on two streams
independently. `cues` says afterwards which of them arrived.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Literal

import anyio

from pursersd.central.served_time import ServedTime
from pursersd.errors import CentralError, Overloaded, ProtocolRefused, ToolFailed, Unreachable
from pursersd.ids import agent_uri
from unit.model_board import PRINCIPAL, Json, ModelBoard

Mode = Literal["up", "down", "refusing", "overloaded"]


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
        self.served_time = ServedTime()
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

    def is_live(self, board: str, agent: str) -> bool:
        """Whether Central takes the seat for live, or has denied to listen to it."""
        return agent_uri(board, agent) in self.listeners | self.was_denied

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

    async def renew(self) -> None:
        """No connection to keep."""

    async def instance(self) -> str:
        return "CI-model"

    async def ask(self) -> None:
        self._check(sent=False)
        await anyio.sleep(self.delays.next("calls"))
        self._check(sent=True)

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
        """See Outlet."""
        self.changed = self.now
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
            head = board.head
            joined = {"agent_id": board.join(name), "principal_id": PRINCIPAL, "role": role, "claim_ttl_s": 900}
            return joined | {"lifecycle_event": board.rows[-1].event if board.head > head else None}
        if tool == "board_catchup":
            return board.catchup(board.agent(arguments["agent_name"]), arguments)
        if tool == "board_status":
            active = [agent for agent, is_active in board.active.items() if is_active]
            agents = [{"agent_id": agent, "lifecycle_status": "active"} for agent in active]
            return {"agents": agents, "latest_seq": board.head}
        if tool == "ticket_list":
            return board.listing(arguments)
        assert tool == "ticket_get", f"the model does not know {tool}"
        ticket = board.tickets.get(arguments["ticket_id"])
        if ticket is None:
            raise ToolFailed(tool, "ticket not found", "not_found")
        return {"ticket": ticket.now, "latest_seq": board.head}
