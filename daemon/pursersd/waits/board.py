"""One board of one wait: where it stands in the journal and what on it concerns the caller.

The wait asks three questions, each answered with the events to return: what is there already (`enter`), what has come
since (`take`), and is there open work that no event told of (`scan`).
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import anyio

from pursersd.errors import CentralError, Overloaded, ToolFailed, Unreachable
from pursersd.feed.catchup import CursorAhead, position_after
from pursersd.feed.waiter import Page
from pursersd.rules import backlog, compaction, outcome, relevance
from pursersd.rules import projection as rules
from pursersd.rules.awards import is_for_one
from pursersd.rules.events import ticket_of
from pursersd.rules.journals import Journal, differ
from pursersd.rules.relevance import Watcher
from pursersd.rules.suppression import Suppression, SyntheticGuard, fingerprint
from pursersd.rules.windows import LW_COMPACT, LW_RESYNC, resync_warning
from pursersd.waits.projection import Projection, Ticket, Tickets
from pursersd.waits.watched import Watched

log = logging.getLogger(__name__)

Event = dict[str, object]

SETTLE = 3
"""How often an entry or a scan reads on because the board changed while it looked."""

RETRY = 1.0
"""Seconds until an event is judged again whose ticket Central could not tell."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What one conversation has been shown already, so that open work is not repeated at once (bridge.md §2.6), and where."""

    suppression: Suppression
    guard: SyntheticGuard
    whose: object = field(default_factory=object)
    """Stands for the conversation where it must not be held on to."""
    journals: dict[str, Journal] = field(default_factory=dict)
    """By board: the journal in which its last wait there ended. What it says since then is a place in that one."""


@dataclass(slots=True)
class _History:
    """What the entry catchup read: all events up to `head`."""

    head: int
    events: list[Event] = field(default_factory=list)
    has_hidden: bool = False
    """Whether there were rows that this seat does not see."""


