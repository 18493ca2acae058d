"""A shim or its host is gone: the seat leaves the daemon and Central, and no process stays."""

import os
import signal
from collections.abc import Callable, Iterator

import psutil
import pytest

from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.shim import ShimProcess
from rig.wait import until
from system.scene import Caller, Converse, rows, until_blocking

LEAVES_WITHIN = 2.0  # seconds


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """One home for all of these tests: its daemon must keep nothing of those who have left."""
    with Home() as home:
        yield home


def kill_shim(shim: ShimProcess) -> None:
    os.kill(shim.pid, signal.SIGKILL)


def end_stdin(shim: ShimProcess) -> None:
    shim.close_stdin()


def kill_host(shim: ShimProcess) -> None:
    """The shim's pipes stay open: they are ours."""
    os.kill(shim.process.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("leave", "hosted"),
    [(kill_shim, False), (end_stdin, False), (kill_host, True)],
    ids=["sigkill of the shim", "end of stdin", "death of the host, pipe held open"],
)
def test_a_seat_leaves_within_two_seconds_in_the_middle_of_a_wait(
    central: Central,
    home: Home,
    converse: Converse,
    leave: Callable[[ShimProcess], None],
    hosted: bool,
) -> None:
    shim = converse("leaver", hosted=hosted)
    Caller(shim).arm()
    until_blocking(home, 1)
    assert central.health()["active_subscription_streams"] == 2
    involved = {psutil.Process(pid) for pid in (shim.pid, shim.process.pid)}
    leave(shim)
    until(lambda: rows(home) == [], LEAVES_WITHIN, "ps is empty")
    until(
        lambda: central.health()["active_subscription_streams"] == 0, LEAVES_WITHIN, "Central has no listener any more"
    )
    until(lambda: not any(map(processes.is_alive, involved)), LEAVES_WITHIN, "no process is left")
    assert home.daemon_pid()


def test_a_seat_that_another_conversation_uses_stays(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    leaver, stayer = converse("shared"), Caller(converse("shared"))
    Caller(leaver).arm()
    stayer.arm()
    until_blocking(home, 2)
    assert [row["shared_by"] for row in rows(home)] == [2, 2]
    kill_shim(leaver)
    until(lambda: [row["shim_pid"] for row in rows(home)] == [stayer.shim.pid], LEAVES_WITHIN, "one is left")
    assert rows(home)[0]["shared_by"] == 1
    ticket = central.create_ticket(board, "for who is left")
    assert [event["ticket_id"] for event in stayer.take()["events"]] == [ticket]
