"""waits/questions: what ends a wait, and where its cursor stands then. On the real Central: system/test_questions."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from pursersd.errors import ArgumentError, CentralError, NotAllowed, ToolFailed, Unreachable
from pursersd.feed.board import BoardFeed
from pursersd.feed.catchup import CursorAhead
from pursersd.feed.centrals import Central
from pursersd.feed.waiter import Page, Waiter
from pursersd.rules.questions import ANSWERED, ASKED, Asked, Json
from pursersd.seats.seat import Seat
from pursersd.waits import questions as module
from pursersd.waits.questions import Answer, Arrivals, Found, Subject
from pursersd.windows import Windows
from unit.scripted_pool import BOARD, seat

pytestmark = pytest.mark.anyio

ANN = seat("ann")
PATIENCE = 30.0  # seconds for something that must happen
LONG = 60.0  # seconds that a wait of a test may take, if nothing ends it
EVERY = 0.01  # seconds between two looks


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY", 0.0)


def event(seq: int, kind: str, question: str = "CQ-1", ticket: str = "TK-1", **fields: object) -> dict[str, Any]:
    return {"seq": seq, "kind": kind, "ticket_id": ticket, "question_id": question, **fields}


def ended(seq: int, status: str = "canceled") -> dict[str, Any]:
    return {"seq": seq, "kind": "ticket_status_changed", "ticket_id": "TK-1", "status_to": status}


def question(number: str = "CQ-1", state: str = "open", by: Seat = ANN) -> Json:
    return {"question_id": number, "state": state, "asked_by": {"agent_id": by.agent_id}, "binding": "never shown"}


class Board:
    """In the place of a board and its feed: a history of pages, tickets, an inbox; errors are raised first, each once."""

    def __init__(self, *history: dict[str, Any]) -> None:
        self.history = list(history)
        self.lost = False
        self.head = 9
        self.ahead = False
        self.ticket: dict[str, Any] | None = {"status": "claimed", "coordinator_questions": [question()]}
        self.inbox: list[Json] = []
        self.errors: list[CentralError] = []
        self.asked: list[Mapping[str, Any]] = []
        self.hanging = False
        self.looks = 0
        self.confirmed: list[tuple[int, bool]] = []
        self.windows = Windows()
        self.waiter = Waiter(ANN, push=True)
        self.reads = self.catchup = self
        self.is_covered = True
        self.seats = self.pool = self

    # --- as a feed --------------------------------------------------------------------------------------------------

    async def pages(self, seat: Seat, cursor: int) -> AsyncIterator[dict[str, Any]]:
        if self.ahead:
            raise CursorAhead(self.head)
        if self.lost:
            yield {"events": [], "scan_count": 0, "resync_required": True, "reset_cursor": 5, "next_cursor": 0}
        half = len(self.history) // 2
        for part, place in ((self.history[:half], 5), (self.history[half:], self.head)):
            yield {"events": part, "scan_count": len(part), "next_cursor": place}

    async def confirm(self, seat: Seat, head: int, *, hidden: bool) -> None:
        self.confirmed.append((head, hidden))

    def nudge(self) -> None:
        pass

    async def reachable(self) -> None:
        pass

    # --- as a Central -----------------------------------------------------------------------------------------------

    async def seated(self, seat: Seat, send: Callable[[Seat], Any]) -> Any:
        return await send(seat)

    async def read(self, tool: str, arguments: Mapping[str, Any], **how: Any) -> dict[str, Any]:
        self.asked.append(arguments)
        if self.hanging:
            await anyio.sleep_forever()
        if self.errors:
            raise self.errors.pop(0)
        if tool == "board_question_inbox":
            wanted = [q for q in self.inbox if arguments.get("state", q["state"]) == q["state"]]
            return {"questions": wanted[: arguments["limit"]]}
        self.looks += 1
        if self.ticket is None:
            raise ToolFailed(tool, "ticket not found", "not_found")
        return {"ticket": self.ticket, "latest_seq": self.head}

    # --- what a test does -------------------------------------------------------------------------------------------

    def watch(self, subject: Subject, cursor: int = 2) -> "module._Watch":
        return module._Watch(cast(BoardFeed, self), self.waiter, subject, cursor)

    async def wait(self, subject: Subject, cursor: int = 2) -> tuple[Found | None, "module._Watch"]:
        watch = self.watch(subject, cursor)
        with anyio.fail_after(PATIENCE):
            return await watch.run(time.monotonic() + LONG, LONG), watch

    def page(self, *events: dict[str, Any], resynced: bool = False, cued_at: float | None = None) -> None:
        self.head += 1 if not events else 0
        self.head = max([self.head, *(e["seq"] for e in events)])
        self.waiter.deliver(Page(list(events), self.head, resynced, cued_at))


def answer() -> Answer:
    return Answer(Asked("TK-1", "CQ-1"))


def arrivals(board: Board, ticket: str | None = None) -> Arrivals:
    return Arrivals(cast(Central, board), ticket)


def state(board: Board, state: str, status: str = "claimed") -> None:
    board.ticket = {"status": status, "coordinator_questions": [question(state=state)]}


async def test_the_cursor_stands_behind_the_event_that_is_returned() -> None:
    board = Board(event(3, ASKED, "CQ-1"), event(4, ASKED, "CQ-2"), event(7, "ticket_annotated"))
    board.inbox = [question("CQ-1"), question("CQ-2", "answered")]
    found, watch = await board.wait(arrivals(board))
    assert found is not None
    assert (found.event, watch.cursor) == (event(3, ASKED), 3)
    assert found.question == {k: v for k, v in question().items() if k != "binding"}
    del board.history[0]
    found, watch = await board.wait(arrivals(board), watch.cursor)
    assert found is not None
    assert (found.event, watch.cursor) == (event(4, ASKED, "CQ-2"), 4)


async def test_a_question_that_is_not_in_the_inbox_is_for_somebody_else() -> None:
    board = Board(event(3, ASKED, "CQ-other"), event(4, ASKED, "CQ-1"))
    board.inbox = [question("CQ-1")]
    found, watch = await board.wait(arrivals(board))
    assert found is not None
    assert watch.cursor == 4
    assert len(board.asked) == 1, "one list for both"


async def test_only_the_ticket_that_was_asked_for_counts() -> None:
    board = Board(event(3, ASKED, "CQ-2", "TK-2"), event(4, ASKED, "CQ-1", "TK-1"))
    board.inbox = [question("CQ-1"), question("CQ-2")]
    found, watch = await board.wait(arrivals(board, "TK-1"))
    assert found is not None
    assert watch.cursor == 4


async def test_an_answer_in_a_later_page_of_the_history_beats_the_end_in_an_earlier_one() -> None:
    board = Board(ended(3), event(8, ANSWERED))
    state(board, "answered", "canceled")
    found, watch = await board.wait(answer())
    assert found is not None
    assert (found.event, found.ended, watch.cursor) == (event(8, ANSWERED), None, 8)
    assert watch.result(found)["delivery"] == "protocol_delivered"


@pytest.mark.parametrize(
    ("ticket", "code"),
    [
        ({"status": "canceled", "coordinator_questions": [question()]}, "ticket_ended"),
        ({"status": "claimed"}, "withdrawn"),
        (None, "ticket_ended"),
    ],
)
async def test_a_question_that_is_dead_already_ends_the_wait(ticket: dict[str, Any] | None, code: str) -> None:
    board = Board()
    board.ticket = ticket
    found, watch = await board.wait(answer())
    result = watch.result(found)
    assert cast(dict[str, Any], result["ended"])["code"] == code
    assert (result["timed_out"], result["event"], result["new_seq"]) == (False, None, 9)
    assert result["delivery"] == "no_matching_event"


async def test_an_answer_before_the_cursor_is_told_from_the_ticket() -> None:
    board = Board()
    state(board, "answered")
    found, watch = await board.wait(answer(), 9)
    assert found is not None
    assert (found.event, watch.cursor) == (None, 9)
    assert found.question is not None
    assert found.question["state"] == "answered"


async def meanwhile(
    board: Board, subject: Subject, act: Callable[[], Awaitable[None]], every: float = LONG
) -> tuple[Found | None, "module._Watch"]:
    """A wait that has caught up; then something happens."""
    watch = board.watch(subject)
    results: list[Found | None] = []

    async def run() -> None:
        results.append(await watch.run(time.monotonic() + LONG, every))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await until(lambda: board.waiter.opened)
            await act()
    return results[0], watch


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await anyio.lowlevel.checkpoint()


async def test_a_live_answer_ends_the_wait() -> None:
    board = Board()

    async def answered() -> None:
        board.page(event(10, "coordinator_question_accepted"), event(11, ANSWERED, "CQ-2"))
        state(board, "answered")
        board.page(event(12, ANSWERED), event(13, "ticket_annotated"))

    found, watch = await meanwhile(board, answer(), answered)
    assert found is not None
    assert (found.event, watch.cursor) == (event(12, ANSWERED), 12)


async def test_the_cue_that_ended_the_wait_is_known_and_there_is_none_for_what_was_there() -> None:
    board = Board()

    async def answered() -> None:
        board.page(event(10, "ticket_annotated", ticket="TK-2"), cued_at=1.0)
        await until(lambda: not board.waiter.has_arrived)
        state(board, "answered")
        board.page(event(12, ANSWERED), cued_at=2.0)

    _, watch = await meanwhile(board, answer(), answered)
    assert watch.cued_at == 2.0
    _, watch = await board.wait(answer())
    assert watch.cued_at is None


async def test_an_end_that_was_overtaken_is_none() -> None:
    board = Board()

    async def reopened() -> None:
        before = board.looks
        board.page(ended(10, "rejected"))  # by now it is open again
        await until(lambda: board.looks > before)
        state(board, "answered", "open")
        board.page(event(12, ANSWERED))

    found, watch = await meanwhile(board, answer(), reopened)
    assert found is not None
    assert (found.event, found.ended, watch.cursor) == (event(12, ANSWERED), None, 12)


async def test_an_end_that_is_hidden_from_the_asker_is_noticed() -> None:
    board = Board()

    async def closed() -> None:
        state(board, "open", "closed")

    found, _ = await meanwhile(board, answer(), closed, EVERY)
    assert found is not None
    assert found.event is None
    assert found.ended is not None


async def test_a_busy_board_does_not_put_the_look_off() -> None:
    board = Board()

    async def busy() -> None:
        state(board, "open", "closed")
        while True:
            board.page()
            await anyio.sleep(EVERY / 10)

    watch = board.watch(answer())
    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                assert await watch.run(time.monotonic() + LONG, EVERY) is not None
                tasks.cancel_scope.cancel()

            tasks.start_soon(run)
            await until(lambda: board.waiter.opened)
            tasks.start_soon(busy)


@pytest.mark.parametrize("live", [True, False])
async def test_a_lost_place_is_made_good_by_what_the_board_says(live: bool) -> None:
    board = Board()
    board.inbox = [question("CQ-1", "answered"), question("CQ-2")]
    if live:

        async def lost() -> None:
            board.page(resynced=True)

        found, watch = await meanwhile(board, arrivals(board), lost)
    else:
        board.lost = True
        found, watch = await board.wait(arrivals(board))
    assert found is not None
    assert found.event is None
    assert found.question is not None
    assert found.question["question_id"] == "CQ-2"
    (warning,) = cast(list[dict[str, Any]], watch.result(found)["warnings"])
    assert warning["window"] == "LW-RESYNC"
    assert watch.cursor == board.head


async def test_what_central_does_not_tell_is_asked_again() -> None:
    board = Board(event(3, ASKED))
    board.inbox = [question()]
    board.errors = [Unreachable("gone"), Unreachable("gone")]
    found, watch = await board.wait(arrivals(board))
    assert found is not None
    assert (len(board.asked), watch.cursor) == (3, 3)


async def test_a_refusal_ends_the_wait_and_moves_nothing() -> None:
    board = Board(event(3, ASKED))
    board.errors = [ToolFailed("board_question_inbox", "no coordinator any more")]
    watch = board.watch(arrivals(board))
    with pytest.raises(ToolFailed, match="no coordinator"):
        await watch.run(time.monotonic() + LONG, LONG)
    assert watch.cursor == 2


async def test_a_deadline_while_something_is_judged_moves_nothing() -> None:
    board = Board(event(3, ASKED))
    board.hanging = True
    watch = board.watch(arrivals(board))
    found = await watch.run(time.monotonic() + EVERY, LONG)
    assert found is None
    assert watch.result(found)["timed_out"]
    assert watch.result(found)["new_seq"] == 2


async def test_a_cursor_that_is_ahead_is_told_where_the_journal_ends() -> None:
    board = Board()
    board.ahead = True
    with pytest.raises(
        ArgumentError, match=rf"since_seq 12 is ahead of the journal of board {BOARD}, which ends at 9\."
    ):
        await board.wait(answer(), 12)


async def test_its_seat_is_confirmed_after_the_history() -> None:
    board = Board()
    state(board, "answered")
    await board.wait(answer())
    assert board.confirmed == [(9, False)]
    board.lost = True
    await board.wait(answer())
    assert board.confirmed[1:] == [(9, True)]


@pytest.mark.parametrize("by", [None, seat("bob")])
async def test_only_whoever_asked_may_begin(by: Seat | None) -> None:
    board = Board()
    board.ticket = {"status": "claimed", "coordinator_questions": [] if by is None else [question(by=by)]}
    with pytest.raises(NotAllowed, match="requires the original asker identity and question"):
        await answer().begin(board.watch(answer()))
    board.ticket = {"status": "claimed", "coordinator_questions": [question()]}
    await answer().begin(board.watch(answer()))


async def test_a_coordinator_asks_central_whether_it_is_one() -> None:
    board = Board()
    board.errors = [ToolFailed("board_question_inbox", "no coordinator")]
    with pytest.raises(ToolFailed):
        await arrivals(board).begin(board.watch(arrivals(board)))
    assert board.asked == [{"board_id": BOARD, "agent_name": "ann", "limit": 1}]
