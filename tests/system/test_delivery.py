"""What a model is told once, it is told once; what it was not given, its seat gets again (bridge.md §13, D28)."""

import os
import signal

import pytest

from rig.central import Central
from rig.daemon import Home
from rig.link import Link
from rig.proxy import Proxy
from rig.wait import until
from system.scene import PATIENCE, Caller, Converse, ask, journal, rows, until_blocking


def test_a_ticket_that_is_created_while_a_wait_begins_is_told_once_and_by_the_journal(
    central: Central, proxy: Proxy, home: Home, board: str, converse: Converse
) -> None:
    """The history is read, the tickets are not yet: the new one must not be told as open work and again as an event."""
    caller = Caller(converse("early", url=proxy.url))
    proxy.hold("ticket_list")
    caller.arm()
    until(lambda: proxy.holding("ticket_list"), PATIENCE, "the entry asks for the tickets")
    ticket = central.create_ticket(board, "in between")
    proxy.release("ticket_list")
    result = caller.take()
    assert [event["ticket_id"] for event in result["events"]] == [ticket]
    assert journal(result) == result["events"]
    caller.arm()
    until_blocking(home, 1)
    another = central.create_ticket(board, "later")
    assert [event["ticket_id"] for event in caller.take()["events"]] == [another]


def acknowledged(central: Central, board: str, agent: str) -> int:
    """How far the seat has acknowledged the journal at Central."""
    token = central.worker("ann", board)
    page = central.call(token, "board_catchup", board_id=board, agent_name=agent, touch=False, ack=False)
    return int(page["acknowledged_cursor"])


def test_an_event_that_did_not_reach_the_host_comes_again_to_the_next_conversation_of_the_seat(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    shim = converse("one-seat")
    Caller(shim).arm()
    until_blocking(home, 1)
    before = acknowledged(central, board, "one-seat")
    os.kill(shim.pid, signal.SIGSTOP)
    ticket = central.create_ticket(board, "never delivered")
    until(lambda: [row["state"] for row in rows(home)] == ["idle"], PATIENCE, "the daemon has answered the wait")
    os.kill(shim.pid, signal.SIGKILL)
    until(lambda: rows(home) == [], PATIENCE, "the conversation is gone")
    lost = {window["counter"]: window["count"] for window in ask(home, "status")["lossy_windows"]}
    assert lost["results_undelivered"] == 1
    assert acknowledged(central, board, "one-seat") == before < central.head(board)
    caller = Caller(converse("one-seat"))
    caller.arm()
    assert [event["ticket_id"] for event in journal(caller.take())] == [ticket]


def test_an_event_that_reached_the_host_does_not_come_again_to_the_next_conversation_of_the_seat(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    first = Caller(converse("one-seat"))
    first.arm()
    until_blocking(home, 1)
    ticket = central.create_ticket(board, "delivered")
    result = first.take()
    assert [event["ticket_id"] for event in journal(result)] == [ticket]
    until(
        lambda: acknowledged(central, board, "one-seat") == result["new_seq"], PATIENCE, "the delivery is acknowledged"
    )
    next_one = Caller(converse("one-seat"))
    next_one.arm()
    shown = next_one.take()
    assert journal(shown) == []
    assert [event["source"] for event in shown["events"]] == ["backlog_scan"]  # the ticket is still open, though


def test_a_wait_that_goes_on_with_the_next_daemon_is_not_told_again_of_open_work(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    """A restart must not wake every model on the board for what it has been shown already."""
    caller = Caller(converse("informed"))
    caller.arm()
    until_blocking(home, 1)
    central.create_ticket(board, "told, and still open")
    caller.take()
    wait = caller.arm()
    until_blocking(home, 1)
    assert home.ctl("restart").returncode == 0
    until_blocking(home, 1)
    assert not wait.done
    ticket = central.create_ticket(board, "new")
    assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
    caller.assert_once()


@pytest.mark.parametrize("how", ["lost", "canceled"])
def test_open_work_in_an_answer_that_did_not_reach_the_host_is_told_again(
    central: Central, home: Home, board: str, how: str
) -> None:
    """A stuck shim loses its link with the answer in it; a cancellation may cross with the answer."""
    home.start_daemon()
    environment = home.environment(central.url, central.worker("ann", board), board, "unheard")
    ticket, head = central.create_ticket(board, "open"), central.head(board)
    arguments = {"timeout_s": 20, "since_seq": head}
    with Link(home.place.socket, environment) as link:
        link.initialize()
        first = link.start_tool("a2a_wait", arguments)
        assert [event["ticket_id"] for event in first.result()["events"]] == [ticket]
        if how == "canceled":
            link.notify("notifications/cancelled", {"requestId": first.id})
            assert [event["ticket_id"] for event in link.call_tool("a2a_wait", arguments)["events"]] == [ticket]
            return
        resume = {
            "conversation": link.greeting["conversation"],
            "link_epoch": link.greeting["link_epoch"],
            "pending": [{"id": first.id, "age_s": 1.0}],
        }
    with Link(home.place.socket, environment, resume=resume) as link:
        link.initialize()
        again = link.start_tool("a2a_wait", arguments)
        assert again.id == first.id
        assert [event["ticket_id"] for event in again.result()["events"]] == [ticket]
