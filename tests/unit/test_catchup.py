"""feed/catchup: pages in order, a cursor that is off, and the one acknowledgement that is exact."""

from typing import Any

import pytest

from pursersd.errors import CentralError, ProtocolRefused, ToolFailed, Unreachable
from pursersd.feed.catchup import Catchup, CursorAhead, position_after
from pursersd.seats.seat import Seats
from unit.scripted_pool import ScriptedPool, seat

pytestmark = pytest.mark.anyio

ANN = seat("ann")
INACTIVE = ToolFailed("board_catchup", "agent is not active; call board_onboard or board_join before more work")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def pool() -> ScriptedPool:
    pool = ScriptedPool()
    for _ in range(5):
        pool.write()
    return pool


@pytest.fixture
def catchup(pool: ScriptedPool) -> Catchup:
    return Catchup(pool.as_pool, Seats(pool.as_pool))


async def seqs(catchup: Catchup, cursor: int | None) -> list[int]:
    return [event["seq"] async for page in catchup.pages(ANN, cursor) for event in page["events"]]


async def test_all_pages_in_order(catchup: Catchup, pool: ScriptedPool) -> None:
    pool.page = 2
    assert await seqs(catchup, 1) == [2, 3, 4, 5]
    assert pool.asked == ["ann from 1", "ann from 3"]


async def test_without_a_cursor_it_begins_at_centrals(catchup: Catchup, pool: ScriptedPool) -> None:
    pool.page = 3
    assert await seqs(catchup, None) == [1, 2, 3, 4, 5]
    assert pool.asked == ["ann from None", "ann from 3"]


async def test_reading_is_pure(pool: ScriptedPool, catchup: Catchup, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    read = pool.read

    async def note(tool: str, arguments: Any, **options: Any) -> Any:
        sent.append((dict(arguments), options))
        return await read(tool, arguments, **options)

    monkeypatch.setattr(pool, "read", note)
    await seqs(catchup, 5)
    arguments, options = sent[0]
    assert (arguments["touch"], arguments["ack"]) == (False, False)
    assert (arguments["limit"], arguments["max_events"], arguments["max_bytes"]) == (500, 500, 750_000)
    assert options == {"background": False}


async def test_a_cursor_beyond_the_journal_says_where_that_ends(catchup: Catchup) -> None:
    with pytest.raises(CursorAhead) as ahead:
        await catchup.page(ANN, 99)
    assert ahead.value.head == 5


async def test_a_journal_that_has_lost_our_place_is_jumped_over(
    catchup: Catchup, pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [
        {
            "events": [],
            "scan_count": 0,
            "next_cursor": 1,
            "latest_cursor": 5,
            "resync_required": True,
            "reset_cursor": 5,
        },
        {"events": [], "scan_count": 0, "next_cursor": 5, "latest_cursor": 5},
    ]

    async def read(tool: str, arguments: Any, **options: Any) -> Any:
        pool.asked.append(arguments["cursor"])
        return answers.pop(0)

    monkeypatch.setattr(pool, "read", read)
    pages = [page async for page in catchup.pages(ANN, 1)]
    assert [position_after(page) for page in pages] == [5, 5]
    assert pool.asked == [1, 5]


@pytest.mark.parametrize(
    "changes", [{"has_more": True, "next_cursor": 1}, {"resync_required": True, "reset_cursor": 1}]
)
async def test_a_page_that_leads_nowhere_is_no_endless_loop(
    catchup: Catchup, pool: ScriptedPool, changes: dict[str, Any]
) -> None:
    pool.changes = changes
    with pytest.raises(ProtocolRefused, match="does not lead on from 1"):
        await seqs(catchup, 1)
    assert pool.asked == ["ann from 1"]


@pytest.mark.parametrize(
    "changes",
    [
        {"events": None},
        {"events": {}},
        {"events": [1]},
        {"next_cursor": None},
        {"next_cursor": "7"},
        {"latest_cursor": None},
        {"scan_count": None},
        {"resync_required": True, "reset_cursor": None},
    ],
    ids=str,
)
async def test_a_page_that_cannot_be_trusted_is_refused(
    catchup: Catchup, pool: ScriptedPool, changes: dict[str, Any]
) -> None:
    """Everybody on the board would stumble over it, in tasks that belong to nobody's call."""
    pool.changes = changes
    with pytest.raises(ProtocolRefused, match="board_catchup with a page without"):
        await catchup.page(ANN, 1)


async def test_a_seat_that_is_not_active_joins_and_reads_again(catchup: Catchup, pool: ScriptedPool) -> None:
    for _ in range(2):  # every time, not only the first
        pool.asked.clear()
        pool.errors = [INACTIVE]
        await catchup.page(ANN, 5)
        assert pool.asked == ["ann from 5", "ann joins as keepalive", "ann from 5"]


async def test_a_seat_that_stays_inactive_is_a_failure(catchup: Catchup, pool: ScriptedPool, monkeypatch: Any) -> None:
    async def read(tool: str, arguments: Any, **options: Any) -> Any:
        if tool == "board_catchup":
            raise INACTIVE
        return await ScriptedPool().read(tool, arguments, **options)

    monkeypatch.setattr(pool, "read", read)
    with pytest.raises(ToolFailed):
        await catchup.page(ANN, 5)


@pytest.mark.parametrize("error", [ToolFailed("t", "board access denied"), Unreachable("gone")])
async def test_other_failures_are_the_callers(catchup: Catchup, pool: ScriptedPool, error: CentralError) -> None:
    pool.errors = [error]
    with pytest.raises(type(error)):
        await catchup.page(ANN, 5)
    assert pool.asked == ["ann from 5"]


async def test_an_acknowledgement_asks_for_the_one_row_before_the_cursor(
    catchup: Catchup, pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []

    async def read(tool: str, arguments: Any, **options: Any) -> Any:
        sent.append((tool, arguments, options))
        return {}

    monkeypatch.setattr(pool, "read", read)
    await catchup.acknowledge(ANN, 0)
    assert sent == []
    await catchup.acknowledge(ANN, 4)
    arguments = {"board_id": "b", "agent_name": "ann", "cursor": 3, "limit": 1, "touch": True, "ack": True}
    assert sent == [("board_catchup", arguments, {"generation": None})]


async def test_an_acknowledgement_waits_for_a_central_that_does_not_answer(
    catchup: Catchup, pool: ScriptedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was delivered and not acknowledged would come again."""
    errors: list[CentralError] = [Unreachable("gone", sent=False)]
    sent: list[Any] = []

    async def read(tool: str, arguments: Any, **options: Any) -> Any:
        sent.append(arguments["cursor"])
        if errors:
            pool.reach.lost(errors[0])
            raise errors.pop(0)
        return {}

    monkeypatch.setattr(pool, "read", read)
    await catchup.acknowledge(ANN, 4)
    assert sent == [3, 3]
    assert pool.asked == ["probe"]
    errors += [Unreachable("gone")] * 3
    with pytest.raises(Unreachable):
        await catchup.acknowledge(ANN, 4)
    assert sent == [3] * 5
