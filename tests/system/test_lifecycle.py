"""Restart, stop and start, signals, idle exit: what they mean for conversations that wait."""

import signal
from pathlib import Path

import psutil
import pytest

from pursers_shim import starts
from pursersctl import client
from rig import processes
from rig.central import Central
from rig.daemon import Home
from rig.proxy import Proxy
from rig.shim import Json, Pending, ToolError
from rig.wait import until
from system.scene import OPENING, PATIENCE, Caller, Converse, ask, until_blocking, until_listed

NAMES = ["w0", "w1", "w2"]
IDLE_EXIT_S = 0.3  # seconds

ASYNCIO = "ERROR   asyncio: Exception in callback Future.set_result"
"""A race between the end of a task and the last byte of its socket that anyio loses; it means nothing."""


@pytest.fixture
def callers(home: Home, converse: Converse) -> list[Caller]:
    """Three conversations in blocking waits."""
    found = [Caller(converse(name)) for name in NAMES]
    for caller in found:
        caller.arm()
    until_blocking(home, len(found))
    return found


def assert_same_waits_return(central: Central, home: Home, board: str, callers: list[Caller]) -> None:
    """The waits in progress, and not others in their place, return the next ticket, each once."""
    waits = [caller.wait for caller in callers]
    until_listed(home, len(callers))
    ticket = central.create_ticket(board, "with the next daemon")
    for caller, wait in zip(callers, waits, strict=True):
        assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
        assert caller.wait is wait
        caller.assert_once()


def assert_left_in_order(home: Home) -> None:
    """The first daemon in the log has left by itself, and quickly: nobody had to give up on anybody."""
    log = (home.folder / "log" / "pursersd.log").read_text()
    assert "pursersd has left" in log
    complaints = [
        line for line in log.splitlines() if any(x in line for x in ("WARNING", "ERROR")) if ASYNCIO not in line
    ]
    assert complaints == []


def assert_names_start(call: Pending[Json]) -> None:
    """It is refused with the command that helps."""
    with pytest.raises(ToolError) as refused:
        call.result(PATIENCE)
    assert "pursersctl start" in refused.value.text
    assert refused.value.structured["error"]["code"] == "daemon_unavailable"


def test_restart_gives_the_waits_to_a_new_daemon(
    central: Central, home: Home, board: str, callers: list[Caller]
) -> None:
    before = home.daemon_pid()
    done = home.ctl("restart")
    assert done.returncode == 0, done.stderr
    assert home.daemon_pid() != before
    assert_same_waits_return(central, home, board, callers)
    assert_left_in_order(home)


def test_sigterm_is_a_restart(central: Central, home: Home, board: str, callers: list[Caller]) -> None:
    """A service manager that stops us starts another daemon; without one the shims do."""
    before = psutil.Process(home.daemon_pid())
    before.terminate()
    until(lambda: not processes.is_alive(before), PATIENCE, "the daemon has left")
    assert_same_waits_return(central, home, board, callers)
    assert home.daemon_pid() != before.pid
    assert_left_in_order(home)


def test_stop_answers_the_calls_and_start_brings_everything_back(
    central: Central, home: Home, board: str, callers: list[Caller]
) -> None:
    before = psutil.Process(home.daemon_pid())
    stopped = home.ctl("stop")
    assert stopped.returncode == 0, stopped.stderr
    for caller in callers:
        assert caller.wait is not None
        assert_names_start(caller.wait)
        caller.assert_once()
    until(lambda: not processes.is_alive(before), PATIENCE, "the daemon has left")
    assert_left_in_order(home)
    # Neither an old nor a new conversation starts one, nor does a look.
    newcomer = home.shim()
    opened, called = newcomer.start("initialize", OPENING), newcomer.start_tool("project_registry_get")
    late = callers[0].arm()
    listed = home.ctl("ps")
    assert (listed.returncode, "pursersctl start" in listed.stderr) == (3, True), listed.stderr
    assert opened.result()["serverInfo"]
    assert_names_start(called)
    assert_names_start(late)
    assert home.daemons() == []
    newcomer.close()

    started = home.ctl("start")
    assert started.returncode == 0, started.stderr
    until_listed(home, len(callers))
    for caller in callers:
        caller.arm()
    until_blocking(home, len(callers))
    assert_same_waits_return(central, home, board, callers)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_forces(home: Home, proxy: Proxy, converse: Converse, number: signal.Signals) -> None:
    """The first leaves it to the drain to let a call end; the second does not wait for that."""
    daemon = home.start_daemon()
    shim = converse("busy", url=proxy.url)
    proxy.hold("board_state_get")
    call = shim.start_tool("project_registry_get")
    until(lambda: proxy.holding("board_state_get"), PATIENCE, "a call is running")
    client.ask(home.place, "stop", {"drain": True, "reason": "restart"})
    assert ask(home, "status")["daemon"]["state"] == "draining"
    daemon.send_signal(number)
    until(lambda: f"got {number.name}" in home.output(), PATIENCE, "the first signal is taken")
    assert daemon.poll() is None
    assert not call.done
    daemon.send_signal(number)
    assert daemon.wait(PATIENCE) == -number
    assert "Traceback" not in home.output()


def test_an_automatically_started_daemon_leaves_when_nobody_needs_it_and_one_started_by_the_user_stays() -> None:
    with Home(PURSERSD_IDLE_EXIT_S=str(IDLE_EXIT_S)) as users, Home(PURSERSD_IDLE_EXIT_S=str(IDLE_EXIT_S)) as auto:
        stays = users.start_daemon()
        shim = auto.shim()
        shim.initialize()
        until_listed(auto, 1)
        leaves = psutil.Process(auto.daemon_pid())
        assert ask(auto, "status")["daemon"]["started_by"] == "auto"
        assert processes.is_alive(leaves), "it left although it had a conversation"
        shim.close()
        until(lambda: not processes.is_alive(leaves), PATIENCE, "the idle daemon has left")
        assert not Path(auto.place.socket).exists()
        # This one has been without a conversation for longer.
        assert stays.poll() is None
        assert ask(users, "status")["daemon"]["started_by"] == "user"
        # Nothing forbids the next one.
        auto.shim().initialize()
        until_listed(auto, 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_before_it_serves_ends_it_in_order(home: Home, number: signal.Signals) -> None:
    daemon = home.start_daemon()  # it listens already, but most of it is still to be imported
    starts.note_start(home.place, 1, 0.0)
    daemon.send_signal(number)
    assert daemon.wait(PATIENCE) == 0
    assert not Path(home.place.socket).exists()
    assert starts.read(home.place) is None, "no crash is counted"
    assert "Traceback" not in home.output()
