"""A daemon that is stopped (SIGSTOP) lives: nobody takes its place, and hosts get an answer all the same."""

import os
import signal
from collections.abc import Iterator

import pytest

from rig.central import Central
from rig.daemon import Home
from rig.shim import ToolError
from rig.wait import until
from system.scene import PATIENCE, Caller, Converse, until_listed

GRACE = 10.0  # seconds that a tool call waits for a daemon


@pytest.fixture
def stopped(home: Home, converse: Converse) -> Iterator[int]:
    """The pid of a daemon that answers nothing; it goes on at the end of the test."""
    converse("first")
    until_listed(home, 1)
    pid = home.daemon_pid()
    os.kill(pid, signal.SIGSTOP)
    yield pid
    os.kill(pid, signal.SIGCONT)


def test_a_busy_daemon_is_not_replaced_and_its_hosts_get_the_tools(
    central: Central, home: Home, board: str, converse: Converse, stopped: int
) -> None:
    shim = converse("second")  # its handshake is answered
    assert "a2a_wait" in {tool["name"] for tool in shim.request("tools/list")["tools"]}
    caller = Caller(shim)
    wait = caller.arm()
    assert home.daemon_pid() == stopped
    assert [process.pid for process in home.daemons()] == [stopped]
    assert not wait.done
    os.kill(stopped, signal.SIGCONT)
    until_listed(home, 2)
    ticket = central.create_ticket(board, "after the stop")
    until(lambda: caller.has_seen({ticket}), PATIENCE, "the call that waited for the daemon works")
    caller.assert_once()
    assert home.daemon_pid() == stopped


def test_a_call_that_a_busy_daemon_does_not_take_gets_a_readable_error_and_later_calls_work(
    central: Central, home: Home, board: str, converse: Converse, stopped: int
) -> None:
    caller = Caller(converse("second"))
    wait = caller.arm()
    listed = home.ctl("ps")
    assert (listed.returncode, f"kill -CONT {stopped}" in listed.stderr) == (4, True), listed.stderr
    with pytest.raises(ToolError) as refused:
        wait.result(GRACE + PATIENCE)
    assert f"The daemon (process {stopped}) runs but does not answer" in refused.value.text
    assert "pursersctl status" in refused.value.text
    assert refused.value.structured["error"]["code"] == "daemon_unavailable"
    assert refused.value.structured["error"]["outcome"] == "not_sent"
    assert home.daemon_pid() == stopped
    os.kill(stopped, signal.SIGCONT)
    until_listed(home, 2)
    ticket = central.create_ticket(board, "after the stop")
    caller.arm()
    until(lambda: caller.has_seen({ticket}), PATIENCE, "a later call works")
    assert home.daemon_pid() == stopped
