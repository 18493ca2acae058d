"""Dead, idle and orphaned are told apart by process identity; the reason is kept, and nothing with a living host is ended."""

import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from pursers_shim.dial import reserve_start
from rig import processes
from rig.daemon import Home
from rig.shim import SHIM, Json, ShimProcess
from rig.wait import until
from system.scene import PATIENCE, Caller, Converse, ask, rows, until_blocking, until_listed

LEAVES_WITHIN = 5.0  # seconds


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """One home for all of these tests."""
    with Home() as home:
        yield home


def ended(home: Home) -> list[Json]:
    found: list[Json] = ask(home, "ended")["ended"]
    return found


def last_reason(home: Home, shim_pid: int) -> object:
    return next((row["reason"] for row in ended(home) if row["shim_pid"] == shim_pid), None)


def test_why_a_conversation_ended_is_kept_and_shown(home: Home, converse: Converse) -> None:
    leaves, orphaned, stays = converse("leaves"), converse("orphaned", hosted=True), converse("stays")
    Caller(leaves).arm()
    until_blocking(home, 1)
    pids = (leaves.pid, orphaned.pid)
    leaves.close_stdin()
    os.kill(orphaned.process.pid, signal.SIGKILL)
    until(lambda: len(rows(home)) == 1, PATIENCE, "two are gone")
    assert [last_reason(home, pid) for pid in pids] == ["the shim ended", "the host ended"]
    row = next(row for row in ended(home) if row["shim_pid"] == leaves.pid)
    assert (row["seat"], row["last_tool"], row["host_pid"]) == ("leaves", "a2a_wait", os.getpid())
    shown = home.ctl("ps", "--ended")
    assert shown.returncode == 0
    assert "the host ended" in shown.stdout
    assert "leaves" in shown.stdout
    assert "stays" not in shown.stdout
    stays.close()
    until(lambda: not rows(home), PATIENCE, "all are gone")


def test_reap_lists_a_shim_that_cannot_end_and_ends_it_only_when_told(home: Home, converse: Converse) -> None:
    frozen, idle = converse("frozen", hosted=True), converse("idle")
    shim = psutil.Process(frozen.pid)
    shim.suspend()
    os.kill(frozen.process.pid, signal.SIGKILL)
    until(lambda: last_reason(home, shim.pid) == "the host ended", PATIENCE, "its conversation ended")

    listed = home.ctl("reap")
    assert listed.returncode == 0
    assert "its host has ended, but the shim still runs" in listed.stdout
    assert "pursersctl reap --yes" in listed.stdout
    assert str(idle.pid) not in listed.stdout
    (found,) = ask(home, "reap")["found"]
    assert (found["kind"], found["shim_pid"]) == ("shim", shim.pid)
    assert shim.status() == psutil.STATUS_STOPPED  # only listed

    done = home.ctl("reap", "--yes")
    assert done.returncode == 0, done.stderr
    until(lambda: not processes.is_alive(shim), LEAVES_WITHIN, "the shim is gone")
    assert home.ctl("reap", "--yes").stdout == "Nothing to end: everything has a living host.\n"
    (row,) = until_listed(home, 1)
    assert row["shim_pid"] == idle.pid
    idle.close()
    until(lambda: not rows(home), PATIENCE, "all are gone")


def test_a_host_that_died_before_there_was_a_daemon_leaves_no_shim(home: Home) -> None:
    if home.daemons():
        assert home.ctl("stop").returncode == 0
        os.unlink(home.place.stopped)
    held = reserve_start(home.place)  # nobody can start a daemon meanwhile
    assert held is not None
    shim = home.shim(hosted=True)
    shim.initialize()  # answered early
    victim = psutil.Process(shim.pid)
    os.kill(shim.process.pid, signal.SIGKILL)
    assert processes.is_alive(victim)  # its pipes are open, in our hands
    os.close(held)
    assert home.ctl("start").returncode == 0
    until(lambda: not processes.is_alive(victim), PATIENCE, "it was told to end")
    assert last_reason(home, victim.pid) == "the host ended"


def test_the_host_behind_a_wrapper_is_the_one_that_counts(home: Home) -> None:
    """The wrapper lives on, with the pipes in its hands, and signals nobody."""
    shim = ShimProcess(["sh", "-c", f"trap '' TERM HUP; {SHIM}; sleep 60"], home.environment(), hosted=True)
    try:
        shim.initialize()
        (row,) = until_listed(home, 1)
        wrapper = psutil.Process(shim.pid)
        assert row["host_pid"] == shim.process.pid
        assert row["shim_pid"] in {child.pid for child in wrapper.children()}
        behind = psutil.Process(row["shim_pid"])
        os.kill(shim.process.pid, signal.SIGKILL)
        until(lambda: not processes.is_alive(behind), LEAVES_WITHIN, "the shim is gone")
        assert processes.is_alive(wrapper)
        until(lambda: not rows(home), PATIENCE, "and so is its conversation")
    finally:
        shim.close()


def test_a_host_behind_a_wrapper_that_died_between_two_daemons_leaves_no_shim(home: Home) -> None:
    """The wrapper lives on, and whoever has adopted it lives, too: only who was found at first can tell."""
    shim = ShimProcess(["sh", "-c", f"trap '' TERM HUP; {SHIM}; sleep 60"], home.environment(), hosted=True)
    try:
        shim.initialize()
        (row,) = until_listed(home, 1)
        assert row["host_pid"] == shim.process.pid
        wrapper, behind = psutil.Process(shim.pid), psutil.Process(row["shim_pid"])
        held = reserve_start(home.place)
        assert held is not None
        daemon = psutil.Process(home.daemon_pid())
        daemon.kill()
        until(lambda: not processes.is_alive(daemon), PATIENCE, "there is no daemon")
        os.kill(shim.process.pid, signal.SIGKILL)
        shim.process.wait(PATIENCE)
        os.close(held)
        until(lambda: not processes.is_alive(behind), PATIENCE, "the shim was told to end")
        assert last_reason(home, behind.pid) == "the host ended"
        assert processes.is_alive(wrapper)
    finally:
        shim.close()
