"""pursersctl sweep with real bridges and shims: found by who can have started them, ended only if nobody is left."""

import ctypes
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from pursers_shim.wire import process_start
from rig import processes
from rig.daemon import Home
from rig.shim import BRIDGE, SHIM, Json, ShimProcess
from rig.stand_in import StandIn

PATIENCE = 60.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who holds the ends of a pipe")


def looked_at(home: Home, *pids: int, yes: bool = False) -> dict[int, Json]:
    """The rows of these processes, by process id. Never all: others may run bridges of their own on this machine."""
    words = [word for pid in pids for word in ("--pid", str(pid))]
    done = home.ctl("sweep", "--json", *(["--yes"] if yes else []), *words)
    assert done.returncode == 0, done.stderr
    return {row["pid"]: row for row in json.loads(done.stdout)["processes"]}


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with Home(ONBOARD_CENTRAL_URL="http://127.0.0.1:9/mcp", PURSERSD_AUTOSTART="0") as home:
        yield home


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


FAKE = """
import os, socket, sys, time
central = os.environ.get("FAKE_CENTRAL")
connection = central and socket.create_connection(("127.0.0.1", int(central)))
print(sys.stdin.readline(), flush=True)
while True:
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def fake(home: Home) -> list[str]:
    """A command that looks like a bridge, answers one line and stays, whatever becomes of its pipes."""
    script = home.folder / "pursers-wait-bridge"
    script.write_text(FAKE)
    return [sys.executable, str(script)]


def test_bridges_of_killed_hosts_are_found_and_ended_and_living_ones_are_not(home: Home, stack: ExitStack) -> None:
    environment = home.environment()
    as_module = [sys.executable, "-m", "pursers_wait_server"]
    lives = stack.enter_context(StandIn([BRIDGE], environment, holds="in"))
    orphan = stack.enter_context(StandIn(as_module, environment, holds="in"))
    in_our_hands = stack.enter_context(ShimProcess([BRIDGE], environment, hosted=True))
    in_our_hands.initialize()
    pids = (lives.server.pid, orphan.server.pid, in_our_hands.pid)
    before = looked_at(home, *pids)
    assert [before[pid]["orphan"] for pid in pids] == [False, False, False]
    assert [before[pid]["host_pid"] for pid in pids] == [lives.pid, orphan.pid, in_our_hands.process.pid]

    orphan.kill()
    in_our_hands.process.kill()
    in_our_hands.process.wait(PATIENCE)
    found = looked_at(home, *pids)
    assert [found[pid]["orphan"] for pid in pids] == [False, True, True]
    assert f"nobody reads its output; sleep (pid {orphan.holder}) keeps its input open" in found[pids[1]]["why"]
    assert f"(pid {os.getpid()}) holds its output but did not start it" in found[pids[2]]["why"]
    row = found[pids[1]]
    assert (row["kind"], row["host"], row["connections"]) == ("bridge", None, [])
    assert (row["started"], row["rss_bytes"] > 2**24) == (process_start(row["pid"]), True)
    assert all(psutil.Process(pid).is_running() for pid in pids)  # only listed

    ended = looked_at(home, *pids, yes=True)
    assert [ended[pid]["outcome"] for pid in pids] == [None, "ended", "ended"]
    assert not any(psutil.pid_exists(pid) and processes.is_alive(psutil.Process(pid)) for pid in pids[1:])
    assert processes.is_alive(lives.server)


@pytest.mark.parametrize("how", ["pipes", "sockets", "stderr is stdout"])
def test_whoever_hears_a_server_may_be_its_host(home: Home, stack: ExitStack, fake: list[str], how: str) -> None:
    """Its parent is 1, as that of an orphan: what started it has ended, but the host lives."""
    command = ["sh", "-c", f"exec {' '.join(fake)} 2>&1"] if how == "stderr is stdout" else fake
    host = stack.enter_context(StandIn(command, home.environment(), sockets=how == "sockets", vanishing=True))
    assert host.server.ppid() != host.pid
    row = looked_at(home, host.server.pid)[host.server.pid]
    assert (row["orphan"], row["host_pid"]) == (False, host.pid)
    assert f"(pid {host.pid}) reads its output and may be its host" in row["why"]
    assert looked_at(home, host.server.pid, yes=True)[host.server.pid]["outcome"] is None
    assert processes.is_alive(host.server)
    host.kill()
    assert looked_at(home, host.server.pid)[host.server.pid]["orphan"] is True


def test_a_process_of_the_same_group_that_could_hear_it_is_not_looked_through(
    home: Home, stack: ExitStack, fake: list[str]
) -> None:
    """It is younger than the server, so it cannot have started it."""
    host = stack.enter_context(StandIn(fake, home.environment(), holds="out"))
    host.kill()
    row = looked_at(home, host.server.pid)[host.server.pid]
    assert row["orphan"] is True
    assert f"sleep (pid {host.holder}) holds its output but did not start it" in row["why"]


def test_a_wrapper_that_lives_on_is_no_host(home: Home, stack: ExitStack, fake: list[str]) -> None:
    wrapped = ["sh", "-c", f"{' '.join(fake)}; true"]
    host = stack.enter_context(StandIn(wrapped, home.environment(), holds="in"))
    (server,) = host.server.children()
    assert looked_at(home, server.pid)[server.pid]["host_pid"] == host.pid
    host.kill()
    assert looked_at(home, server.pid)[server.pid]["orphan"] is True
    looked_at(home, server.pid, yes=True)
    assert not processes.is_alive(server)


def test_a_suspended_shim_of_a_dead_host_is_found_without_a_daemon(home: Home, stack: ExitStack) -> None:
    host = stack.enter_context(StandIn([SHIM], home.environment(), holds="in"))
    host.server.suspend()
    host.kill()
    row = looked_at(home, host.server.pid, yes=True)[host.server.pid]
    assert (row["kind"], row["orphan"], row["outcome"]) == ("shim", True, "ended")
    assert not processes.is_alive(host.server)


def test_a_shim_that_the_daemon_serves_for_a_living_host_is_left_alone(stack: ExitStack) -> None:
    home = stack.enter_context(Home())
    home.start_daemon()
    shim = stack.enter_context(home.shim(hosted=True))
    shim.initialize()
    row = looked_at(home, shim.pid)[shim.pid]
    assert (row["orphan"], row["host_pid"]) == (False, shim.process.pid)
    psutil.Process(shim.pid).suspend()
    pid = shim.pid
    shim.process.kill()
    shim.process.wait(PATIENCE)
    row = looked_at(home, pid, yes=True)[pid]
    assert row["why"].startswith("its host has ended, but the shim still runs")
    assert row["outcome"] == "ended"


def test_a_subreaper_that_adopted_it_is_no_host(home: Home, stack: ExitStack, fake: list[str]) -> None:
    """Its parent is not 1 and lives, as on a desktop: this process."""
    set_child_subreaper = 36
    libc = ctypes.CDLL(None)
    assert libc.prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    stack.callback(libc.prctl, set_child_subreaper, 0, 0, 0, 0)
    host = stack.enter_context(StandIn(fake, home.environment(), holds="in"))
    host.kill()
    assert host.server.ppid() == os.getpid()
    row = looked_at(home, host.server.pid, yes=True)[host.server.pid]
    assert re.match(rf"its host has ended, adopted by \S+ \(pid {os.getpid()}\): nobody reads its output", row["why"])
    assert row["outcome"] == "ended"
    os.waitpid(host.server.pid, 0)
    os.kill(host.holder, signal.SIGKILL)
    os.waitpid(host.holder, 0)


def test_named_pipes_tell_nobody_who_has_them(home: Home, stack: ExitStack, fake: list[str]) -> None:
    """The members of its group decide then: its host lives, though it is not its parent."""
    pipe = str(home.folder / "out")
    os.mkfifo(pipe)
    through = ["sh", "-c", f"exec {' '.join(fake)} 3<>{pipe}"]
    host = stack.enter_context(StandIn(through, home.environment(), vanishing=True))
    row = looked_at(home, host.server.pid)[host.server.pid]
    assert (row["orphan"], "is of its process group and may be its host" in row["why"]) == (False, True)
    host.kill()
    row = looked_at(home, host.server.pid)[host.server.pid]
    assert (row["orphan"], "nobody is left of its process group" in row["why"]) == (True, True)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to be another user")
def test_another_users_is_not_even_listed(home: Home, stack: ExitStack, fake: list[str]) -> None:
    other = ["setpriv", "--reuid=65534", "--clear-groups", sys.executable, "-c", Path(fake[1]).read_text()]
    host = stack.enter_context(StandIn(other, home.environment(), holds="in"))
    host.kill()
    assert looked_at(home, host.server.pid, yes=True) == {}
    assert processes.is_alive(host.server)


def test_what_is_printed_says_what_to_do(home: Home, stack: ExitStack, fake: list[str]) -> None:
    central = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    port = str(central.getsockname()[1])
    host = stack.enter_context(StandIn(fake, home.environment(extra={"FAKE_CENTRAL": port}), holds="in"))
    host.kill()
    where = ("--pid", str(host.server.pid))
    listed = home.ctl("sweep", *where)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert f"1 to 127.0.0.1:{port}" in listed.stdout
    assert "1 orphan. Nothing was ended. End them with: pursersctl sweep --yes" in listed.stdout
    done = home.ctl("sweep", "--yes", *where)
    assert done.stdout.endswith("1 orphan: 1 ended.\n")
    gone = f"No bridge and no shim of this user with the pid {host.server.pid} runs.\n"
    assert home.ctl("sweep", *where).stdout == gone


def test_one_that_ignores_sigterm_is_killed(
    home: Home, stack: ExitStack, fake: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pursersctl import sweep
    from pursersd.conversation.identity import ProcessIdentity

    monkeypatch.setattr(sweep, "GRACE", 0.2)
    deaf = ["sh", "-c", f"trap '' TERM; exec {' '.join(fake)}"]
    host = stack.enter_context(StandIn(deaf, home.environment(), holds="in"))
    host.kill()
    started = process_start(host.server.pid)
    assert started is not None
    stranger = ProcessIdentity(os.getpid(), 1.0)  # somebody else has the pid now: he gets no signal
    found = ProcessIdentity(host.server.pid, float(started))
    assert sweep.end([found, stranger]) == {found: "killed", stranger: "ended"}
    assert not processes.is_alive(host.server)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
