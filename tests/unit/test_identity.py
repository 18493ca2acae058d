"""conversation/identity: a process is its pid and its start; a zombie, a reused pid and init are nobody."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from pursers_shim.wire import process_start
from pursersd.conversation import identity
from pursersd.conversation.identity import ProcessIdentity, behind, identify, started_at
from rig import processes
from rig.wait import until


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that lives until its standard input ends."""
    with processes.idle() as child:
        yield child


def known(process: "subprocess.Popen[bytes]") -> ProcessIdentity:
    found = identify(process.pid, process_start(process.pid))
    assert found is not None
    return found


def test_a_living_process(child: "subprocess.Popen[bytes]") -> None:
    identity = known(child)
    assert identity.is_alive
    assert identity.pid == child.pid
    assert identity.started == started_at(child.pid)
    assert identity.name.startswith("python")
    assert identity == known(child)


def test_two_processes_are_not_one(child: "subprocess.Popen[bytes]") -> None:
    ourselves = identify(os.getpid(), process_start(os.getpid()))
    assert ourselves is not None
    assert ourselves != known(child)


def test_a_dead_process(child: "subprocess.Popen[bytes]") -> None:
    identity = known(child)
    child.kill()
    child.wait()
    assert not identity.is_alive
    assert identity.name == ""
    assert identify(child.pid, identity.started) is None


def test_a_zombie_is_dead(child: "subprocess.Popen[bytes]") -> None:
    identity = known(child)
    child.kill()
    until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE, message="the child is a zombie")
    assert not identity.is_alive
    assert started_at(child.pid) is None
    assert identify(child.pid, identity.started) is None


@pytest.mark.parametrize("shift", [1, -1, 0.5])
def test_a_pid_used_again_is_somebody_else(child: "subprocess.Popen[bytes]", shift: float) -> None:
    identity = known(child)
    assert not ProcessIdentity(child.pid, identity.started + shift).is_alive
    assert identify(child.pid, identity.started + shift) is None


def test_a_start_that_the_platform_cannot_tell_is_filled_in(child: "subprocess.Popen[bytes]") -> None:
    assert identify(child.pid, None) == known(child)


@pytest.mark.parametrize("pid", [0, 1, -1, True, None, "10", 10.0, 2**22 + 1, 2**31, 2**70])
def test_what_is_no_host(pid: object) -> None:
    assert identify(pid, None) is None


def test_a_process_that_ends_while_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc answers an open file of a process that is gone with an error."""

    def gone(pid: int) -> int | None:
        raise ProcessLookupError(3, "No such process")

    monkeypatch.setattr(identity, "process_start", gone)
    assert started_at(os.getpid()) is None


def test_where_proc_says_nothing_the_clock_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "process_start", lambda pid: None)
    ourselves = identify(os.getpid(), None)
    assert ourselves == ProcessIdentity(os.getpid(), psutil.Process().create_time())
    assert ourselves.is_alive


def test_a_signal_reaches_this_very_process_and_no_other(child: "subprocess.Popen[bytes]") -> None:
    found = known(child)
    assert not ProcessIdentity(child.pid, found.started + 1).send(signal.SIGKILL)
    assert child.poll() is None
    assert found.send(signal.SIGTERM)
    assert child.wait() == -signal.SIGTERM
    assert not found.send(signal.SIGTERM)


def test_the_parent_is_the_host(child: "subprocess.Popen[bytes]") -> None:
    assert behind(child.pid, process_start(child.pid)) == (known(child), ())


def test_a_parent_that_has_ended_is_the_host_all_the_same(child: "subprocess.Popen[bytes]") -> None:
    before = known(child)
    child.kill()
    child.wait()
    assert behind(before.pid, before.started) == (before, ())


@pytest.mark.parametrize("told", [(0, 5), (1, 5), (None, 5), (True, 5), ("7", 5), (2**22 + 1, None), (2**22 + 1, True)])
def test_nobody_can_be_named(told: tuple[object, object]) -> None:
    assert behind(*told) == (None, ())


def test_above_the_wrappers_is_the_host() -> None:
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        ["sh", "-c", f'sh -c "{sys.executable} -c \\"{code}\\"; :"; :'],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=processes.environment(),
    ) as outer:
        assert outer.stdin is not None
        assert outer.stdout is not None
        try:
            assert outer.stdout.readline() == b"ready\n"
            (inner,) = psutil.Process(outer.pid).children()
            host, wrappers = behind(inner.pid, process_start(inner.pid))
            assert host == identify(os.getpid(), None)
            assert [wrapper.pid for wrapper in wrappers] == [inner.pid, outer.pid]
        finally:
            outer.stdin.close()
            outer.wait()
