"""a2a_wait's engine on a real Central: nothing is lost, nothing moves too far, and every end says what happened."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio import to_thread

from central.feeding import PATIENCE, eventually, pool
from central.waiting import Waiting
from pursersd.central import client as client_module
from pursersd.central import streams
from pursersd.errors import ToolFailed, Unauthenticated, Unreachable
from pursersd.feed import board as board_module
from pursersd.waits.board import BoardWait
from rig.central import ADMIN_SEAT, Central, ticket_fields
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@asynccontextmanager
async def waiting(url: str, token: str, board: str, name: str = "ann", **options: Any) -> AsyncIterator[Waiting]:
    async with pool(url, token) as ours:
        yield Waiting(ours, board, name, **options)


@asynccontextmanager
async def blocking(ann: Waiting, since_seq: int | None, timeout_s: int = 20, **given: Any) -> AsyncIterator[list[Json]]:
    """A wait that blocks during the block; its result is in the list after it, at most PATIENCE later."""
    results: list[Json] = []

    async def wait() -> None:
        results.append(await ann.wait(since_seq, timeout_s, **given))

    with anyio.fail_after(timeout_s + PATIENCE):
        async with anyio.create_task_group() as tasks:
            ann.boards = []
            tasks.start_soon(wait)
            await eventually(lambda: ann.is_blocking)
            yield results


async def make(central: Central, board: str, title: str) -> str:
    return await to_thread.run_sync(central.create_ticket, board, title)


def tickets(result: Json) -> list[str]:
    return [event["ticket_id"] for event in result["events"]]


def acknowledged(central: Central, token: str, board: str, name: str = "ann") -> int:
    """The cursor that Central keeps for a seat."""
    page = central.call(token, "board_catchup", board_id=board, agent_name=name, cursor=0, limit=1, touch=False)
    return int(page["acknowledged_cursor"])


# --- the cursors (D28, RB-SEQ) ----------------------------------------------------------------------------------------


async def test_an_acknowledgement_goes_exactly_to_the_last_event_told(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    async with waiting(central.url, token, board) as ann:
        first = await make(central, board, "told")
        result = await ann.wait()
        assert tickets(result) == [first]
        assert acknowledged(central, token, board) == 0  # nothing moves before the delivery
        second = await make(central, board, "since then")
        await ann.acknowledge()
        assert acknowledged(central, token, board) == result["new_seq"] < central.head(board)
        again = await ann.wait()
        assert tickets(again) == [second]
        assert again["new_seq"] == central.head(board)


async def test_what_was_not_delivered_comes_again(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        ticket = await make(central, board, "lost on the way")
        for _ in range(2):
            assert tickets(await ann.wait()) == [ticket]


async def test_an_explicit_cursor_leaves_centrals_alone(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    async with waiting(central.url, token, board) as ann:
        await make(central, board, "one")
        result = await ann.wait(0)
        assert result["new_seq"] == central.head(board)
        assert ann.waited is not None
        assert ann.waited.acknowledge is None
        assert acknowledged(central, token, board) == 0


async def test_a_live_event_moves_the_cursor_to_itself(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    async with waiting(central.url, token, board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, None) as results:
            ticket = await make(central, board, "live")
        (result,) = results
        assert tickets(result) == [ticket]
        assert (result["mode"], result["reason"], result["timed_out"]) == ("push", "broadcast", False)
        assert head < result["new_seq"] <= central.head(board)
        assert result["waited_s"] < 5  # told by the cue and not by the next scan (D1)
        await ann.acknowledge()
        assert acknowledged(central, token, board) == result["new_seq"]


async def test_a_cancelled_wait_leaves_everything_as_it_was(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    async with waiting(central.url, token, board) as ann:
        await ann.caught_up()
        with anyio.move_on_after(0) as scope:
            scope.cancel()
            await ann.wait()
        async with anyio.create_task_group() as tasks:
            ann.boards = []
            tasks.start_soon(ann.wait)
            await eventually(lambda: ann.is_blocking)
            tasks.cancel_scope.cancel()
        assert not ann.central.feed.boards[board].waiters
        ticket = await make(central, board, "after it")
        assert acknowledged(central, token, board) == 0
        assert tickets(await ann.wait()) == [ticket]


async def test_a_deadline_in_the_middle_of_judging_loses_nothing(central: Central, proxy: Proxy, board: str) -> None:
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        await to_thread.run_sync(proxy.hold, "ticket_get")
        async with blocking(ann, head, timeout_s=2) as results:
            ticket = await make(central, board, "hard to judge")
            await eventually(lambda: proxy.holding("ticket_get"))
        (late,) = results
        assert (late["timed_out"], late["events"], late["new_seq"]) == (True, [], head)
        await to_thread.run_sync(proxy.release, "ticket_get")
        assert tickets(await ann.wait(late["new_seq"])) == [ticket]


@pytest.mark.parametrize("omitted", [True, False])
async def test_a_deadline_at_the_entry_moves_nothing(central: Central, proxy: Proxy, board: str, omitted: bool) -> None:
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        await ann.central.seats.join(ann._caller().seat_request(board, None))
        ticket = await make(central, board, "not read in time")
        await to_thread.run_sync(proxy.hold, "board_catchup")
        late = await ann.wait(None if omitted else 1, timeout_s=1)
        # A number in the place of an omitted cursor would bring all the history again (D2).
        assert late["new_seq"] == (None if omitted else 1)
        assert (late["partial"], late["timed_out"], late["events"]) == (True, False, [])
        assert late["reason"] == "partial"
        assert ann.waited is not None
        assert ann.waited.acknowledge is None
        await to_thread.run_sync(proxy.release, "board_catchup")
        assert tickets(await ann.wait(late["new_seq"])) == [ticket]


async def test_a_cursor_beyond_the_journal_is_put_to_its_end(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        result = await ann.wait(10**6, age_s=19.5)
        head = central.head(board)
        assert result["new_seq"] == head
        assert result["warnings"] == [
            {"code": "cursor_ahead_clamped", "requested_cursor": 10**6, "clamped_cursor": head}
        ]


async def test_a_history_without_a_cursor_is_compacted(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        made = [await make(central, board, f"number {number}") for number in range(3)]
        result = await ann.wait()
        assert tickets(result) == made
        assert (result["compacted"], result["dropped"]) == (True, 0)
        assert result["event_counts"] == {"ticket_created": 3}
        assert "compacted" not in await ann.wait(result["new_seq"] - 1)


# --- open work --------------------------------------------------------------------------------------------------------


async def test_open_work_is_shown_once_and_again_after_a_while(central: Central, board: str) -> None:
    ticket = await make(central, board, "open")
    environ = {"PURSERS_BACKLOG_RESURFACE_INTERVAL_S": "1.2"}
    async with waiting(central.url, central.worker("ann", board), board, environ=environ) as ann:
        head = (await ann.wait())["new_seq"]
        began = time.monotonic()
        again = await ann.wait(head, timeout_s=5)
        assert tickets(again) == [ticket]
        assert (again["reason"], again["events"][0]["source"]) == ("backlog", "backlog_scan")
        assert again["new_seq"] == head
        assert 0.5 < time.monotonic() - began < 4


async def test_another_conversation_sees_open_work_of_its_own(central: Central, board: str) -> None:
    ticket = await make(central, board, "open")
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = (await ann.wait())["new_seq"]
        other = Waiting(ann.central, board, "other")
        assert tickets(await other.wait(head)) == [ticket]


async def test_looking_for_open_work_costs_nothing_while_nothing_happens(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = 0
    scan = BoardWait.scan

    async def counted(self: BoardWait) -> Any:
        nonlocal scans
        scans += 1
        return await scan(self)

    monkeypatch.setattr(BoardWait, "scan", counted)
    environ = {"PURSERS_BACKLOG_SCAN_INTERVAL_S": "0.05"}
    async with waiting(proxy.url, central.worker("ann", board), board, environ=environ) as ann:
        await make(central, board, "shown already")
        head = (await ann.wait())["new_seq"]
        async with blocking(ann, head, timeout_s=1):
            await eventually(lambda: scans >= 2)
            before, count = proxy.mark(), scans
            await eventually(lambda: scans >= count + 5)
            assert proxy.count(None, before) == 0, proxy.names(before)


# --- time -------------------------------------------------------------------------------------------------------------


async def test_a_timeout_is_told_with_the_cursor_where_it_was(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        result = await ann.wait(head, timeout_s=1)
        assert (result["timed_out"], result["reason"], result["mode"]) == (True, "timeout", "push")
        assert (result["events"], result["new_seq"]) == ([], head)
        assert 0.9 <= result["waited_s"] < 3


async def test_a_resumed_wait_waits_for_what_remains(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        began = time.monotonic()
        result = await ann.wait(head, timeout_s=20, age_s=19.6)
        assert time.monotonic() - began < 5
        assert result["timed_out"]
        assert 19.9 <= result["waited_s"] < 25


@pytest.mark.parametrize(("age_s", "longest"), [(100.0, 1.0), (-100.0, 4.0)])
async def test_no_age_makes_a_wait_longer_than_asked_for(
    central: Central, board: str, age_s: float, longest: float
) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        began = time.monotonic()
        result = await ann.wait(head, timeout_s=1, age_s=age_s)
        assert time.monotonic() - began < longest
        assert result["new_seq"] == head


async def test_progress_is_reported_while_it_blocks(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board, progress_every_s=0.05) as ann:
        result = await ann.wait(await ann.caught_up(), age_s=19.3)
        assert result["timed_out"]
        assert 4 <= len(ann.progress) <= 14
        times = [waited for waited, _, _ in ann.progress]
        assert times == sorted(times)
        assert times[0] > 19.3  # the host counts from its request
        assert {(total, text) for _, total, text in ann.progress} == {(20, "Waiting for a Pursers subscription cue")}


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


async def test_a_token_that_expires_during_the_wait(central: Central, board: str) -> None:
    """The stream outlives it, the next read does not (central.md §4.6): the wait ends with what to do."""
    central.worker("ann", board)
    token = central.mint("ann", "board:read board:write", board, lifetime=3)
    expired = int(time.time()) + 3 + 1.1  # Central counts whole seconds
    async with waiting(central.url, token, board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=20) as results:
            await eventually(lambda: time.time() > expired)
            await make(central, board, "too late")
        (result,) = results
        assert (result["mode"], result["new_seq"], result["timed_out"]) == ("error", head, False)
        assert result["error"]["cause_class"] == "authentication"
        assert not result["error"]["retryable"]
        assert result["error"]["action"] == "repair_authentication_then_rearm_from_unchanged_cursor"
        assert result["waited_s"] < 15
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


async def test_a_seat_that_handed_off_is_told_again_by_its_next_wait(central: Central, board: str) -> None:
    """Central tells inactive seats nothing and does not say so (central.md §5): the entry must join."""
    token = central.worker("ann", board)
    ticket = await make(central, board, "in hand")
    async with waiting(central.url, token, board) as ann:
        await ann.wait()
        central.call(token, "ticket_claim", board_id=board, agent_name="ann", ticket_id=ticket)
        central.call(token, "memory_handoff", board_id=board, agent_name="ann", summary="done", next_steps=["x"])
        note = {"board_id": board, "agent_name": ADMIN_SEAT, "ticket_id": ticket, "text": "look here"}
        async with blocking(ann, await ann.caught_up() - 1) as results:
            await to_thread.run_sync(lambda: central.call(central.admin, "ticket_annotate", **note))
        assert [event["kind"] for event in results[0]["events"]] == ["ticket_annotated"]


async def test_its_own_acts_wake_nobody_but_the_others(central: Central, board: str) -> None:
    token = central.worker("ann", board)
    async with waiting(central.url, token, board) as ann:
        bob = Waiting(ann.central, board, "bob")
        heads = [await ann.caught_up(), await bob.caught_up()]
        async with blocking(ann, heads[0]) as of_ann, blocking(bob, heads[1], timeout_s=1) as of_bob:
            made = {**ticket_fields(board), "board_id": board, "agent_name": "bob", "title": "made by bob"}
            await to_thread.run_sync(lambda: central.call(token, "ticket_create", **made))
        assert (of_bob[0]["events"], of_bob[0]["timed_out"]) == ([], True)
        assert len(of_ann[0]["events"]) == 1
