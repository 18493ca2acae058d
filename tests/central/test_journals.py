"""A real journal that is not what the caller remembers: compacted past its place, or numbered anew (central.md §6.2, §6.5)."""

from typing import Any

import pytest
from anyio import to_thread

from central.feeding import eventually
from central.waiting import Waiting, blocking, make, tickets, waiting
from pursersd.feed import board as board_module
from pursersd.seats.holder import Holder
from pursersd.seats.seat import SeatRequest
from rig import journal
from rig.central import ADMIN_SEAT, WORKER_SCOPE, Central, ToolFailed
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio

KEPT = 500
"""Rows that Central keeps at least."""

STALE = "stale or missing board generation"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def windows(ann: Waiting) -> dict[str, int]:
    return {window.name: window.count for window in ann.central.pool.windows.snapshot() if window.count}


def codes(result: dict[str, Any]) -> list[str]:
    return [warning.get("window", warning["code"]) for warning in result.get("warnings", ())]


def compact(central: Central, board: str) -> int:
    """Let so much be written that Central may forget what there was, and have it forgotten; up to which row."""
    journal.grow(central, board, KEPT + 20)
    done = central.call(central.admin, "journal_compact", board_id=board, retain_last=KEPT)
    return int(done["compacted_through"])


# --- compacted --------------------------------------------------------------------------------------------------------


async def test_a_journal_that_is_compacted_past_a_wait_whose_stream_was_cut(
    central: Central, proxy: Proxy, board: str
) -> None:
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results:
            await to_thread.run_sync(proxy.refuse)
            await to_thread.run_sync(proxy.reset_all)
            assert await to_thread.run_sync(compact, central, board) > head
            await to_thread.run_sync(proxy.refuse, False)
            await eventually(lambda: windows(ann) == {"LW-RESYNC": 1})
            await eventually(lambda: ann.is_blocking)
            assert not results
            ticket = await make(central, board, "after the compaction")
        (result,) = results
        assert tickets(result) == [ticket]
        assert (result["mode"], result["resynced"], codes(result)) == ("push", True, ["LW-RESYNC"])
        assert result["new_seq"] == central.head(board)
        again = await ann.wait(result["new_seq"], 1)
        assert (again["resynced"], codes(again)) == (False, [])


async def test_work_whose_event_was_compacted_ends_the_wait_that_missed_it(
    central: Central, proxy: Proxy, board: str
) -> None:
    """Not only at the next look at the open work."""
    seldom = {"PURSERS_BACKLOG_SCAN_INTERVAL_S": "3600"}
    async with waiting(proxy.url, central.worker("ann", board), board, environ=seldom) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results:
            await to_thread.run_sync(proxy.refuse)
            await to_thread.run_sync(proxy.reset_all)
            ticket = await make(central, board, "its event is forgotten")
            await to_thread.run_sync(compact, central, board)
            await to_thread.run_sync(proxy.refuse, False)
            await eventually(lambda: results)
        (result,) = results
        assert tickets(result) == [ticket]
        assert (result["resynced"], codes(result), result["timed_out"]) == (True, ["LW-RESYNC"], False)
        assert result["new_seq"] == central.head(board)


async def test_a_caller_that_comes_back_with_a_place_that_was_compacted(central: Central, board: str) -> None:
    """It is told so, goes on at the end, and gets the open work in the same answer."""
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        ticket = await make(central, board, "made while it was away")
        assert await to_thread.run_sync(compact, central, board) > head
        result = await ann.wait(head)
        assert tickets(result) == [ticket]
        assert (result["resynced"], codes(result), result["new_seq"]) == (True, ["LW-RESYNC"], central.head(board))
        assert windows(ann) == {"LW-RESYNC": 1}
        async with blocking(ann, result["new_seq"], timeout_s=60) as results:
            following = await make(central, board, "the next one")
        assert (tickets(results[0]), results[0]["resynced"]) == ([following], False)


async def test_a_caller_without_a_place_is_told_once(central: Central, board: str) -> None:
    """Central remembers its place, and is told the new one when the host has the result."""
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        await make(central, board, "seen")
        await ann.wait()
        await ann.acknowledge()
        await to_thread.run_sync(compact, central, board)
        assert (await ann.wait(timeout_s=2))["resynced"]
        await ann.acknowledge()
        result = await ann.wait(timeout_s=1)
        assert (result["resynced"], result["timed_out"], codes(result)) == (False, True, [])
        assert windows(ann) == {"LW-RESYNC": 1}


# --- numbered anew ----------------------------------------------------------------------------------------------------


@pytest.fixture
def fenced(central: Central, board: str) -> str:
    """A board that was imported, as 0.1.8 would keep it, which has no import itself."""
    journal.fence(central, board)
    with pytest.raises(ToolFailed, match=STALE):
        central.create_ticket(board, "without a generation")
    return board


def make_there(central: Central, board: str, title: str) -> str:
    """A ticket on a fenced board."""
    joined = central.call(central.admin, "board_join", board_id=board, agent_name=ADMIN_SEAT, allow_takeover=True)
    return central.create_ticket(board, title, expected_generation=joined["generation_token"])


