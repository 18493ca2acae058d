"""Conversations that wait with a2a_wait's engine on a model of Central, and what they must have been told.

A result is checked against all that was so while its wait lasted: what was certainly for the caller must be in it, what
was at no moment for it must not. In between (a ticket that changed under the reader's hands) both are right.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import anyio
from anyio.abc import TaskGroup

from central.waiting import Lasting
from pursersd.errors import CentralError
from pursersd.feed.centrals import Central
from pursersd.rules import relevance
from pursersd.rules.arguments import WaitArguments
from pursersd.rules.awards import is_for_one
from pursersd.rules.denials import Denials
from pursersd.rules.relevance import Watcher
from pursersd.rules.suppression import Suppression, SyntheticGuard, fingerprint
from pursersd.seats.seat import SeatRequest
from pursersd.settings import Settings, resolve
from pursersd.waits import engine, watch
from pursersd.waits.board import BoardWait, Memory
from pursersd.waits.caller import Caller
from unit.model_board import PRINCIPAL, ModelBoard, Row
from unit.virtual_time import now

SCAN = 5.0
AFTER_ERROR = 5.0
"""Seconds that a caller thinks when it was told that Central cannot be had."""

LAST = 40
"""Seconds of a wait after which nobody else's claim on open work counts any more (rules/awards)."""
NO_SCAN = 1e6
"""Seconds between looks at the open work that would hide a wait which was not woken."""


class _Clock:
    """What the engine takes for the module `time`."""

    monotonic = staticmethod(now)


def virtual_engine() -> Any:
    """While this is entered, waits last virtual time."""
    return _Patches()


class _Patches:
    def __enter__(self) -> None:
        self._patches = [patch.object(module, "time", _Clock) for module in (engine, watch)]
        for each in self._patches:
            each.start()

    def __exit__(self, *_: object) -> None:
        for each in self._patches:
            each.stop()


@dataclass(slots=True, eq=False)
class Wait:
    """One call of a2a_wait."""

    asked: int | None
    """The cursor that the caller gave."""
    timeout_s: int
    since: float
    low: int
    """From where it reads at least, and at most: for a caller that gives none, what Central keeps may move meanwhile."""
    high: int
    until: float = float("inf")
    result: dict[str, Any] | None = None
    is_delivered: bool = False
    board: BoardWait | None = None

    @property
    def events(self) -> list[dict[str, Any]]:
        return list(self.result["events"]) if self.result else []

    @property
    def told(self) -> list[int]:
        return [event["seq"] for event in self.events if "seq" in event]


