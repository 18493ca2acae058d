"""The daemon dies by SIGKILL while models wait: the same calls go on with the next daemon, nothing is lost or doubled."""

import os
import signal
from pathlib import Path

from pursers_shim.dial import reserve_start
from rig.central import Central
from rig.daemon import Home
from rig.wait import until
from system.scene import PATIENCE, Caller, Converse, until_blocking, until_listed

NAMES = [f"w{number}" for number in range(10)]


def crash(home: Home) -> int:
    """Kill the daemon and return when it is gone; its pid."""
    victim = home.daemon_pid()
    os.kill(victim, signal.SIGKILL)
    until(lambda: victim not in {process.pid for process in home.daemons()}, PATIENCE, "the daemon is gone")
    return victim


def start_waiting(home: Home, converse: Converse) -> list[Caller]:
    """Ten conversations of one credential, each in a blocking wait."""
    callers = [Caller(converse(name)) for name in NAMES]
    for caller in callers:
        caller.arm()
    until_blocking(home, len(NAMES))
    return callers


def until_seen(callers: list[Caller], tickets: list[str]) -> None:
    """Re-arm until every caller has been told of all tickets: each once, in the order in which they were made."""
    for caller in callers:
        until(lambda caller=caller: caller.has_seen(set(tickets)), PATIENCE, "all tickets arrive")  # type: ignore[misc]
    for caller in callers:
        assert [event["ticket_id"] for event in caller.events] == tickets
        caller.assert_once()


def test_sigkill_of_the_daemon_with_ten_waits_blocking_loses_and_doubles_no_event(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    callers = start_waiting(home, converse)
    waits = [caller.wait for caller in callers]
    # Nobody can start a daemon while we hold this lock: the first tickets certainly come while there is none.
    held = reserve_start(home.place)
    assert held is not None
    victim = crash(home)
    tickets = [central.create_ticket(board, "without a daemon") for _ in range(2)]
    os.close(held)
    rows = until_listed(home, len(NAMES))
    assert home.daemon_pid() != victim
    assert {row["link_epoch"] for row in rows} == {2}
    tickets.append(central.create_ticket(board, "with the new daemon"))
    until_seen(callers, tickets)
    for caller, wait in zip(callers, waits, strict=True):
        assert wait is not None
        assert wait.result(0)["events"], "the very wait that was cut off returned"
        assert caller.results[0] == wait.result(0)
    assert Path(home.folder, "state", "epoch").read_text().strip() == "2"


def test_sigkill_at_the_moment_of_the_wake_loses_and_doubles_no_event(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    callers = start_waiting(home, converse)
    tickets = []
    for number in range(2):
        tickets.append(central.create_ticket(board, f"on the edge {number}"))
        crash(home)
        until_seen(callers, tickets)
        until_blocking(home, len(NAMES))
