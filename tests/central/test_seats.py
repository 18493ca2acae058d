"""seats on a real Central: one join for many, back after a handoff, and no board that was only a typing error."""

from typing import Any

import anyio
import pytest
from anyio import to_thread

from central.feeding import Reader, eventually, listening, pool, readers
from pursersd.errors import ToolFailed, UnknownBoard
from pursersd.feed.centrals import Central as Pooled
from pursersd.seats.seat import Seat, SeatRequest
from rig.central import ADMIN_SEAT, Central
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def request(board: str, name: str = "ann") -> SeatRequest:
    return SeatRequest(board, name, "worker")


def agent(central: Central, board: str, name: str = "ann") -> dict[str, Any]:
    """The seat as Central shows it."""
    status = central.call(central.admin, "board_status", board_id=board, include_retired=True)
    return next(found for found in status["agents"] if found["agent_name"] == name)


async def read_on(ours: Pooled, seat: Seat, cursor: int) -> int:
    """What an entry does: read the history, and look whether the seat is still a member; returns the head."""
    feed = ours.feed.boards[seat.board]
    hidden, head = False, cursor
    async for page in feed.catchup.pages(seat, cursor):
        hidden |= page["scan_count"] > len(page["events"])
        head = page["next_cursor"]
    await feed.confirm(seat, head, hidden=hidden)
    await eventually(lambda: feed.is_quiet)  # what was in doubt has been looked at
    return head


async def test_many_join_a_seat_once(central: Central, proxy: Proxy, board: str) -> None:
    async with pool(proxy.url, central.worker("ann", board)) as ours:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ours.seats.join, request(board))
            tasks.start_soon(ours.seats.join, request(board, "other"))
        assert proxy.count("board_join") == 2
        assert proxy.count("board_list") == 1
        seat = await ours.seats.join(request(board))
        assert proxy.count() == 3
        found = await to_thread.run_sync(agent, central, board)
        assert (seat.agent_id, seat.principal_id) == (found["agent_id"], central.principal_id("ann"))
        assert (seat.role, seat.generation, seat.claim_ttl_s) == ("worker", None, 900)


@pytest.mark.parametrize("who", ["worker", "admin"])
async def test_an_unknown_board_is_not_created(central: Central, proxy: Proxy, board: str, who: str) -> None:
    """Central founds a board when somebody names one (central.md §10), also for a read that it denies."""
    token = central.worker("ann", board) if who == "worker" else central.admin
    before = central.board_count()
    async with pool(proxy.url, token) as ours:
        with pytest.raises(UnknownBoard, match="'typo' is not one of this credential's boards"):
            await ours.seats.join(request("typo"))
    assert proxy.count() == proxy.count("board_list") == 1
    assert central.board_count() == before


async def test_a_board_that_is_made_later_can_be_joined(central: Central, board: str) -> None:
    name = f"{board}-later"
    async with pool(central.url, central.mint("ann", "board:read board:write")) as ours:
        with pytest.raises(UnknownBoard):
            await ours.seats.join(request(name))
        await to_thread.run_sync(central.create_board, name, {"ann": "member"})
        assert (await ours.seats.join(request(name))).board == name


async def test_a_board_of_others_is_refused(central: Central, board: str) -> None:
    async with pool(central.url, central.mint("dora", "board:read board:write")) as ours:
        with pytest.raises(UnknownBoard):
            await ours.seats.join(request(board))


async def test_a_membership_that_ended_is_noticed(central: Central, board: str) -> None:
    async with pool(central.url, central.mint("bob", "board:read board:write")) as ours:
        await ours.seats.join(request(board))
        await to_thread.run_sync(remove, central, board, "bob")
        with pytest.raises(ToolFailed, match=r"access denied|invite required"):
            await ours.seats.join(request(board, "another"))
        with pytest.raises((UnknownBoard, ToolFailed)):
            await ours.seats.join(request(board, "another"))


def remove(central: Central, board: str, subject: str) -> None:
    principal = central.principal_id(subject)
    central.call(central.admin, "board_member_remove", board_id=board, agent_name=ADMIN_SEAT, principal_id=principal)