@dataclass(eq=False)
class Conversation:
    """One conversation that waits again and again on one seat. `delivered` says which of its results reach the host."""

    central: Central
    board: ModelBoard
    name: str
    tasks: TaskGroup
    push: bool = True
    omits: bool = False
    """Whether it never gives a cursor."""
    only_mine: bool = False
    timeout_s: int = 30
    think: float = 0.1
    delivered: tuple[bool, ...] = (True,)
    waits: list[Wait] = field(default_factory=list)
    cursor: int | None = 0
    shares: list["Conversation"] = field(default_factory=list)
    """The other conversations of its seat."""
    acks_failed: int = 0
    _scope: anyio.CancelScope | None = None
    _ended: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self.memory = Memory(Suppression(clock=now), SyntheticGuard(clock=now))
        settings = self._settings()
        self._caller = Caller(
            id=f"{self.name}-{id(self)}",
            settings=settings,
            renewal=Lasting(settings),
            memory=self.memory,
            denials=Denials(clock=now),
            connect=self._connect,
            seat_request=lambda board, _: SeatRequest(board, self.name, "worker"),
            watching=self._watching,
            progress=self._progress,
        )
        if self.omits:
            self.cursor = None

    @property
    def agent(self) -> str:
        return self.board.agent(self.name)

    @property
    def is_running(self) -> bool:
        return self._scope is not None

    @property
    def current(self) -> Wait | None:
        """The wait in progress."""
        return self.waits[-1] if self.waits and self.waits[-1].result is None and self.is_running else None

    def start(self) -> None:
        if self._scope is None:
            self._scope, self._ended = anyio.CancelScope(), anyio.Event()
            self.tasks.start_soon(self._run, self._scope)

    async def stop(self) -> None:
        """The host goes away in the middle of it."""
        if self._scope is not None:
            self._scope.cancel()
            await self._ended.wait()

    async def _run(self, scope: anyio.CancelScope) -> None:
        with scope:
            while True:
                call = await self.wait(self.timeout_s)
                await anyio.sleep(max(self.think, AFTER_ERROR) if "error" in (call.result or {}) else self.think)
        self._scope = None
        self._ended.set()

    async def wait(self, timeout_s: int) -> Wait:
        """One call."""
        acked = self.board.acked.get(self.agent, 0)
        low = self.cursor if self.cursor is not None else acked
        call = Wait(self.cursor, timeout_s, now(), low, low)
        self.waits.append(call)
        arguments = WaitArguments(
            since_seq=self.cursor,
            timeout_s=timeout_s,
            only_mine=self.only_mine,
            project=None,
            agent_name=None,
            boards=None,
            wait_for="claimable",
        )
        try:
            waited = await engine.wait(self._caller, arguments)
        except anyio.get_cancelled_exc_class():
            self.waits.remove(call)
            raise
        call.until = now()
        call.result = waited.result
        if call.asked is None:
            call.high = self.board.acked.get(self.agent, 0)
        call.is_delivered = self.delivered[(len(self.waits) - 1) % len(self.delivered)]
        self.check_wait(call)
        if call.is_delivered:
            if not self.omits:
                self.cursor = waited.result["new_seq"]
            if waited.acknowledge is not None:
                self.tasks.start_soon(self._acknowledge, waited.acknowledge)
        return call

    async def _acknowledge(self, acknowledge: Any) -> None:
        try:
            await acknowledge()
        except CentralError:
            self.acks_failed += 1

    async def _connect(self) -> Central:
        return self.central

    def _watching(self, boards: Any) -> None:
        (self.waits[-1].board,) = boards

    async def _progress(self, *_: object) -> None:
        """Nobody looks."""

    def _settings(self) -> Settings:
        mode = {} if self.push else {"PURSERS_WAIT_MODE": "poll"}
        environment = {"ONBOARD_BOARD_ID": self.board.name, "ONBOARD_AGENT_NAME": self.name, **mode}
        return resolve({**environment, "PURSERS_BACKLOG_SCAN_INTERVAL_S": str(NO_SCAN)}, _no_file)

    # --- what it must have been told --------------------------------------------------------------------------------

    @property
    def watcher(self) -> Watcher:
        return Watcher(self.board.name, self.agent, self.name, PRINCIPAL, "claimable", self.only_mine)

    def check_wait(self, call: Wait) -> None:
        """The result tells what happened between its cursors, once and in order, and nothing else."""
        result = call.result
        assert result is not None
        told, new = call.told, result["new_seq"]
        assert told == sorted(set(told)), f"{self.name}: not once, in order: {told}"
        if "error" in result:
            assert new == call.asked, f"{self.name}: an error moved the cursor: {result}"
            assert not told
            return
        if not call.events and not result.get("partial"):
            waited = call.until - call.since
            assert result["timed_out"], f"{self.name}: came back without a reason: {result}"
            assert waited > call.timeout_s - 0.01, (
                f"{self.name}: came back after {waited:.2f} s without a reason: {result}"
            )
        if new is None:
            assert call.asked is None
            assert not told
            return
        assert new >= call.low, f"{self.name}: moved back: {call}"
        assert all(call.low < seq <= new for seq in told), f"{self.name}: told of another range: {call}"
        for row in self.board.rows[call.low : new]:
            if row.seq in told:
                assert self.may_tell(row, call), f"{self.name}: was told of {row}: {call}"
            elif row.seq > call.high and not result["resynced"]:
                assert not self.must_tell(row, call), f"{self.name}: was not told of {row}: {call}"
        for event in call.events:
            if "seq" not in event:
                ticket = self.board.tickets[event["ticket_id"]]
                states = [version["status"] for version in ticket.between(call.since, call.until)]
                assert "open" in states, f"{self.name}: was told of work that is not open: {event}"

    def may_tell(self, row: Row, call: Wait) -> bool:
        """Whether the row was for this caller at any moment between its writing and the end of the wait."""
        if row.actor == self.agent:
            return False
        return any(self._judged(row, call))

    def must_tell(self, row: Row, call: Wait) -> bool:
        """Whether the row was for this caller all the time."""
        if row.actor == self.agent or row.expired or not self._always_visible(row, call):
            return False
        judged = list(self._judged(row, call, certainly=True))
        if not judged or not all(judged):
            return False
        if any(is_for_one(event) for event in judged if event) and self.shares:
            return False
        newer = [event for event in call.events if event.get("ticket_id") == row.event.get("ticket_id")]
        return not (call.result and call.result.get("compacted") and newer)

    def _always_visible(self, row: Row, call: Wait) -> bool:
        if self.agent in row.recipients:
            return True
        kind = row.event["kind"]
        if kind not in ("ticket_created", "ticket_status_changed") or row.event["status_to"] != "open":
            return False
        return all(version["status"] == "open" for version in self._versions(row, call, certainly=True))

    def _judged(self, row: Row, call: Wait, *, certainly: bool = False) -> Iterable[dict[str, object] | None]:
        """What the rules say of the row, by each state in which its ticket was; None is nothing.

        A finished ticket may be left out, unless the row is its end.
        """
        is_end = relevance.ends(row.event, self.watcher)
        for version in self._versions(row, call, certainly=certainly):
            if version["status"] == "closed" and not is_end:
                yield None
            yield relevance.judge(row.event, version, self.watcher)

    def _versions(self, row: Row, call: Wait, *, certainly: bool = False) -> list[dict[str, Any]]:
        ticket_id = row.event.get("ticket_id")
        if ticket_id is None:
            return []
        return self.board.tickets[ticket_id].between(row.at, min(call.until, now()), after=certainly)

    def check(self) -> None:
        """What was delivered came once, and the seat's own cursor is exactly behind something that was."""
        given = {call.result["new_seq"] for talk in (self, *self.shares) for call in talk.waits if call.is_delivered}
        moved = {end for agent, end in self.board.acks if agent == self.agent}
        assert moved <= given, f"{self.name}: acknowledged {moved - given}, which nobody was given"
        if self.acks_failed and self.omits:
            return
        told = [seq for call in self.waits if call.is_delivered for seq in call.told]
        assert told == sorted(set(told)), f"{self.name}: not once, in order: {told}"

    def check_rest(self) -> None:
        """A wait that goes on has nothing to tell."""
        call = self.current
        if call is None or call.board is None or not call.board.entered or call.board.resynced:
            return
        waiter = call.board.waiter
        assert not waiter.marks, f"{self.name}: is left dirty: {waiter.marks}"
        assert not call.board.has_arrived, f"{self.name}: has pages left"
        left = self.board.visible(self.agent, waiter.cursor)
        assert not left, f"{self.name}: was not told of {left} after {waiter.cursor}"
        start = call.high if call.asked is not None else self.board.acked.get(self.agent, 0)
        for row in self.board.rows[start:]:
            assert not self.must_tell(row, call), f"{self.name}: waits although there is {row}"

    async def last(self) -> None:
        """Wait until there is nothing more to be told; then all open work that is for it has been told of."""
        await self.stop()
        self.delivered = (True,)
        self._caller = replace(self._caller, settings=replace(self._caller.settings, scan_interval_s=SCAN))
        for _ in range(20):
            # A live offer comes again with each result that tells of none (bridge.md §2.6, final reconcile).
            if all(event["reason"] == "reconciled" for event in (await self.wait(LAST)).events):
                break
        else:
            raise AssertionError(f"{self.name}: is told the same again and again")
        for ticket_id, ticket in self.board.tickets.items():
            at, row = ticket.versions[-1]
            if not ticket.is_open or not relevance.is_relevant_ticket(row, self.watcher):
                continue
            known = [
                call
                for call in self.waits
                if call.until >= at and any(event.get("ticket_id") == ticket_id for event in call.events)
            ]
            assert known, f"{self.name}: never heard of {ticket_id}: {fingerprint(row)}"


def _no_file(path: str) -> str:
    raise OSError(path)
