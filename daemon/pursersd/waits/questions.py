"""Waits for coordinator questions and their answers, on the feed that a2a_wait has, too (bridge.md §4.1).

`Arrivals` and `Answer` know what they wait for; `wait` joins, catches up from the caller's cursor, and then blocks until
one of them finds it in what the feed brings.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import anyio

from pursersd.errors import NotAllowed, Overloaded, ToolFailed, Unreachable
from pursersd.feed.catchup import CursorAhead, position_after
from pursersd.feed.centrals import Central
from pursersd.rules import questions
from pursersd.rules.arguments import budget_s
from pursersd.rules.events import kind_of, seq_of, ticket_of
from pursersd.rules.questions import ASKED, ASKERS, COORDINATORS, Asked, Json, Verdict
from pursersd.rules.windows import LW_RESYNC, resync_warning
from pursersd.seats.seat import Seat, Source
from pursersd.waits.caller import Caller
from pursersd.waits.renewal import whoever_we_are
from pursersd.waits.watched import Watched

RETRY = 1.0
"""Seconds until something is read again that Central did not tell."""

INBOX_LIMIT = 100
"""Questions of one ticket that are listed: twice as many as Central lets it have (central.md §3.2)."""

Event = Mapping[str, object]
Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Found:
    """What a wait was for. `event` is None when the state tells of it, but no event after the caller's cursor."""

    event: Event | None
    question: Json | None
    ended: Verdict | None = None
    """Why no answer can come any more, if that is what was found."""


class Subject(Protocol):
    """What a wait is for."""

    allowed: frozenset[str]
    """The roles that may wait for it."""
    operation: str
    """What the wait is called where a role is refused."""

    async def begin(self, board: Watched) -> None:
        """Look whether the seat may wait for it. Raises NotAllowed, and CentralError when Central refuses."""

    def concerns(self, event: Event) -> bool:
        """Whether the event may be about it."""

    async def judge(self, board: Watched, events: Sequence[Event], head: int) -> Found | None:
        """What a batch of events brings for the caller; all of them concern it, and the batch ends at `head`."""

    async def look(self, board: Watched, head: int, *, lost: bool) -> Found | None:
        """What the board tells of it without an event. `lost`: events may be missing."""


@dataclass(slots=True)
class Arrivals:
    """Questions to this coordinator, on one ticket or on any."""

    central: Central
    ticket_id: str | None
    allowed: frozenset[str] = COORDINATORS
    operation: str = "question arrival wait"

    async def begin(self, board: Watched) -> None:
        await self._inbox(board, limit=1)

    def concerns(self, event: Event) -> bool:
        return kind_of(event) == ASKED and self.ticket_id in (None, ticket_of(event))

    async def judge(self, board: Watched, events: Sequence[Event], head: int) -> Found | None:
        known: dict[str | None, list[object]] = {}
        for event in events:
            ticket = ticket_of(event)
            if ticket not in known:
                known[ticket] = await patiently(board, partial(self._inbox, board, ticket_id=ticket, limit=INBOX_LIMIT))
            question = questions.question_in(known[ticket], str(event.get("question_id")))
            if question is not None:
                return Found(event, question)
        return None

    async def look(self, board: Watched, head: int, *, lost: bool) -> Found | None:
        if not lost:
            return None
        only = {} if self.ticket_id is None else {"ticket_id": self.ticket_id}
        waiting = await patiently(board, partial(self._inbox, board, state="open", limit=1, **only))
        return next((Found(None, questions.public(one)) for one in waiting if isinstance(one, dict)), None)

    async def _inbox(self, board: Watched, **arguments: object) -> list[object]:
        """Central's list. Asking for it counts as activity of the seat, which is right: the model is about to be told."""

        async def send(seat: Seat) -> dict[str, Any]:
            named = {"board_id": seat.board, "agent_name": seat.agent_name}
            return await self.central.pool.read(
                "board_question_inbox", {**named, **arguments}, generation=seat.generation
            )

        listed = (await self.central.seats.seated(board.waiter.seat, send)).get("questions")
        return listed if isinstance(listed, list) else []


@dataclass(slots=True)
class Answer:
    """The answer to a question that this seat asked."""

    asked: Asked
    allowed: frozenset[str] = ASKERS
    operation: str = "question answer wait"

    async def begin(self, board: Watched) -> None:
        question = questions.question_of(await self._ticket(board, 0), self.asked.question_id)
        if not questions.is_by(question, board.waiter.seat.agent_id):
            raise NotAllowed("ticket_question_wait requires the original asker identity and question")

    def concerns(self, event: Event) -> bool:
        return ticket_of(event) == self.asked.ticket_id

    async def judge(self, board: Watched, events: Sequence[Event], head: int) -> Found | None:
        if not questions.verdict(events, self.asked).is_final:
            return None
        return await self._found(board, events, head)

    async def look(self, board: Watched, head: int, *, lost: bool) -> Found | None:
        return await self._found(board, (), head)

    async def _found(self, board: Watched, events: Sequence[Event], head: int) -> Found | None:
        """How the question stands now: what the events said may have been overtaken."""
        ticket: Event | None
        try:
            ticket = await patiently(board, partial(self._ticket, board, head))
        except ToolFailed as error:
            if error.kind != "not_found":
                raise
            ticket = None
        now = questions.standing(ticket, self.asked)
        if not now.is_final:
            return None
        question = None if ticket is None else questions.question_of(ticket, self.asked.question_id)
        return Found(questions.first(events, self.asked, now), question, None if now is Verdict.ANSWERED else now)

    async def _ticket(self, board: Watched, head: int) -> Event:
        """The ticket as it was at `head` or later; costs no request while nothing has happened on the board."""
        arguments = {"ticket_id": self.asked.ticket_id, "view": "work"}
        feed = board.feed
        answer = await feed.reads.read("ticket_get", arguments, at_least=head, live=feed.is_covered)
        ticket = answer.get("ticket")
        return ticket if isinstance(ticket, dict) else {}


