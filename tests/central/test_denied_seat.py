"""A seat whose subscription Central denies is woken by the journal of its board alone (bridge.md D27)."""

import anyio
from anyio import to_thread

from central.feeding import Reader, eventually, pool, readers
from pursersd.feed.centrals import Central as Ours
from pursersd.ids import journal_uri
from rig.central import ADMIN_SEAT, Central
from rig.proxy import Proxy


async def denied(ours: Ours, reader: Reader) -> None:
    """Wait until the seat has no stream and its board has one."""
    assert reader.waiter is not None
    uri = reader.waiter.seat.uri
    await eventually(lambda: uri in ours.feed.seats.denied)
    await eventually(lambda: journal_uri(reader.board) in ours.feed.journals.covered)
    assert uri not in ours.feed.seats.covered


async def woken(central: Central, ours: Ours, reader: Reader) -> None:
    """Something happens on the board: the reader gets it by push."""
    known = len(reader.events)
    ticket = await to_thread.run_sync(central.create_ticket, reader.board, "work")
    await reader.until(known + 1)
    assert reader.events[-1]["ticket_id"] == ticket
    assert reader.waiter is not None
    assert not ours.feed.boards[reader.board].polls(reader.waiter)


def test_a_seat_that_is_gone_at_central_stays_on_push(central: Central, proxy: Proxy, board: str) -> None:
    """Its principal left the board and came back: it is a member again and may have the journal, but it has no seat."""

    def leave_and_return() -> None:
        gone = {"agent_name": ADMIN_SEAT, "principal_id": central.principal_id("ann")}
        central.call(central.admin, "board_member_remove", board_id=board, **gone)
        central.admit(board, "ann")
        proxy.cut_streams()

    async def body() -> None:
        async with pool(proxy.url, central.worker("ann", board)) as ours, readers(ours, board, ["seat"]) as (reader,):
            # The first read would take the seat again, and then nothing would be denied.
            await to_thread.run_sync(proxy.hold, "board_catchup")
            await to_thread.run_sync(leave_and_return)
            await denied(ours, reader)
            await to_thread.run_sync(proxy.release, "board_catchup")
            await woken(central, ours, reader)

    anyio.run(body)


def test_it_stays_so_until_the_seat_is_allowed(central: Central, proxy: Proxy, board: str) -> None:
    async def body() -> None:
        async with pool(proxy.url, central.worker("ann", board)) as ours, readers(ours, board, ["seat"]) as (reader,):
            assert reader.waiter is not None
            uri = reader.waiter.seat.uri
            await to_thread.run_sync(proxy.deny, uri)
            await to_thread.run_sync(proxy.cut_streams)
            await denied(ours, reader)
            for _ in range(3):
                await woken(central, ours, reader)
            assert uri not in ours.feed.seats.covered
            await to_thread.run_sync(lambda: proxy.deny(uri, on=False))
            ours.feed.seats.retry()
            await eventually(lambda: uri in ours.feed.seats.covered)
            await woken(central, ours, reader)

    anyio.run(body)
