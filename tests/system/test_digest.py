"""Leads on a real Central: each sees its own, nothing is asked while nothing happens, and nothing is forgotten by a crash."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyio import to_thread
from mcp import Client
from mcp.shared.subscriptions import ResourceUpdated

from rig import processes
from rig.central import WORKER_SCOPE, Central
from rig.daemon import Home
from rig.doors import kid_of
from rig.proxy import Proxy
from rig.shim import ShimProcess
from rig.speaker import modern_meta
from rig.wait import until
from system.scene import PATIENCE, Converse
from system.test_crash import crash
from system.test_official_client import Tap, run
from system.test_rotation import Office

UPDATED = "notifications/resources/updated"
META = modern_meta()
FIFTY = 50

DIES_ONCE = """
import os, signal, sys
from pursersd.state.digests import DigestFile
change = DigestFile.change
def dies(self, *arguments):
    changed = change(self, *arguments)
    if changed[1].get("cursor_map"):
        os.kill(os.getpid(), signal.SIGKILL)
    return changed
DigestFile.change = dies
from pursersd.__main__ import main
sys.exit(main())
"""
"""A daemon that ends when an acknowledgement is on disk and not answered."""


def tickets(digest: dict[str, Any]) -> set[str]:
    """The ids of a digest's tickets."""
    return {ticket["ticket_id"] for ticket in digest["tickets"]}


def updates(shim: ShimProcess) -> list[dict[str, Any]]:
    """What the host was told of resources."""
    return [x["params"] for x in shim.notifications if x["method"] == UPDATED]


def test_two_leads_hide_nothing_from_each_other(central: Central, home: Home, board: str, converse: Converse) -> None:
    """D20: of one credential and one home board, each has acknowledgements, watches and news of its own."""
    ann, bob = converse("lead-1"), converse("lead-2")
    first = central.create_ticket(board, "One", tags=["red"])
    assert tickets(ann.call_tool("board_digest")) == tickets(bob.call_tool("board_digest")) == {first}
    ann.call_tool("board_digest_ack")
    ann.call_tool("board_watch", {"tags": ["red"]})
    assert tickets(ann.call_tool("board_digest")) == set()
    theirs = bob.call_tool("board_digest")
    assert tickets(theirs) == {first}
    assert not theirs["tickets"][0]["watched"]
    other_window = converse("lead-1")  # the same seat is the same identity
    assert tickets(other_window.call_tool("board_digest")) == set()
    again = other_window.call_tool("board_digest", {"since": 0})
    assert again["tickets"][0]["watched"]
    file = home.folder / "state" / f"orchestrator_state_{board}.identities.json"
    assert len(json.loads(file.read_text())["identities"]) == 2


def test_several_boards_are_followed_as_the_registry_says(central: Central, home: Home, board: str) -> None:
    second, closed = f"{board}-second", f"{board}-closed"
    central.create_board(second)
    central.create_board(closed)
    for name in (board, second):
        central.admit(name, "lea")
    token = central.mint("lea", WORKER_SCOPE)
    tickets_by_board = {name: central.create_ticket(name, "Hello") for name in (board, second)}
    shim = home.shim(home.environment(central.url, token, board, "lea"))
    shim.initialize()
    assert set(shim.call_tool("board_digest")["cursor_map"]) == {board}
    projects = {name: {"board_id": name, "work_dir": "/srv", "status": "active"} for name in (second, closed)}
    registry = json.dumps({"schema_version": 1, "projects": projects})
    central.call(
        central.admin, "board_state_update", board_id=board, agent_name="boss", key="project_registry", value=registry
    )

    def followed() -> bool:
        return set(shim.call_tool("board_digest")["cursor_map"]) == {board, second}

    until(followed, PATIENCE, "the new board is followed, and the one that lets nobody in is not")
    digest = shim.call_tool("board_digest", {"since": 0})
    assert tickets(digest) == set(tickets_by_board.values())
    assert digest["data_status"] == "current"
    shim.call_tool("board_digest_ack", {"cursor_map": {second: digest["cursor_map"][second]}})
    assert tickets(shim.call_tool("board_digest")) == {tickets_by_board[board]}


