"""Central's bad days: what a waiting model sees (usually nothing), what status says meanwhile, and that it ends by itself.

More of them: test_wait_faults, test_feed. docs/reliability.md has the times that these were measured to take.
"""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import anyio
import pytest
from anyio import to_thread

from central.feeding import eventually
from central.waiting import Waiting, blocking, make, tickets, waiting
from pursersd.central import client as client_module
from pursersd.central import reach as reach_module
from pursersd.central import streams
from pursersd.feed import feed as feed_module
from rig.central import ADMIN_SEAT, Central
from rig.proxy import Proxy

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """We ask whether Central is there ten times a second."""
    monkeypatch.setattr(feed_module, "KNOCK", 0.1)


def state(ann: Waiting) -> str:
    return ann.central.status().state


def windows(ann: Waiting) -> dict[str, int]:
    return {window.name: window.count for window in ann.central.pool.windows.snapshot() if window.count}


def codes(result: dict[str, Any]) -> list[str]:
    return [warning.get("window", warning["code"]) for warning in result.get("warnings", ())]


@contextmanager
def right_again(fault: str) -> Iterator[None]:
    """Says how long the block took: from the end of a fault to the event in the model's hands."""
    began = time.perf_counter()
    yield
    print(f"{fault}: right again in {time.perf_counter() - began:.2f} s")


# --- it goes away -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("brisk")
async def test_a_central_that_wants_to_stop_is_let_go_also_when_nobody_asks_anything(
    central: Central, board: str
) -> None:
    """Its open streams keep pinging and hide that it listens no more (central.md §1.3)."""
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results:
            process = central.process
            assert process is not None
            process.terminate()
            await eventually(lambda: process.poll() is not None)
            assert state(ann) == "unreachable"
            assert not results
            await to_thread.run_sync(central.start)
            with right_again("SIGTERM, then started"):
                ticket = await make(central, board, "from the next Central")
                await eventually(lambda: results)
        assert tickets(results[0]) == [ticket]


