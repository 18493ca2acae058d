"""A board whose stream Central refuses is polled; the result says so and why, and push comes back by itself."""

from typing import Any

import anyio
import pytest
from anyio import to_thread

from central.feeding import eventually
from central.waiting import Waiting, blocking, make, tickets, waiting
from pursersd.central import streams
from pursersd.feed import board as board_module
from pursersd.ids import journal_uri
from rig.central import WORKER_SCOPE, Central
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens by the clock happens soon."""
    monkeypatch.setattr(board_module, "POLL", 0.1)
    monkeypatch.setattr(streams, "DENIED_RETRY", 0.3)
    monkeypatch.setattr(streams, "LAST_RETRY", 0.3)


def warning(board: str) -> dict[str, str]:
    """What a caller is told of a board whose journal is denied."""
    text = f"subscription denied: principal is not authorized for resource {journal_uri(board)}"
    return {"code": "push_unavailable", "detail": text}


def is_pushed(waiter: Waiting, board: str) -> bool:
    return waiter.central.feed.boards[board].is_covered


async def test_a_single_board_tells_why_it_is_polled(central: Central, proxy: Proxy, board: str) -> None:
    proxy.deny(journal_uri(board))
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            ticket = await make(central, board, "found by looking")
        (result,) = results
        assert (tickets(result), result["mode"], result["reason"]) == ([ticket], "poll", "journal")
        assert result["warnings"] == [warning(board)]
        timeout = await ann.wait(result["new_seq"], 1)
        assert (timeout["timed_out"], timeout["mode"], timeout["warnings"]) == (True, "poll", [warning(board)])


async def test_an_answer_at_the_entry_was_not_polled_for(central: Central, proxy: Proxy, board: str) -> None:
    proxy.deny(journal_uri(board))
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        ticket = await make(central, board, "there already")
        result = await ann.wait(0)
        assert tickets(result) == [ticket]
        assert "warnings" not in result


async def test_a_seat_that_wants_to_poll_is_not_warned(central: Central, proxy: Proxy, board: str) -> None:
    proxy.deny(journal_uri(board))
    environ = {"PURSERS_WAIT_MODE": "poll"}
    async with waiting(proxy.url, central.worker("ann", board), board, environ=environ) as ann:
        result = await ann.wait(await ann.caught_up(), 1)
        assert result["mode"] == "poll"
        assert "warnings" not in result


async def test_push_is_back_in_the_same_call(central: Central, proxy: Proxy, board: str) -> None:
    proxy.deny(journal_uri(board))
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            assert not is_pushed(ann, board)
            await to_thread.run_sync(lambda: proxy.deny(journal_uri(board), on=False))
            await eventually(lambda: is_pushed(ann, board))
            ticket = await make(central, board, "told")
        (result,) = results
        assert (tickets(result), result["mode"]) == ([ticket], "push")
        assert "warnings" not in result


async def test_one_of_two_boards_is_polled_and_comes_back(central: Central, proxy: Proxy, board: str) -> None:
    other = f"{board}-other"
    central.create_board(other, {"ann": "member"})
    proxy.deny(journal_uri(other))
    async with waiting(proxy.url, central.mint("ann", WORKER_SCOPE), board) as ann:
        boards = [board, other]
        since = {name: await to_thread.run_sync(central.head, name) for name in boards}

        def told(result: dict[str, Any]) -> tuple[object, ...]:
            return tickets(result), result["mode_by_board"], result.get("warnings")

        async with blocking(ann, since, boards=boards) as results:
            assert is_pushed(ann, board)
            ticket = await make(central, other, "found by looking")
        assert told(results[0]) == ([ticket], {board: "push", other: "poll"}, {other: [warning(other)]})
        assert results[0]["mode"] == "mixed"

        async with blocking(ann, results[0]["new_seq"], boards=boards) as results:
            await to_thread.run_sync(lambda: proxy.deny(journal_uri(other), on=False))
            await eventually(lambda: is_pushed(ann, other))
            ticket = await make(central, other, "told")
        assert told(results[0]) == ([ticket], {board: "push", other: "push"}, None)


async def test_without_any_stream_left_the_reason_is_told_and_push_comes_back() -> None:
    with Central(CENTRAL_PRINCIPAL_STREAM_CAP="2") as small:
        small.create_board("alpha", {"ann": "member"})
        token, journal = small.worker("ann", "alpha"), journal_uri("alpha")
        async with waiting(small.url, token, "alpha", "other") as taker, waiting(small.url, token, "alpha") as ann:
            results: list[dict[str, Any]] = []

            async def wait() -> None:
                results.append(await ann.wait(head, 60))

            async with anyio.create_task_group() as tasks:
                async with taker.central.pool.listen([journal]), taker.central.pool.listen([journal]):
                    head = await ann.caught_up()
                    timeout = await ann.wait(head, 1)
                    tasks.start_soon(wait)
                    await eventually(lambda: ann.boards and ann.boards[0].entered)
                    assert ann.boards[0].is_polled
                await eventually(lambda: is_pushed(ann, "alpha"))
                ticket = await make(small, "alpha", "told")
            (told,) = timeout["warnings"]
            assert (told["code"], "stream limit exceeded" in told["detail"]) == ("push_unavailable", True)
            assert (timeout["timed_out"], timeout["mode"]) == (True, "poll")
            assert (tickets(results[0]), results[0]["mode"], "warnings" in results[0]) == ([ticket], "push", False)