def test_nothing_is_asked_while_nothing_happens(
    central: Central, home: Home, board: str, converse: Converse, proxy: Proxy
) -> None:
    """D13. And one event costs one read for all conversations of a seat, as long as nobody looks."""
    shims = [converse("lead", url=proxy.url) for _ in range(3)]
    for shim in shims:
        shim.call_tool("board_digest")
    for shim in shims:
        shim.call_tool("board_digest")
    mark = proxy.mark()
    for shim in shims:
        assert shim.call_tool("board_digest")["data_status"] == "current"
        shim.call_tool("board_watch", {"tags": "red"})
        shim.call_tool("board_digest_ack")
    assert proxy.names(mark) == {}
    told = [len(updates(shim)) for shim in shims]
    made = central.create_ticket(board, "Something")
    for shim, before in zip(shims, told, strict=True):
        until(lambda shim=shim, before=before: len(updates(shim)) > before, PATIENCE, "the host is told")  # type: ignore[misc]
    assert proxy.names(mark) == {"board_catchup": 1}
    assert [tickets(shim.call_tool("board_digest")) for shim in shims] == [{made}] * 3
    assert proxy.names(mark)["ticket_list"] == 1


def test_a_crash_of_the_daemon_takes_nothing_along(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    """Acknowledgements, watches, what was shown, and the following of a client of the older era, without another call."""
    shim = converse("lead")
    one = central.create_ticket(board, "One")
    shim.call_tool("board_digest")
    shim.call_tool("board_watch", {"ticket_ids": one})
    shim.call_tool("board_digest_ack")
    two = central.create_ticket(board, "Two")
    assert tickets(shim.call_tool("board_digest")) == {two}
    crash(home)
    told = len(updates(shim))
    until(lambda: len(updates(shim)) > told, PATIENCE, "the host hears that there may be news")
    told = len(updates(shim))
    three = central.create_ticket(board, "Three")
    until(lambda: len(updates(shim)) > told, PATIENCE, "the host hears of the next ticket")
    shim.call_tool("board_digest_ack")  # of what was shown, and no more
    digest = shim.call_tool("board_digest")
    assert tickets(digest) == {three}
    assert shim.call_tool("board_digest", {"since": 0})["tickets"][0]["ticket_id"] == one, "it is watched"


def test_a_subscription_of_the_newer_era_outlives_the_daemon(central: Central, home: Home, board: str) -> None:
    uri = f"board://{board}/digest"
    with listening(central, home, board, uri) as (shim, number):
        crash(home)
        until(lambda: updates(shim), PATIENCE, "the host hears that there may be news")
        told = len(updates(shim))
        central.create_ticket(board, "Two")
        until(lambda: len(updates(shim)) > told, PATIENCE, "the host is told by the next daemon")
        expected = {"uri": uri, "_meta": {"io.modelcontextprotocol/subscriptionId": number}}
        assert all(params == expected for params in updates(shim))
        assert not shim.answers(number), "the subscription goes on"


def test_the_official_client_listens_to_a_digest_over_the_end_of_the_daemon(
    central: Central, home: Home, board: str
) -> None:
    uri = f"board://{board}/digest"
    tap = Tap(home.environment(central.url, central.worker("ann", board), board, "official"))

    async def body() -> None:
        async with (
            Client(tap.transport(), mode="2026-07-28") as client,
            client.listen(resource_subscriptions=[uri]) as sub,
        ):
            events = aiter(sub)
            await to_thread.run_sync(crash, home)
            assert await anext(events) == ResourceUpdated(uri)  # there may be news
            ticket = await to_thread.run_sync(central.create_ticket, board, "for the official client")
            while ticket not in (await client.read_resource(uri)).contents[0].text:  # type: ignore[union-attr]
                assert await anext(events) == ResourceUpdated(uri)

    run(body)
    assert len(set(tap.answered)) == len(tap.answered)


def test_subscriptions_are_of_one_conversation(central: Central, home: Home, board: str) -> None:
    """Two hosts with the same board on one daemon: who cancels hears nothing more, the other one goes on."""
    uri = f"board://{board}/digest"
    with listening(central, home, board, uri) as (one, number), listening(central, home, board, uri) as (two, _):
        one.cancel(number)
        one.request("tools/list", {"_meta": META})
        central.create_ticket(board, "One")
        until(lambda: updates(two), PATIENCE, "the other host is told")
        one.request("tools/list", {"_meta": META})
        assert not updates(one)


def test_an_acknowledgement_that_was_carried_out_is_not_carried_out_again(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    """The daemon dies between the write and the answer; what comes meanwhile is not acknowledged by the repetition."""
    with mortal(home):
        shim = converse("lead")
        central.create_ticket(board, "One")
        shown = shim.call_tool("board_digest")
        victim = home.daemon_pid()
        pending = shim.start_tool("board_digest_ack", {"cursor_map": shown["cursor_map"]})
        answer = pending.result(PATIENCE)
        assert home.daemon_pid() != victim
        assert answer["cursor_map"] == shown["cursor_map"]
        (record,) = json.loads(state_file(home, board).read_text())["identities"].values()
        assert [entry["cursor_map"] for entry in record["answers"]] == [shown["cursor_map"]]
        assert len(shim.answers(pending.id)) == 1


def test_fifty_conversations_at_once(central: Central, home: Home, board: str, converse: Converse) -> None:
    """Fifty leads with seats of their own acknowledge different places at once; nobody gets what is another one's."""
    shims = [converse(f"lead-{number}") for number in range(FIFTY)]
    made = [central.create_ticket(board, f"Ticket {number}") for number in range(3)]
    digests = [shim.start_tool("board_digest") for shim in shims]
    for pending in digests:
        assert tickets(pending.result(4 * PATIENCE)) == set(made)
    head = digests[0].result()["cursor_map"][board]
    calls = [
        (
            shim.start_tool("board_digest_ack", {"cursor_map": {board: head - number}}),
            shim.start_tool("board_watch", {"tags": f"t{number}"}),
        )
        for number, shim in enumerate(shims)
    ]
    for number, (acknowledged, watched) in enumerate(calls):
        assert acknowledged.result(4 * PATIENCE)["cursor_map"] == {board: max(0, head - number)}
        assert watched.result(4 * PATIENCE)["watched_tags"] == [f"t{number}"]
    identities = json.loads(state_file(home, board).read_text())["identities"]
    assert sorted(max(0, head - number) for number in range(FIFTY)) == sorted(
        r["cursors"][board] for r in identities.values()
    )


def test_it_goes_on_with_the_token_that_replaced_its_own(central: Central, home: Home, board: str) -> None:
    """The principal is the same, so is the record; the events are read again with the new credential."""
    office = Office(central, home, board)
    shim = office.conversation("lead")
    office.make("One")
    shim.call_tool("board_digest")
    shim.call_tool("board_digest_ack")
    office.rotate()
    office.replace_behind_our_back()
    made = office.make("Two")
    digest = shim.call_tool("board_digest")
    assert (tickets(digest), digest["data_status"]) == ({made}, "current")
    until(lambda: office.credentials() == [kid_of(office.door)], PATIENCE, "the old pool is closed")
    told = len(updates(shim))
    office.make("Three")
    until(lambda: len(updates(shim)) > told, PATIENCE, "the host is told with the new credential")


def test_a_newer_file_is_refused_with_its_path(central: Central, home: Home, board: str, converse: Converse) -> None:
    shim = converse("lead")
    shim.call_tool("board_digest")
    state_file(home, board).write_text('{"schema": 9}')
    for tool in ("board_digest", "board_digest_ack", "board_watch"):
        answer = shim.start_tool(tool).message(PATIENCE)["result"]
        assert answer["isError"]
        assert str(state_file(home, board)) in answer["content"][0]["text"]
    read = shim.start("resources/read", {"uri": f"board://{board}/digest"}).message(PATIENCE)
    assert str(state_file(home, board)) in read["error"]["message"]
    assert state_file(home, board).read_text() == '{"schema": 9}'


def test_digests_are_counted(central: Central, home: Home, board: str, converse: Converse) -> None:
    shim = converse("lead")
    shim.call_tool("board_digest")
    file = home.folder / "bridge-stats.json"
    until(file.exists, PATIENCE, "the statistics are written")

    def counted() -> bool:
        waits = json.loads(file.read_text())["model_wait"][json.dumps([board, "lead"], separators=(",", ":"))]
        (hour,) = waits["hours"].values()
        return bool(hour["outcomes"]["digest"] == 1 and waits["returns"][0]["mode"] == "digest")

    until(counted, PATIENCE, "the digest is counted")


def state_file(home: Home, board: str) -> Path:
    """Where the records of a home board lie."""
    return home.folder / "state" / f"orchestrator_state_{board}.identities.json"


@contextmanager
def listening(central: Central, home: Home, board: str, uri: str) -> Iterator[tuple[ShimProcess, int]]:
    """A host of the newer era with an open subscription, and the id of that."""
    shim = home.shim(home.environment(central.url, central.worker("ann", board), board, "lead"))
    shim.request("server/discover", {"_meta": META})
    params = {"notifications": {"resourceSubscriptions": [uri]}, "_meta": META}
    number = shim.start("subscriptions/listen", params).id
    until(lambda: shim.notifications, PATIENCE, "the subscription is acknowledged")
    yield shim, number


@contextmanager
def mortal(home: Home) -> Iterator[None]:
    """A daemon that dies when it has written an acknowledgement; the next one is an ordinary one."""
    daemon = subprocess.Popen(
        [sys.executable, "-c", DIES_ONCE, "--foreground"],
        env=home.environment(role=None),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        until(home.daemon_pid, PATIENCE, "the daemon runs")
        yield
    finally:
        processes.stop(daemon, (signal.SIGTERM,))
