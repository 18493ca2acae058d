"""Restarts and upgrades with work in flight: hosts see a slow answer, never an error; versions that differ say so."""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from rig import processes
from rig.central import ADMIN_SEAT, Central
from rig.daemon import Home
from rig.installation import Installation
from rig.link import Link
from rig.proxy import Proxy
from rig.shim import ShimProcess, ToolError
from rig.wait import until
from system.scene import OPENING, PATIENCE, Caller, Converse, ask, rows, until_blocking, until_listed

WAITERS = 3
PROJECT = {"work_dir": "/srv/rig", "status": "active"}


@pytest.fixture
def installation(tmp_path: Path, home: Home) -> Iterator[Installation]:
    """A copy of the programs that the test replaces."""
    with Installation(tmp_path, home) as installation:
        yield installation


class Flight:
    """Conversations in blocking waits, and one call that Central has not answered yet."""

    def __init__(self, central: Central, home: Home, proxy: Proxy, board: str, shims: list[ShimProcess]) -> None:
        self._central = central
        self._home = home
        self._proxy = proxy
        self._board = board
        central.call(
            central.admin,
            "board_state_update",
            board_id=board,
            agent_name=ADMIN_SEAT,
            key="project_registry",
            value=json.dumps({"schema_version": 1, "projects": {board: PROJECT | {"board_id": board}}}),
        )
        *waiting, self.busy = shims
        self.callers = [Caller(shim) for shim in waiting]
        for caller in self.callers:
            caller.arm()
        self.waits = [caller.wait for caller in self.callers]
        until_blocking(home, len(waiting))
        proxy.hold("board_state_get")
        self.calls = [self.busy.start_tool("project_registry_get")]
        until(lambda: proxy.holding("board_state_get"), PATIENCE, "a call is running")

    def assert_drains(self) -> None:
        """The old daemon leaves only when the call has ended; what comes meanwhile is held."""
        until(lambda: ask(self._home, "status")["daemon"]["state"] == "draining", PATIENCE, "it drains")
        self.calls.append(self.busy.start_tool("project_registry_get"))
        until(
            lambda: len(ask(self._home, "ps")["seats"]) == len(self.callers) + 1, PATIENCE, "all links are still there"
        )
        assert not any(call.done for call in self.calls)
        self._proxy.release("board_state_get")

    def assert_lands(self) -> None:
        """Every call is answered once and well, and the very waits that were cut off return the next ticket."""
        for call in self.calls:
            assert call.result(PATIENCE)["schema_version"] == 1
            assert len(self.busy.answers(call.id)) == 1
        until_blocking(self._home, len(self.callers))
        ticket = self._central.create_ticket(self._board, "with the next daemon")
        for caller, wait in zip(self.callers, self.waits, strict=True):
            assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
            assert caller.wait is wait
            caller.assert_once()
        assert self._proxy.count("board_state_get") == len(self.calls)


@pytest.fixture
def flight(central: Central, proxy: Proxy, home: Home, board: str, converse: Converse) -> Flight:
    home.start_daemon()
    shims = [converse(f"w{number}", url=proxy.url) for number in range(WAITERS + 1)]
    return Flight(central, home, proxy, board, shims)


def restart(home: Home) -> threading.Thread:
    def run() -> None:
        done = home.ctl("restart", timeout=60)
        assert done.returncode == 0, done.stderr

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def terminate(home: Home) -> None:
    psutil.Process(home.daemon_pid()).terminate()


@pytest.mark.parametrize("leave", [restart, terminate], ids=["pursersctl restart", "SIGTERM"])
def test_a_slow_call_ends_and_waits_move_when_the_daemon_is_replaced(
    proxy: Proxy, home: Home, flight: Flight, leave: Callable[[Home], threading.Thread | None]
) -> None:
    before = psutil.Process(home.daemon_pid())
    command = leave(home)
    flight.assert_drains()
    flight.assert_lands()
    assert not processes.is_alive(before)
    assert home.daemon_pid() != before.pid
    assert "pursersd has left" in home.output()
    if command is not None:
        command.join(PATIENCE)
        assert not command.is_alive()