@pytest.mark.parametrize("status", [503, 404, 409])
async def test_a_server_error_for_a_while(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """Central's own, or those of a proxy that has nothing behind it, or finds that there is a stream already."""
    monkeypatch.setattr(reach_module, "LAST_RETRY", 0.2)
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            await to_thread.run_sync(proxy.fail, status)
            await to_thread.run_sync(proxy.cut_streams)
            ticket = await make(central, board, "while nobody can be asked")
            await eventually(lambda: f"HTTP {status}" in str(ann.central.status().detail))
            assert state(ann) == "unreachable"
            await eventually(lambda: proxy.count("server/discover") > 1)
            before = proxy.mark()
            await eventually(lambda: proxy.count("server/discover", before) > 3)
            assert set(proxy.names(before)) == {"server/discover"}  # one probe asks for both streams and all reads
            assert not results
            await to_thread.run_sync(proxy.fail, None)
            with right_again(str(status)):
                await eventually(lambda: results)
        assert tickets(results[0]) == [ticket]
        assert (results[0]["mode"], state(ann)) == ("push", "ready")


async def test_streams_that_are_open_and_dead(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half-open: everything else is answered, so nothing but their silence tells."""
    monkeypatch.setattr(client_module, "SILENCE", 1.0)
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            assert await to_thread.run_sync(proxy.half_open) == 2
            with right_again("half-open, besides the silence of 45 s"):
                ticket = await make(central, board, "nobody is cued")
                await eventually(lambda: results)
        assert tickets(results[0]) == [ticket]
        assert ann.central.status().reconnects >= 1


async def test_after_a_sleep_of_the_machine_nothing_is_trusted(central: Central, proxy: Proxy, board: str) -> None:
    """The streams died unseen: with no more than their silence to go by it would take 45 s."""
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            await to_thread.run_sync(proxy.half_open)
            ticket = await make(central, board, "while we slept")
            before = proxy.mark()
            with right_again("sleep"):
                await ann.central.feed.woke()
                await eventually(lambda: results)
        assert tickets(results[0]) == [ticket]
        assert proxy.seen(since=before)[0].name == "server/discover"
        assert proxy.count("server/discover", before) == 1


async def test_after_a_sleep_the_network_may_come_later(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reach_module, "LAST_RETRY", 0.2)
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            await to_thread.run_sync(proxy.refuse)
            await to_thread.run_sync(proxy.half_open)
            ticket = await make(central, board, "while we slept")
            await ann.central.feed.woke()
            await eventually(lambda: state(ann) == "unreachable")
            await to_thread.run_sync(proxy.refuse, False)
            await eventually(lambda: results)
        assert tickets(results[0]) == [ticket]


async def test_an_overflowed_stream_is_counted_and_loses_nothing(central: Central, proxy: Proxy, board: str) -> None:
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:

            def overflow() -> str:
                proxy.overflow()
                return central.create_ticket(board, "while cues were dropped")

            ticket = await to_thread.run_sync(overflow)
            with right_again("overflow"):
                await eventually(lambda: results)
        assert tickets(results[0]) == [ticket]
        assert windows(ann) == {"LW-OVERFLOW": 1} or windows(ann) == {"LW-OVERFLOW": 2}


# --- it does not accept us --------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("brisk")
async def test_a_credential_that_is_withdrawn_and_given_back(central: Central, board: str) -> None:
    """Its streams outlive it (central.md §4.6): a wait goes on as long as nothing must be asked, and status says so."""
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        keys = central.jwks.read_text()
        async with blocking(ann, head) as results:
            await eventually(lambda: all(feed.is_quiet for feed in ann.central.feed.boards.values()))
            central.jwks.write_text(json.dumps({"keys": []}))
            try:
                await eventually(lambda: state(ann) == "refused")
                assert not results
            finally:
                central.jwks.write_text(keys)
            await eventually(lambda: state(ann) == "ready")
            ticket = await make(central, board, "accepted again")
        assert tickets(results[0]) == [ticket]


async def test_a_withdrawn_credential_ends_the_wait_when_something_must_be_read(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        keys = central.jwks.read_text()
        async with blocking(ann, head) as results:
            ticket = await make_and_withdraw(central, board)
            await eventually(lambda: results)
        (result,) = results
        assert (result["mode"], result["new_seq"], result["error"]["cause_class"]) == ("error", head, "authentication")
        assert "Get a new token" in result["error"]["detail"]
        assert state(ann) == "refused"
        again = await ann.wait(head)
        assert again["error"]["cause_class"] == "authentication"
        central.jwks.write_text(keys)
        assert tickets(await ann.wait(head)) == [ticket]
        assert state(ann) == "ready"


async def make_and_withdraw(central: Central, board: str) -> str:
    """A ticket of which everybody is cued, and no key that Central takes when they come to ask."""

    def both() -> str:
        keys = json.loads(central.jwks.read_text())["keys"]
        ticket = central.create_ticket(board, "too late")
        central.jwks.write_text(json.dumps({"keys": []}))
        assert keys
        return ticket

    return await to_thread.run_sync(both)


async def test_a_rotated_key_is_nothing_while_the_old_one_counts(central: Central, board: str) -> None:
    async with waiting(central.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            await to_thread.run_sync(central.maintain, "rotate-key")
            ticket = await make(central, board, "signed by the next key")
        assert tickets(results[0]) == [ticket]


async def test_a_membership_that_is_restored_counts_at_once(central: Central, board: str) -> None:
    async with waiting(central.url, central.mint("bob", "board:read board:write"), board, "bob") as bob:
        head = await bob.caught_up()
        async with blocking(bob, head) as results:
            gone: dict[str, Any] = {"agent_name": ADMIN_SEAT, "principal_id": central.principal_id("bob")}
            await to_thread.run_sync(lambda: central.call(central.admin, "board_member_remove", board_id=board, **gone))
        assert results[0]["error"]["cause_class"] == "authorization"
        await to_thread.run_sync(central.admit, board, "bob")
        ticket = await make(central, board, "for members")
        with right_again("membership"):
            assert ticket in tickets(await bob.wait(head))


async def test_a_credential_that_is_refused_is_not_asked_with_every_second(
    central: Central, proxy: Proxy, board: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "FIRST_RETRY", 0.001)
    monkeypatch.setattr(streams, "LAST_RETRY", 0.001)
    async with waiting(proxy.url, central.worker("ann", board), board) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head) as results:
            before = proxy.mark()
            await to_thread.run_sync(proxy.fail, 401)
            await to_thread.run_sync(proxy.cut_streams)
            await eventually(lambda: results)
            assert results[0]["error"]["cause_class"] == "authentication"
        await anyio.wait_all_tasks_blocked()
        assert proxy.count(since=before) < 8
        await to_thread.run_sync(proxy.fail, None)
        await ann.wait(head, 1)
        await eventually(lambda: ann.central.feed.journals.covered)


# --- it is another one ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own() -> Iterator[Central]:
    """A Central whose data a test may change."""
    with Central() as central:
        yield central


@pytest.fixture
def alpha(own: Central) -> str:
    """A fresh board of it."""
    name = f"alpha-{own.board_count()}"
    own.create_board(name, {"ann": "member"})
    return name


def replace(own: Central) -> None:
    """Another Central with the same keys and boards takes its place."""
    own.kill()
    own.maintain("fork-instance")
    own.start()


async def test_another_central_at_the_same_address(own: Central, alpha: str) -> None:
    """Nothing says that its journal is the one in which the caller has its place."""
    async with waiting(own.url, own.worker("ann", alpha), alpha) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results:
            await to_thread.run_sync(replace, own)
            await eventually(lambda: windows(ann) == {"LW-RESYNC": 1})
            await eventually(lambda: ann.is_blocking)
            ticket = await make(own, alpha, "on the other one")
        (result,) = results
        assert tickets(result) == [ticket]
        assert result["resynced"]
        assert [warning["window"] for warning in result["warnings"]] == ["LW-RESYNC"]
        assert "LW-RESYNC" in result["warnings"][0]["message"]


async def test_another_central_while_nobody_waited(own: Central, alpha: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No stream told that it went away: whoever waits again is told, however many come before it, and once."""
    monkeypatch.setattr(feed_module, "LINGER", 0.0)
    async with waiting(own.url, own.worker("ann", alpha), alpha) as ann:
        bob = Waiting(ann.central, alpha, "bob")
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results, blocking(bob, head, timeout_s=60):
            await make(own, alpha, "on the first one")
        await eventually(lambda: not ann.central.feed.journals.is_open)
        await to_thread.run_sync(replace, own)
        await make(own, alpha, "on the other one, before the waits")
        assert not (await Waiting(ann.central, alpha, "new").wait(timeout_s=1))["resynced"]
        for late in (ann, bob):
            result = await late.wait(results[0]["new_seq"])
            assert (result["resynced"], codes(result)) == (True, ["LW-RESYNC"])
            assert result["new_seq"] == own.head(alpha)
            assert not (await late.wait(result["new_seq"], 1))["resynced"]
        assert (windows(ann)["LW-RESYNC"], state(ann)) == (2, "ready")
        assert ann.central.status().replaced_s is not None


async def test_another_central_than_the_expected_one(own: Central, alpha: str) -> None:
    expected = own.health()["instance_id"]
    async with waiting(own.url, own.worker("ann", alpha), alpha, instance_id=expected) as ann:
        head = await ann.caught_up()
        async with blocking(ann, head, timeout_s=60) as results:
            await to_thread.run_sync(replace, own)
            await eventually(lambda: results)
        assert results[0]["error"]["cause_class"] == "configuration"
        assert results[0]["new_seq"] == head


async def test_a_central_that_was_restored_from_a_backup(own: Central, alpha: str) -> None:
    """Its journal ends before the place of the caller."""
    board_file, backup = own.instance / "data" / "board.sqlite3", own.folder / "backup"
    own.call(own.worker("ann", alpha), "board_join", board_id=alpha, agent_name="ann")
    with closing(sqlite3.connect(board_file)) as live, closing(sqlite3.connect(backup)) as copy:
        live.backup(copy)
    async with waiting(own.url, own.worker("ann", alpha), alpha) as ann:
        for title in ("not in the backup", "nor this one"):
            await make(own, alpha, title)
        cursor = (await ann.wait())["new_seq"]
        assert cursor == own.head(alpha)

        def restore() -> None:
            own.kill()
            for part in board_file.parent.glob(f"{board_file.name}*"):
                part.unlink()
            backup.rename(board_file)
            own.start()

        async with blocking(ann, cursor, timeout_s=60) as results:
            await to_thread.run_sync(restore)
            await eventually(lambda: windows(ann) == {"LW-RESYNC": 1})
            await eventually(lambda: ann.is_blocking)
            ticket = await make(own, alpha, "after the restoration")
        assert tickets(results[0]) == [ticket]
        assert (results[0]["resynced"], results[0]["new_seq"]) == (True, own.head(alpha))
