"""a2a_wait's engine on a real Central: nothing is lost, nothing moves too far, and every end says what happened."""

import time
from typing import Any

import anyio
import pytest
from anyio import to_thread

from central.feeding import eventually
from central.waiting import Waiting, blocking, make, tickets, waiting
from pursersd.waits.board import BoardWait
from rig.central import ADMIN_SEAT, Central, ticket_fields
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


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
        assert result["waited_s"] < 25  # told by the cue and not by the next scan (D1)
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


async def test_what_a_compacted_history_left_out_is_counted(central: Central, board: str) -> None:
    """LW-COMPACT: of two events of a ticket that both concern the caller it gets the newer one."""
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        ticket = await make(central, board, "given back")
        bob = central.worker("bob", board)
        central.call(bob, "board_join", board_id=board, agent_name="bob")
        for tool in ("ticket_claim", "ticket_unclaim"):
            central.call(bob, tool, board_id=board, agent_name="bob", ticket_id=ticket)
        result = await ann.wait()
        assert (tickets(result), result["compacted"]) == ([ticket], True)
        assert result["event_counts"] == {"ticket_created": 1, "ticket_status_changed": 1}
        counted = {window.counter: window.count for window in ann.central.pool.windows.snapshot() if window.count}
        assert counted == {"events_compacted": 1}


# --- open work --------------------------------------------------------------------------------------------------------


async def test_open_work_is_shown_once_and_again_after_a_while(central: Central, board: str) -> None:
    ticket = await make(central, board, "open")
    environ = {"PURSERS_BACKLOG_RESURFACE_INTERVAL_S": "1.2"}
    async with waiting(central.url, central.worker("ann", board), board, environ=environ) as ann:
        head = (await ann.wait())["new_seq"]
        began = time.monotonic()
        again = await ann.wait(head, timeout_s=20)
        assert tickets(again) == [ticket]
        assert (again["reason"], again["events"][0]["source"]) == ("backlog", "backlog_scan")
        assert again["new_seq"] == head
        assert time.monotonic() - began > 0.5


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


async def test_work_that_a_scan_finds_before_its_event_is_told_by_the_event_alone(
    central: Central, proxy: Proxy, board: str
) -> None:
    """It would be told twice: as open work now, and from the journal by the next call."""
    environ = {"PURSERS_BACKLOG_SCAN_INTERVAL_S": "0.1"}
    async with waiting(proxy.url, central.worker("ann", board), board, environ=environ) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            before = proxy.mark()
            proxy.hold("board_catchup")
            ticket = await make(central, board, "new")
            await eventually(lambda: proxy.count("ticket_list", before))
            await eventually(lambda: ann.boards[0].scans_again)
            proxy.release("board_catchup")
        (event,) = results[0]["events"]
        assert (event["kind"], event["ticket_id"]) == ("ticket_created", ticket)
        assert tickets(await ann.wait(results[0]["new_seq"], 1)) == []


# --- time -------------------------------------------------------------------------------------------------------------


async def test_a_timeout_is_told_with_the_cursor_where_it_was(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        result = await ann.wait(head, timeout_s=1)
        assert (result["timed_out"], result["reason"], result["mode"]) == (True, "timeout", "push")
        assert (result["events"], result["new_seq"]) == ([], head)
        assert result["waited_s"] >= 0.9


async def test_a_resumed_wait_waits_for_what_remains(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        began = time.monotonic()
        result = await ann.wait(head, timeout_s=60, age_s=59.6)
        assert time.monotonic() - began < 40
        assert result["timed_out"]
        assert result["waited_s"] >= 59.9


@pytest.mark.parametrize(("age_s", "timeout_s"), [(100.0, 60), (-100.0, 1)])
async def test_no_age_makes_a_wait_longer_than_asked_for(
    central: Central, board: str, age_s: float, timeout_s: int
) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        began = time.monotonic()
        result = await ann.wait(head, timeout_s=timeout_s, age_s=age_s)
        assert time.monotonic() - began < 40
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


# --- seats ------------------------------------------------------------------------------------------------------------


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