async def test_a_keepalive_is_no_act_of_the_model(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    ticket = central.create_ticket(board, "in hand")

    def lease() -> dict[str, Any]:
        found = central.call(token, "ticket_get", board_id=board, ticket_id=ticket, view="full")["ticket"]
        return {name: found.get(name) for name in ("lease_last_model_renewed_at", "lease_renewal_source")}

    async with pool(central.url, token) as ours:
        seat = await ours.seats.join(request(board))
        central.call(token, "ticket_claim", board_id=board, agent_name="ann", ticket_id=ticket)
        claimed, head = lease(), central.head(board)
        was = agent(central, board)["last_activity_at"]
        await ours.seats.keepalive(seat)
        assert lease() == {**claimed, "lease_renewal_source": "keepalive"}
        assert agent(central, board)["last_activity_at"] > was  # it does not go stale
        assert central.head(board) == head  # and nobody is cued


def hand_off(central: Central, token: str, board: str) -> None:
    central.call(token, "memory_handoff", board_id=board, agent_name="ann", summary="done", next_steps=["x"])


def retire(central: Central, token: str, board: str) -> None:
    central.call(token, "agent_retire", board_id=board, agent_name="ann")


@pytest.mark.parametrize("leave", [hand_off, retire])
async def test_a_seat_that_left_is_back_at_the_next_wait(central: Central, board: str, leave: Any) -> None:
    """It could still read, but would be told nothing: Central does not say so by itself (central.md §5)."""
    token = central.worker("ann", board)
    async with pool(central.url, token) as ours:
        seat = await ours.seats.join(request(board))
        with ours.feed.watch(seat, push=False):
            head = await read_on(ours, seat, 0)
            for _ in range(2):
                await to_thread.run_sync(leave, central, token, board)
                assert agent(central, board)["lifecycle_status"] != "active"
                head = await read_on(ours, seat, head)
                assert agent(central, board)["lifecycle_status"] == "active"


async def test_a_seat_that_saw_everything_does_not_join_again(central: Central, proxy: Proxy, board: str) -> None:
    async with pool(proxy.url, central.worker("ann", board)) as ours:
        seat = await ours.seats.join(request(board))
        with ours.feed.watch(seat, push=False):
            head = await read_on(ours, seat, 0)
            for number in range(3):
                await to_thread.run_sync(central.create_ticket, board, f"seen {number}")
                head = await read_on(ours, seat, head)
        assert proxy.count("board_join") == 1


def retire_by_admin(central: Central, token: str, board: str) -> None:
    seat = agent(central, board)["agent_id"]
    central.call(central.admin, "agent_retire", board_id=board, agent_name=ADMIN_SEAT, target_agent_id=seat)


@pytest.mark.parametrize("leave", [retire, retire_by_admin])
async def test_a_seat_that_is_retired_during_its_wait_is_back_at_once(central: Central, board: str, leave: Any) -> None:
    """Central cues it for an event that its own page hides. (Of a handoff beside a wait it says nothing at all.)"""
    token = central.worker("ann", board)
    async with pool(central.url, token) as ours, readers(ours, board, ["ann", "other"]) as found:
        await to_thread.run_sync(leave, central, token, board)
        await eventually(lambda: agent(central, board)["lifecycle_status"] == "active")
        ticket = await to_thread.run_sync(central.create_ticket, board, "for both")
        for reader in found:
            await eventually(lambda reader=reader: ticket in [event.get("ticket_id") for event in reader.events])


async def test_a_reader_whose_principal_was_readmitted_goes_on(central: Central, board: str) -> None:
    """Central says `not a member of this board`: the seat joins and reads again."""
    token = central.worker("bob", board)
    async with pool(central.url, token) as ours, anyio.create_task_group() as tasks:
        reader = Reader(ours, board, "bob")
        await tasks.start(reader.run)
        await listening(ours, [reader])
        assert reader.waiter is not None
        reader.waiter.opened = False  # nothing is read in between, when Central would refuse the principal altogether
        await to_thread.run_sync(remove, central, board, "bob")
        await to_thread.run_sync(central.admit, board, "bob")
        reader.waiter.opened = True
        ours.feed.boards[board].gap()
        await listening(ours, [reader])
        assert reader.waiter.failure is None
        await to_thread.run_sync(central.create_ticket, board, "again")
        await eventually(lambda: reader.events and reader.events[-1]["kind"] == "ticket_created")
        tasks.cancel_scope.cancel()