@dataclass(slots=True)
class Progress:
    """How far a call has come."""

    joined: bool = False
    cued_at: float | None = None
    """When the cue came that ended its wait (monotonic); None when it was no cue."""


async def wait(
    caller: Caller,
    subject_at: Callable[[Central], Subject],
    since_seq: int,
    timeout_s: int,
    progress: Progress,
    *,
    age_s: float = 0.0,
) -> Json:
    """The result of one wait for a subject at the caller's Central.

    `age_s` is how long it has been waited for already, see `engine.wait`. Raises NotAllowed, ArgumentError,
    and PursersError for everything else that prevents it; no cursor has moved then.
    """
    started = time.monotonic() - max(0.0, age_s)

    async def attempt(caller: Caller, source: Source) -> Json:
        central = await caller.connect()
        seat = await central.seats.join(caller.seat_request(caller.settings.board, None), caller.id, source=source)
        progress.joined = True
        subject = subject_at(central)
        questions.require_role(seat.role, subject.allowed, subject.operation)
        block_limit = budget_s(caller.settings.host.block_limit_s, caller.settings.role, seat.role)
        deadline = started + questions.clamped(timeout_s, block_limit)
        with central.feed.watch(seat, push=caller.settings.wait_mode == "push") as waiter:
            watch = _Watch(central.feed.boards[seat.board], waiter, subject, since_seq)
            await subject.begin(watch)
            questions.check_cursor(since_seq)
            caller.watching([watch])
            await central.feed.ready(waiter)
            found = await watch.run(deadline, caller.settings.scan_interval_s)
            progress.cued_at = watch.cued_at
            return watch.result(found)

    return await whoever_we_are(caller, attempt, resumed=age_s > 0)


async def patiently(board: Watched, read: Callable[[], Awaitable[Read]]) -> Read:
    """What `read` gives, once Central answers: the deadline of the call is above us."""
    while True:
        try:
            return await read()
        except (Unreachable, Overloaded):
            await anyio.sleep(RETRY)
            await board.feed.reachable()


@dataclass(slots=True)
class _Watch(Watched):
    """The board of one question wait. `cursor` moves only when all before it was judged."""

    subject: Subject
    cursor: int
    cued_at: float | None = None
    """When the cue came that ended the wait (monotonic); None when it was no cue."""
    _lost: bool = False
    """Whether the journal no longer had all that came after the cursor."""

    async def run(self, deadline: float, look_every_s: float) -> Found | None:
        """Wait until the subject was found, at most until `deadline` (monotonic)."""
        with anyio.move_on_after(max(0.0, deadline - time.monotonic())):
            found = await self._enter()
            next_look = time.monotonic() + look_every_s
            while found is None:
                # An event of the end may be hidden from the seat: now and then the board itself is looked at.
                with anyio.move_on_after(max(0.0, next_look - time.monotonic())):
                    await self.waiter.arrived()
                if is_due := time.monotonic() >= next_look:
                    next_look = time.monotonic() + look_every_s
                found = await self._take(look=is_due)
            return found
        return None

    def result(self, found: Found | None) -> Json:
        """What the caller gets."""
        warnings = [resync_warning(self.name)] if self._lost else []
        if found is None:
            return questions.wait_result(self.cursor, warnings=warnings)
        return questions.wait_result(
            self.cursor, event=found.event, question=found.question, ended=found.ended, warnings=warnings
        )

    async def _enter(self) -> Found | None:
        """Judge the history after the caller's cursor; afterwards live pages continue where it ended (RB-ORD-001)."""
        self.waiter.begin()
        events: list[Event] = []
        head, lost, has_hidden = self.cursor, self.waiter.is_foreign, False
        try:
            if lost:
                head = await self.feed.place_in_another(self.waiter)
            async for page in self.feed.catchup.pages(self.waiter.seat, head):
                events += filter(self.subject.concerns, page["events"])
                lost |= bool(page.get("resync_required"))
                has_hidden |= page["scan_count"] > len(page["events"]) or lost
                head = position_after(page)
        except CursorAhead as error:
            raise questions.ahead(self.cursor, self.name, error.head) from error
        if lost:
            self.feed.windows.opened(LW_RESYNC, f"{self.waiter.seat.agent_name} on {self.name} goes on at {head}")
        await self.feed.confirm(self.waiter.seat, head, hidden=has_hidden)
        found = await self._judge(events, head, look=True, lost=lost)
        self.waiter.open(self.cursor)
        self.feed.nudge()
        return found

    async def _take(self, *, look: bool) -> Found | None:
        """Judge what arrived. Once taken it is gone from the feed, but the cursor moves only after it was judged."""
        pages = self.waiter.take()
        self.feed.nudge()
        events = [event for page in pages for event in page.events if self.subject.concerns(event)]
        lost = any(page.resynced for page in pages)
        head = pages[-1].next_cursor if pages else self.cursor
        found = await self._judge(events, head, look=look or lost, lost=lost)
        if found is not None:
            self.cued_at = min((page.cued_at for page in pages if page.cued_at is not None), default=None)
        return found

    async def _judge(self, events: Sequence[Event], head: int, *, look: bool, lost: bool) -> Found | None:
        self._lost |= lost
        found = await self.subject.judge(self, events, head)
        if found is None and look:
            found = await self.subject.look(self, head, lost=lost)
        seq = seq_of(found.event) if found is not None and found.event is not None else None
        self.cursor = head if seq is None else seq
        return found