def test_hosts_that_come_while_the_daemon_is_replaced_notice_nothing(central: Central, home: Home, board: str) -> None:
    home.start_daemon()
    token, head = central.worker("ann", board), central.head(board)
    command = restart(home)
    calls = []
    while command.is_alive() and len(calls) < 12:
        shim = home.shim(home.environment(central.url, token, board, f"w{len(calls)}"))
        shim.start("initialize", OPENING)
        shim.notify("notifications/initialized")
        wait = shim.start_tool("a2a_wait", {"since_seq": head, "timeout_s": 90})
        calls.append((shim, shim.start_tool("project_registry_get"), wait))
        calls[-1][0].start("ping").message(PATIENCE)
    command.join(PATIENCE)
    assert not command.is_alive()
    for shim, call, _ in calls:
        with pytest.raises(ToolError, match="no project registry"):
            call.result(PATIENCE)
        assert len(shim.answers(call.id)) == 1
    until_blocking(home, len(calls))
    ticket = central.create_ticket(board, "with the next daemon")
    for shim, _, wait in calls:
        assert [event["ticket_id"] for event in wait.result(PATIENCE)["events"]] == [ticket]
        assert len(shim.answers(wait.id)) == 1


def test_a_slow_call_that_the_old_daemon_cannot_end_is_done_by_the_next_one(
    proxy: Proxy, home: Home, flight: Flight
) -> None:
    """As at the end of the drain's limit, but at once."""
    psutil.Process(home.daemon_pid()).kill()
    until(lambda: proxy.count("board_state_get") == 2, PATIENCE, "the next daemon makes the call")
    proxy.release("board_state_get")
    flight.calls.append(flight.busy.start_tool("project_registry_get"))
    for call in flight.calls:
        assert call.result(PATIENCE)["schema_version"] == 1
        assert len(flight.busy.answers(call.id)) == 1


def test_a_package_upgrade_under_a_running_daemon(
    central: Central, home: Home, board: str, installation: Installation
) -> None:
    environment = home.environment(central.url, central.worker("ann", board), board, "upgraded")
    caller = Caller(installation.shim(environment))
    wait = caller.arm()
    until_blocking(home, 1)
    before = home.daemon_pid()
    assert ask(home, "status")["warnings"] == []

    # Gone: everything that was needed is in memory.
    installation.remove()
    assert warnings(home) == ["restart_needed"]
    with Link(home.place.socket, {**environment, "ONBOARD_AGENT_NAME": "other"}) as other:
        other.initialize()
        with pytest.raises(ToolError, match="no project registry"):
            other.call_tool("project_registry_get")
    until_listed(home, 1)

    # Another one in its place: the old daemon says what to do, the new one is reached by the old shim.
    installation.install(version="9.9.9")
    assert "9.9.9 is installed" in ask(home, "status")["warnings"][0]["text"]
    done = installation.ctl("restart")
    assert done.returncode == 0, done.stderr
    assert home.daemon_pid() != before
    until_listed(home, 1)
    assert ask(home, "status")["daemon"]["version"] == "9.9.9"
    assert warnings(home) == ["version_skew"]
    shown = installation.ctl("ps")
    assert "VERSION" in shown.stdout
    ticket = central.create_ticket(board, "with the new version")
    assert [event["ticket_id"] for event in caller.take()["events"]] == [ticket]
    assert caller.wait is wait
    caller.assert_once()
    log = (home.folder / "log" / "pursersd.log").read_text()
    assert "ImportError" not in log
    assert "ModuleNotFoundError" not in log
    assert "Traceback" not in log


def warnings(home: Home) -> list[str]:
    return [warning["code"] for warning in ask(home, "status")["warnings"]]