async def test_a_journal_that_is_numbered_anew_while_a_wait_blocks(
    central: Central, fenced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The keepalive join of the board tells of it; the wait goes on at the end of the journal that it is then."""
    monkeypatch.setattr(board_module, "SWEEP", 0.3)
    async with waiting(central.url, central.mint("ann", WORKER_SCOPE, fenced), fenced) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results:
            await to_thread.run_sync(journal.advance_generation, central, fenced)
            await eventually(lambda: windows(ann) == {"LW-RESYNC": 1})
            await eventually(lambda: ann.is_blocking)
            assert not results
            ticket = await to_thread.run_sync(make_there, central, fenced, "in the next generation")
        (result,) = results
        assert tickets(result) == [ticket]
        assert (result["mode"], result["resynced"], codes(result)) == ("push", True, ["LW-RESYNC"])
        again = await ann.wait(result["new_seq"], 1)
        assert (again["resynced"], windows(ann)) == (False, {"LW-RESYNC": 1})


async def test_a_new_generation_is_told_to_each_wait_once_whoever_hears_of_it(central: Central, fenced: str) -> None:
    """Two seats; the second one waited before, and not when it changed: it is told, too, when it waits again."""
    async with waiting(central.url, central.mint("ann", WORKER_SCOPE, fenced), fenced) as ann:
        bob = Waiting(ann.central, fenced, "bob")
        head = await bob.caught_up()
        await bob.wait(head, 1)
        async with blocking(ann, head, timeout_s=60) as results:
            await to_thread.run_sync(journal.number_anew, central, fenced)
            await ann.central.seats.keepalive(ann.boards[0].waiter.seat)
            await eventually(lambda: windows(ann) == {"LW-RESYNC": 1})
            async with blocking(bob, head, timeout_s=60) as others:
                await eventually(lambda: ann.is_blocking and bob.is_blocking)
                assert not results
                ticket = await to_thread.run_sync(make_there, central, fenced, "for both")
            assert (tickets(others[0]), others[0]["resynced"]) == ([ticket], True)
        assert (tickets(results[0]), results[0]["resynced"]) == ([ticket], True)
        for each in (ann, bob):
            assert not (await each.wait(central.head(fenced), 1))["resynced"]
        assert windows(ann) == {"LW-RESYNC": 2}


async def test_what_was_delivered_is_acknowledged_in_its_own_generation_only(central: Central, fenced: str) -> None:
    """In another one the number is another place: nothing is moved there (RB-RPL-001)."""
    token = central.mint("ann", WORKER_SCOPE, fenced)

    def acknowledged() -> int:
        read = {"board_id": fenced, "agent_name": "ann", "cursor": 0, "touch": False}
        return int(central.call(token, "board_catchup", **read)["acknowledged_cursor"])

    async with waiting(central.url, token, fenced) as ann:
        await to_thread.run_sync(make_there, central, fenced, "the first")
        first = await ann.wait()
        await ann.acknowledge()
        assert acknowledged() == first["new_seq"]
        await to_thread.run_sync(make_there, central, fenced, "the second")
        await ann.wait()
        await to_thread.run_sync(journal.number_anew, central, fenced)
        await ann.acknowledge()
        assert acknowledged() == first["new_seq"]


async def test_a_lease_is_kept_over_a_new_generation(central: Central, proxy: Proxy, fenced: str) -> None:
    """Each renewal names the generation; that it changed costs a join and no lease."""
    token = central.mint("ann", WORKER_SCOPE, fenced)
    async with waiting(proxy.url, token, fenced) as ann:
        seat = await ann.central.seats.join(SeatRequest(fenced, "ann", "worker"), "test")
        ticket = await to_thread.run_sync(make_there, central, fenced, "held")
        holder = Holder("test")
        ann.central.leases.enter(holder)
        named = {"board_id": fenced, "agent_name": "ann", "ticket_id": ticket}

        def claim() -> None:
            ttl = {"claim_ttl_s": 5, "expected_generation": seat.generation}
            central.call(central.admin, "board_claim_ttl_set", board_id=fenced, agent_name=ADMIN_SEAT, **ttl)
            central.call(token, "ticket_claim", **named, expected_generation=seat.generation)

        await to_thread.run_sync(claim)
        holder.use(seat)
        await ann.central.seats.keepalive(seat)  # tells of the claim
        with holder.calling():
            joins, renewals = proxy.count("board_join"), proxy.count("lease_renew")
            await to_thread.run_sync(journal.number_anew, central, fenced)
            await eventually(lambda: proxy.count("board_join") > joins)
            await eventually(
                lambda: proxy.count("lease_renew") > renewals + 1
            )  # the refused one, and one after the join
        assert not holder.cues(seat.agent_id)
        assert not windows(ann)
        held = central.call(token, "ticket_get", board_id=fenced, ticket_id=ticket)["ticket"]
        assert (held["status"], held["claimed_by"]) == ("claimed", "ann")


# --- what digests make of it ------------------------------------------------------------------------------------------


class Silent:
    """A follower of boards who does nothing with what it is told."""

    def news(self, boards: frozenset[str]) -> None:
        pass

    def registry_changed(self) -> None:
        pass

    def ended(self) -> None:
        pass


async def test_a_digest_of_a_compacted_journal_has_what_is_left_and_says_what_is_missing(
    central: Central, proxy: Proxy, board: str
) -> None:
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        seat = await ann.central.seats.join(SeatRequest(board, "ann", "worker"), "test")
        digest = ann.central.digest
        with digest.follow(Silent(), board, [seat]) as places:
            await digest.caught_up(places.values())
            await to_thread.run_sync(proxy.refuse)
            await to_thread.run_sync(proxy.reset_all)
            await make(central, board, "forgotten")
            compacted = await to_thread.run_sync(compact, central, board)
            ticket = await make(central, board, "left")
            await to_thread.run_sync(proxy.refuse, False)
            await eventually(lambda: digest.listens(board))
            assert await digest.caught_up(places.values())
            events = digest.events(places, {board: 0})
            assert [event["seq"] for event in events] == list(range(compacted + 1, central.head(board) + 1))
            assert events[-1]["ticket_id"] == ticket
            assert digest.missing(places[board], 1) == compacted
            assert windows(ann) == {"LW-RESYNC": 1}
