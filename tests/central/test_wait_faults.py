"""a2a_wait's engine when Central fails, refuses, restarts or falls silent: the wait goes on or says what happened."""

import time
from typing import Any

import anyio
import pytest
from anyio import to_thread

from central.feeding import PATIENCE, eventually
from central.waiting import Waiting, blocking, make, tickets, waiting
from pursersd.central import client as client_module
from pursersd.central import pool as pool_module
from pursersd.central import reach as reach_module
from pursersd.central import streams
from pursersd.central.pool import CALLS, Pool
from pursersd.central.turns import on_behalf_of
from pursersd.errors import ToolFailed, Unauthenticated, Unreachable
from pursersd.feed import board as board_module
from pursersd.waits import engine
from rig.central import ADMIN_SEAT, Central
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_tickets_that_cannot_be_read_do_not_hold_the_events_back(
    central: Central, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        ticket = await make(central, board, "unseen")
        read = ann.central.pool.read

        async def no_listing(tool: str, arguments: Any, **options: Any) -> Json:
            if tool == "ticket_list":
                raise ToolFailed(tool, "the listing is broken")
            return await read(tool, arguments, **options)

        monkeypatch.setattr(ann.central.pool, "read", no_listing)
        result = await ann.wait(0)
        assert tickets(result) == [ticket]
        assert (result["events"][0]["projection_state"], result["events"][0]["reason"]) == ("unprojected", "broadcast")
        assert (result["partial"], result["new_seq"]) == (True, central.head(board))
        codes = [warning["code"] for warning in result["warnings"]]
        assert codes[0] == "ticket_projection_failed"
        assert codes[-1] == "ticket_projection_unprojected"


async def test_an_unreachable_central_at_the_entry_is_told_and_moves_nothing(
    central: Central, proxy: Proxy, board: str
) -> None:
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        await to_thread.run_sync(proxy.refuse)
        await to_thread.run_sync(proxy.reset_all)
        result = await ann.wait(head)
        assert (result["mode"], result["new_seq"], result["events"]) == ("error", head, [])
        assert result["error"]["cause_class"] == "transport"
        assert result["error"]["retryable"]
        await to_thread.run_sync(proxy.refuse, False)
        ticket = await make(central, board, "after it")
        assert tickets(await ann.wait(result["new_seq"])) == [ticket]


async def test_a_central_that_falls_silent_keeps_no_caller_waiting_for_the_registry(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host has a limit of its own: without an answer in time there is the home board alone, as without a registry."""
    monkeypatch.setattr(engine, "REGISTRY_LIMIT", 0.2)
    token = central.worker("ann", board)
    async with waiting(proxy.url, token, board) as ann:
        head = await ann.caught_up()
        await ann.wait(head, 1)
        await to_thread.run_sync(proxy.blackhole)
        with anyio.fail_after(PATIENCE):
            result = await ann.wait({board: head}, 1, boards="registry")
        assert result["registry_warning"] == (
            f"project_registry unavailable; using '{board}' only: Central did not tell it in 0 s"
        )
        assert (result["new_seq"], result["events"], result["reason"]) == (head, [], "partial")


async def test_a_token_that_expires_during_the_wait(central: Central, board: str) -> None:
    """The stream outlives it, the next read does not (central.md §4.6): the wait ends with what to do."""
    central.worker("ann", board)
    token = central.mint("ann", "board:read board:write", board, lifetime=6)
    expired = int(time.time()) + 6 + 1.1  # Central counts whole seconds
    async with waiting(central.url, token, board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results:
            await eventually(lambda: time.time() > expired)
            await make(central, board, "too late")
        (result,) = results
        assert (result["mode"], result["new_seq"], result["timed_out"]) == ("error", head, False)
        assert result["error"]["cause_class"] == "authentication"
        assert not result["error"]["retryable"]
        assert result["error"]["action"] == "repair_authentication_then_rearm_from_unchanged_cursor"
        assert result["waited_s"] < 40
    async with waiting(central.url, central.worker("ann", board), board) as renewed:
        assert len((await renewed.wait(result["new_seq"]))["events"]) == 1


async def test_a_membership_that_ends_during_the_wait(central: Central, board: str) -> None:
    async with waiting(central.url, central.mint("bob", "board:read board:write"), board, "bob") as bob:
        head = await bob.caught_up()
        principal = central.principal_id("bob")
        async with blocking(bob, head) as results:
            await to_thread.run_sync(
                lambda: central.call(
                    central.admin, "board_member_remove", board_id=board, agent_name=ADMIN_SEAT, principal_id=principal
                )
            )
        (result,) = results
        assert (result["mode"], result["new_seq"]) == ("error", head)
        assert result["error"]["cause_class"] == "authorization"


async def test_a_board_that_is_lost_and_comes_back_goes_on_where_it_was(central: Central, board: str) -> None:
    """Also for a caller that gave no cursor: it must not be told everything from the beginning."""
    second = f"{board}-second"
    central.create_board(second, {"ann": "member"})
    principal = central.principal_id("ann")

    def remove() -> None:
        central.call(
            central.admin, "board_member_remove", board_id=second, agent_name=ADMIN_SEAT, principal_id=principal
        )

    async with waiting(central.url, central.mint("ann", "board:read board:write"), board) as ann:
        await make(central, second, "known")
        known = await ann.wait(boards=[board, second])
        await ann.acknowledge()
        async with blocking(ann, None, boards=[board, second]) as results:
            await to_thread.run_sync(remove)
            await make(central, second, "meanwhile")
            await eventually(lambda: ann.boards[1].waiter.failure)
            ticket = await make(central, board, "here")
        (result,) = results
        assert tickets(result) == [ticket]
        assert list(result["skipped_boards"]) == [second]
        assert result["new_seq"][second] >= known["new_seq"][second]
        await to_thread.run_sync(central.admit, second, "ann")
        back = await ann.wait(result["new_seq"], boards=[board, second])
        assert len(back["events"]) == 1
        assert back["events"][0]["seq"] > result["new_seq"][second]


async def test_an_unauthenticated_look_at_a_ticket_drops_no_event(
    central: Central, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not knowing the ticket is no reason to take its event for irrelevant and to go on behind it."""
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        read = ann.central.pool.read

        async def expired(tool: str, arguments: Any, **options: Any) -> Json:
            if tool == "ticket_get":
                raise Unauthenticated("HTTP 401")
            return await read(tool, arguments, **options)

        monkeypatch.setattr(ann.central.pool, "read", expired)
        async with blocking(ann, head) as results:
            ticket = await make(central, board, "hard to judge")
        monkeypatch.undo()
        assert (results[0]["mode"], results[0]["new_seq"]) == ("error", head)
        assert tickets(await ann.wait(results[0]["new_seq"])) == [ticket]


# --- streams ----------------------------------------------------------------------------------------------------------


async def test_a_wait_by_polling(central: Central, board: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board_module, "POLL", 0.1)
    before = central.streams()
    environ = {"PURSERS_WAIT_MODE": "poll"}
    async with waiting(central.url, central.worker("ann", board), board, environ=environ) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            assert central.streams() == before
            ticket = await make(central, board, "found by looking")
        (result,) = results
        assert tickets(result) == [ticket]
        assert (result["mode"], result["reason"]) == ("poll", "journal")
        assert result["new_seq"] == central.head(board)


async def test_a_wait_outlives_its_central(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results:
            await to_thread.run_sync(central.kill)
            await eventually(lambda: not ann.central.feed.journals.covered)
            assert ann.central.status().state == "unreachable"
            await to_thread.run_sync(central.start)
            ticket = await make(central, board, "from the next Central")
        (result,) = results
        assert tickets(result) == [ticket]
        assert result["mode"] == "push"
        await eventually(lambda: ann.central.status().state == "ready")


async def test_a_central_that_wants_to_stop_is_let_go(central: Central, board: str) -> None:
    """It closes its socket and waits for our streams; the first refused connection tells us (central.md §1.3)."""
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results:
            process = central.process
            assert process is not None
            process.terminate()

            async def refused() -> bool:
                try:
                    await ann.central.pool.read("board_list", {})
                except Unreachable as error:
                    return not error.sent
                return False

            with anyio.fail_after(PATIENCE):
                while not await refused():
                    await anyio.sleep(0.01)
            await eventually(lambda: process.poll() is not None)
            await to_thread.run_sync(central.start)
            ticket = await make(central, board, "from the next Central")
        assert tickets(results[0]) == [ticket]


async def test_a_silent_stream_counts_as_lost(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "SILENCE", 1.0)
    monkeypatch.setattr(streams, "LAST_RETRY", 0.2)
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            await to_thread.run_sync(proxy.blackhole)
            ticket = await make(central, board, "nobody hears of it")
            await eventually(lambda: not ann.central.feed.journals.covered and not ann.central.feed.seats.covered)
            assert not results
            await to_thread.run_sync(proxy.blackhole, False)
        assert tickets(results[0]) == [ticket]


async def test_many_calls_to_a_silent_central_fail_together_and_nobody_else_notices(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A black hole: one after the other they would wait for hours, and the calls of others behind them."""
    monkeypatch.setattr(client_module, "SILENCE", 1.0)
    monkeypatch.setattr(pool_module, "SILENT_PATIENCE", 0.3)
    monkeypatch.setattr(reach_module, "LAST_RETRY", 0.2)
    failures: list[Unreachable] = []

    async def ask(ours: Pool, party: str) -> None:
        with on_behalf_of(party):
            try:
                await ours.read("board_list", {})
            except Unreachable as error:
                failures.append(error)

    async def ask_until(ours: Pool, cancelled: anyio.CancelScope) -> None:
        with cancelled:
            await ask(ours, "gives up")

    async with (
        waiting(proxy.url, central.worker("ann", board), board) as ann,
        waiting(central.url, central.worker("bob", board), board, "bob") as bob,
    ):
        head = await ann.caught_up()
        ours = ann.central.pool
        async with blocking(ann, head, timeout_s=60) as results, blocking(bob, head) as others:
            await to_thread.run_sync(proxy.blackhole)
            before = proxy.mark()
            cancelled = anyio.CancelScope()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask_until, ours, cancelled)
                for number in range(120):
                    tasks.start_soon(ask, ours, "few" if number % 40 == 0 else "many")
                await eventually(lambda: ours.counters.in_flight == CALLS)
                await bob.caught_up()  # through another pool
                cancelled.cancel()
            assert len(failures) == 120  # whoever gave up got nothing
            assert {error.silent for error in failures} == {True}
            assert ours.counters.in_flight == 0
            assert state_of(ann) == "unreachable"
            ticket = await make(central, board, "nobody hears of it")
            assert not results
            await to_thread.run_sync(proxy.blackhole, False)
            await eventually(lambda: results and others)
            assert proxy.count("board_list", before) <= CALLS + 1  # the rest was not sent
            await ask(ours, "many")
        assert len(failures) == 120
        assert tickets(results[0]) == tickets(others[0]) == [ticket]


def state_of(ann: Waiting) -> str:
    return ann.central.status().state