@pytest.mark.parametrize("newer", [(1, 2), (2, 2)], ids=["N and N-1 talk", "no common version"])
def test_a_daemon_of_the_next_link_protocol_and_a_shim_of_this_one(
    central: Central, home: Home, board: str, installation: Installation, converse: Converse, newer: tuple[int, int]
) -> None:
    """The same two the other way round are a shim of the next protocol and a daemon of this one: see below."""
    installation.install(version="9.9.9", protocol=newer)
    assert installation.ctl("start").returncode == 0
    shim = converse("old")
    if newer[0] == 1:
        with pytest.raises(ToolError, match="no project registry"):
            shim.call_tool("project_registry_get")
        return
    with pytest.raises(ToolError) as refused:
        shim.call_tool("project_registry_get")
    assert refused.value.structured["error"]["code"] == "daemon_unavailable"
    assert "shim is too old" in refused.value.text
    # Our pursersctl cannot talk to it either. It says so, names it, and can end it.
    look = home.ctl("status")
    assert (look.returncode, "pursersctl is too old" in look.stderr) == (5, True), look.stderr
    old = home.daemon_pid()
    assert f"pid {old}" in look.stderr
    done = home.ctl("restart")
    assert done.returncode == 0, done.stderr
    assert "SIGTERM" in done.stderr
    # The shim works with the next one, without a restart of its host.
    with pytest.raises(ToolError, match="no project registry"):
        shim.call_tool("project_registry_get")
    assert home.daemon_pid() != old


def test_a_shim_of_the_next_link_protocol_and_a_daemon_of_this_one(
    central: Central, home: Home, board: str, installation: Installation
) -> None:
    home.start_daemon()
    environment = home.environment(central.url, central.worker("ann", board), board, "new")
    installation.install(version="9.9.9", protocol=(1, 2))
    with pytest.raises(ToolError, match="no project registry"):
        installation.shim(environment).call_tool("project_registry_get")
    (row,) = rows(home)
    assert row["shim_version"] == "9.9.9"
    assert warnings(home) == ["version_skew"]
    installation.install(version="9.9.9", protocol=(2, 3))
    with pytest.raises(ToolError, match=r"pursersd is too old.*pursersctl restart"):
        installation.shim(environment).call_tool("project_registry_get")


def test_a_daemon_that_cannot_start_is_named_by_everybody_and_the_next_call_works_when_it_can(
    central: Central, home: Home, board: str, converse: Converse
) -> None:
    epoch = home.folder / "state" / "epoch"
    epoch.parent.mkdir(parents=True)
    epoch.write_text("seven")
    shim = home.shim(home.environment(central.url, central.worker("ann", board), board, "patient"))
    shim.initialize()
    began = time.monotonic()

    def is_named() -> bool:
        with pytest.raises(ToolError) as failed:
            shim.call_tool("project_registry_get")
        text = failed.value.text
        return "in a row" in text and "is damaged: it should hold a number" in text

    until(is_named, 60, "the error names the count and the last words")

    def is_shown() -> bool:
        looked = home.ctl("status")  # between two starts: else there is one, which does not answer
        return looked.returncode == 3 and "starts failed: " in looked.stderr and "is damaged" in looked.stderr

    until(is_shown, 60, "status says why there is no daemon")
    begun = int(Path(home.place.starts).read_text().split()[0])
    pauses = itertools.accumulate(min(0.2 * 2**number, 5.0) for number in range(20))
    assert 2 <= begun <= 2 + sum(pause < time.monotonic() - began for pause in pauses)  # ever more slowly
    epoch.unlink()
    assert home.ctl("start").returncode == 0
    with pytest.raises(ToolError, match="no project registry"):
        shim.call_tool("project_registry_get")


def test_a_daemon_that_keeps_ending_after_it_came_up_is_a_warning_until_one_leaves_in_order(
    home: Home, converse: Converse
) -> None:
    shim = converse("kept")
    until_listed(home, 1)  # the handshake may have been answered before there was a daemon
    for _ in range(2):
        victim = psutil.Process(home.daemon_pid())
        victim.kill()
        until(lambda victim=victim: not processes.is_alive(victim), PATIENCE, "it is gone")  # type: ignore[misc]
        until_listed(home, 1)
    (warning,) = ask(home, "status")["warnings"]
    assert warning["code"] == "crash_loop"
    assert "number 3 in a row" in warning["text"]
    last = home.daemon_pid()
    terminate(home)
    until(lambda: home.daemon_pid() != last, PATIENCE, "the shim starts the next one")
    until_listed(home, 1)
    assert ask(home, "status")["warnings"] == []
    shim.close()