@dataclass(slots=True)
class BoardWait(Watched):
    """The state of one board in one call of a2a_wait.

    `cursor` is what the caller may go on from: it moves only when all before it was judged, so that a deadline, a
    cancellation or an error loses nothing.
    """

    watcher: Watcher
    memory: Memory
    cursor: int
    cursor_omitted: bool
    was_shown: bool = False
    """The call comes again after a daemon was lost, and from a cursor: with that, its caller was shown the open work, which
    a new daemon does not remember."""
    resynced: bool = False
    partial: bool = False
    compacted: compaction.Compacted | None = None
    warnings: list[dict[str, object]] = field(default_factory=list)
    entered: bool = False
    """Whether the history was read and judged: `cursor` is then ours, before it is the caller's."""
    cued_at: float | None = None
    """When the cue came that ended the wait on this board (monotonic); None when it was no cue."""
    is_dispatched: bool = False
    """Whether Central hands out the work of this board by offers, as far as its tickets told."""
    _put_off: set[int] = field(default_factory=set)
    """The cursors at which a scan found work that the journal may tell of, too, and was put off for it."""
    _unjudged: list[Page] = field(default_factory=list)
    _tickets_told: dict[str, Ticket] = field(default_factory=dict)
    """The tickets behind the journal events that concern the caller."""

    @property
    def reached(self) -> int | None:
        """The caller's next cursor; None when it gave none and nothing was read and judged: it must leave it out again."""
        return self.cursor if self.entered or not self.cursor_omitted else None

    @property
    def has_arrived(self) -> bool:
        """Whether there is something to take."""
        return bool(self._unjudged) or self.waiter.has_arrived

    @property
    def scans_again(self) -> bool:
        """Whether a scan was put off until what was written is read."""
        return bool(self._put_off)

    async def enter(self) -> list[Event]:
        """Read the history after the caller's cursor and the open work; returns what concerns the caller.

        Afterwards the gate is open: live pages continue exactly where the history ended (RB-ORD-001).
        """
        self.waiter.begin()
        self.waiter.is_foreign |= differ(self.memory.journals.get(self.name), self.feed.journal)
        history = _History(self.cursor)
        projection = await self._catch_up(history)
        await self.feed.confirm(self.waiter.seat, history.head, hidden=history.has_hidden)
        if self.was_shown:  # unless an event since then is about it: such work is forgotten again by the judgement
            for ticket in projection.tickets.values():
                self.memory.suppression.told(self.watcher, ticket)
        relevant = self._judge_history(history.events, projection)
        self.warnings += projection.warnings
        self.compacted = compaction.compact(history.events, relevant, cursor_omitted=self.cursor_omitted)
        compacted = self.compacted
        if compacted and (lost := len(relevant) - len(compacted.events)) > 0:
            self.feed.windows.opened(LW_COMPACT, f"{self.waiter.seat.agent_name} on {self.name}: {lost} events", lost)
        found = compacted.events if compacted else self._merged(relevant, projection)
        self.cursor = history.head
        self.entered = True
        self.waiter.open(self.cursor)
        self.feed.nudge()
        return self.memory.guard.admit(self.watcher, self.cursor, found)

    async def take(self) -> list[Event]:
        """Judge the pages that arrived, up to the first one that concerns the caller; returns what of it does.

        The cursor moves in the same step as this returns, so that nothing judged can be lost; later pages stay unread.
        """
        if not self._unjudged:
            self._unjudged = self.waiter.take()
            self.feed.nudge()
        while self._unjudged:
            page = self._unjudged[0]
            relevant = await self._judge_page(page)
            self.cursor = page.next_cursor
            if page.resynced:
                self.resynced = True
                self.warnings.append(resync_warning(self.name))
            del self._unjudged[0]
            if relevant:
                self.cued_at = page.cued_at
                return relevant
        return []

    async def scan(self) -> list[Event]:
        """Look at the open work again; costs no request while nothing happened on the board.

        The journal has the first word on work that is newer than what was read of it: the caller would hear of it twice
        otherwise, now as open work and next time from the journal. Then it `scans_again`, and what was written is on its way.
        """
        projection = await self._active()
        cues = self._backlog(projection)
        if cues and projection.latest_seq > self.cursor and len(self._put_off | {self.cursor}) <= SETTLE:
            self._put_off.add(self.cursor)
            self.waiter.mark("gap")
            self.feed.nudge()
            return []
        self._put_off.clear()
        return [cue for cue in cues if self._wakes(cue, projection.tickets[str(cue["ticket_id"])])]

    async def offers(self) -> list[Event]:
        """The live offers to this seat, whether they were shown before or not; as cheap as `scan`.

        Not those for which another wait on the seat was woken just now.
        """
        tickets = (await self._active()).tickets
        offers = backlog.offer_events(list(tickets.values()), self.watcher, now_epoch=self.feed.central_time)
        return [offer for offer in offers if self._award(tickets[str(offer["ticket_id"])])]

    def returned(self, events: list[Event], *, at_entry: bool) -> None:
        """These events are the result: the work that they tell of is not shown again at once (D4)."""
        if not self.waiter.is_foreign:  # else its cursor is still of the one before
            self.memory.journals[self.name] = self.feed.journal
        self.memory.suppression.surfaced(self.watcher, events)
        for event in events:
            if ticket := self._tickets_told.get(ticket_of(event) or ""):
                self.memory.suppression.told(self.watcher, ticket)
        if not at_entry:
            return
        self.memory.guard.returned(self.watcher, self.cursor, events)
        for event in events:
            if is_for_one(event):
                self._award(self._tickets_told.get(ticket_of(event) or "") or event)

    def passed_over(self, events: list[Event]) -> None:
        """The caller is not told of these events: their work is not shown as open work either (bridge.md §2.7)."""
        for event in events:
            if ticket := self._tickets_told.pop(ticket_of(event) or "", None):
                self.memory.suppression.told(self.watcher, ticket)

    def withdrawn(self, events: list[Event]) -> None:
        """These events were the result, and the caller never got it: the work that they tell of is shown again."""
        for event in events:
            self._forget(event)
        self.memory.guard.withdrawn(self.watcher, self.cursor, events)

    async def _active(self) -> Projection:
        """The open work as it is now; nothing if Central does not say, for the next look comes soon."""
        try:
            projection = await self._tickets().active(at_least=self.cursor, live=self.feed.is_covered)
        except CentralError as error:
            log.info("board %s: open work cannot be read, it is looked at again later: %s", self.name, error)
            return Projection()
        self._note_dispatch(projection.tickets.values())
        return projection

    async def _catch_up(self, history: _History) -> Projection:
        """Read the history and the tickets as they were at its end.

        What is written between these two reads shows in the tickets alone. Its event must be read, too: the caller would
        hear of it twice otherwise, now as open work and next time from the journal.
        """
        await self._read_on(history, None if self.cursor_omitted else self.cursor)
        projection = await self._project(history)
        for _ in range(SETTLE):
            if projection.latest_seq <= history.head:
                break
            await self._read_on(history, history.head)
            projection = await self._project(history)
        return projection

    async def _read_on(self, history: _History, cursor: int | None) -> None:
        try:
            if self.waiter.is_foreign:
                cursor = await self._begin_in_another(history, cursor)
            async for page in self.feed.catchup.pages(self.waiter.seat, cursor):
                history.events += page["events"]
                history.has_hidden |= page["scan_count"] > len(page["events"]) or bool(page.get("resync_required"))
                history.head = position_after(page)
                if page.get("resync_required"):
                    self._lost_place(history.head)
        except CursorAhead as ahead:
            self.feed.windows.opened(LW_RESYNC, f"{self.waiter.seat.agent_name} on {self.name} goes on at {ahead.head}")
            self.warnings.append(rules.cursor_ahead_warning(self.cursor, ahead.head))
            history.head = ahead.head

    async def _begin_in_another(self, history: _History, cursor: int | None) -> int | None:
        """From where to read the journal of another Central. Its own cursor of the seat is as good as ever."""
        head = await self.feed.place_in_another(self.waiter)
        if cursor is None:
            return None
        history.head, history.has_hidden = head, True
        self._lost_place(head)
        return head

    def _lost_place(self, head: int) -> None:
        """The journal no longer has what comes after the caller's cursor."""
        self.resynced = True
        self.warnings.append(resync_warning(self.name))
        self.feed.windows.opened(LW_RESYNC, f"{self.waiter.seat.agent_name} on {self.name} goes on at {head}")

    async def _project(self, history: _History) -> Projection:
        tickets = self._tickets()
        live = self.feed.is_covered
        projection = await tickets.active(at_least=history.head, live=live)
        wanted = rules.candidates(history.events, self.watcher) if projection.warnings else set()
        # The listing has no finished tickets; a caller must still learn the end of what it worked on.
        ended = {str(ticket_of(event)) for event in history.events if relevance.ends(event, self.watcher)}
        await tickets.add(projection, wanted, ended, at_least=history.head, live=live)
        self._note_dispatch(projection.tickets.values())
        return projection

    def _judge_history(self, events: list[Event], projection: Projection) -> list[Event]:
        relevant: list[Event] = []
        for event in events:
            self._forget(event)
            wanted = relevance.needs_ticket(event, self.watcher)
            if wanted in projection.unknown:
                self.partial = True
                relevant.append(rules.unprojected(event, self.watcher))
                continue
            ticket = projection.tickets.get(wanted) if wanted else None
            if ticket is not None and relevance.is_past(event, ticket, self.watcher):
                continue
            if (judged := self._decide(event, ticket)) is not None:
                relevant.append(judged)
        return relevant

    async def _judge_page(self, page: Page) -> list[Event]:
        relevant: list[Event] = []
        for event in page.events:
            self._forget(event)
            judged = await self._judge(event, page.next_cursor)
            if judged is not None:
                relevant.append(judged)
        return relevant

    async def _judge(self, event: Event, at_least: int) -> Event | None:
        wanted = relevance.needs_ticket(event, self.watcher)
        ticket: Ticket | None = None
        while wanted:
            try:
                ticket = await self._tickets().one(wanted, at_least=at_least, live=self.feed.is_covered)
                break
            except (Unreachable, Overloaded):
                # Without the ticket the event would be dropped or guessed: wait, the deadline of the call is above us.
                await anyio.sleep(RETRY)
                await self.feed.reachable()
            except ToolFailed:
                return relevance.judge(event, None, self.watcher, lookup_failed=True)
        judged = self._decide(event, ticket)
        return judged if judged is None or ticket is None or self._wakes(judged, ticket) else None

    def _decide(self, event: Event, ticket: Ticket | None) -> Event | None:
        judged = relevance.judge(event, ticket, self.watcher)
        if ticket is not None:
            self._note_dispatch([ticket])
        if judged is not None and ticket is not None:
            self._tickets_told[str(ticket["ticket_id"])] = ticket
        return judged

    def _wakes(self, event: Event, ticket: Ticket) -> bool:
        """Whether the event may end this wait: of those that share a seat, work for one ends one."""
        return not is_for_one(event) or self._award(ticket)

    def _award(self, ticket: Ticket) -> bool:
        work = (ticket_of(ticket), *fingerprint(ticket))
        return self.feed.awards.award(self.waiter.seat.uri, work, self.memory.whose)

    def _merged(self, relevant: list[Event], projection: Projection) -> list[Event]:
        tickets = list(projection.tickets.values())
        offers = backlog.offer_events(tickets, self.watcher, now_epoch=self.feed.central_time)
        return outcome.merge(relevant, offers, self._backlog(projection))

    def _note_dispatch(self, tickets: Iterable[Ticket]) -> None:
        self.is_dispatched |= any(isinstance(ticket.get("dispatch_state"), dict) for ticket in tickets)

    def _tickets(self) -> Tickets:
        return Tickets(self.feed.reads, self.watcher.view)

    def _forget(self, event: Event) -> None:
        if (ticket_id := ticket_of(event)) is not None:
            self.memory.suppression.forget_ticket(self.watcher.board, ticket_id)

    def _backlog(self, projection: Projection) -> list[Event]:
        return backlog.backlog_events(
            list(projection.tickets.values()),
            self.watcher,
            now_epoch=self.feed.central_time,
            suppressed=self.memory.suppression.suppressed_for(self.watcher),
        )
