"""Shims without a daemon start one, and only one, that belongs to none of them."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fake_daemon
from pursers_shim.paths import place
from scripted_daemon import INITIALIZE, Shim, call, short_home, until

WITH_STAND_IN = (
    "import os, sys; sys.executable = os.environ['STAND_IN']; from pursers_shim.__main__ import main; "
    "sys.argv = ['pursers-shim']; main()"
)


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder
        fake_daemon.end_all(folder)


def shim(home: Path, **more: str) -> Shim:
    """A shim that would start the stand-in."""
    environment = {"PURSERSD_AUTOSTART": "1", "STAND_IN": str(home / "python"), **more}
    return Shim(home, [sys.executable, "-c", WITH_STAND_IN], **environment)


@pytest.fixture(autouse=True)
def stand_in(home: Path) -> None:
    fake_daemon.stand_in(home)


def daemon_of(message: dict[str, object]) -> int:
    """Who answered."""
    result = message["result"]
    assert isinstance(result, dict)
    return int(result["daemon"])


def test_the_first_shim_starts_a_daemon_and_its_call_gets_there(home: Path) -> None:
    with shim(home, ONBOARD_CENTRAL_TOKEN="secret") as first:
        pid = daemon_of(first.ask(call(1)))
        [born] = fake_daemon.births(home)
        assert born["pid"] == pid
        assert born["argv"] == ["-I", "-m", "pursersd", "--started-by", "auto"]
        assert born["cwd"] == "/"
        assert born["others"] == []
        assert born["ignored"] in ([], [signal.SIGPIPE, signal.SIGXFSZ])  # what the interpreter itself ignores
        assert "secret" not in str(born["environment"])
        assert os.getsid(pid) not in (os.getsid(0), os.getsid(first.process.pid))
        # It outlives the shim, and the host sees the end of the shim's pipes.
        first.end_input()
        assert first.line() is None
        assert first.ended() == (0, "")
    with shim(home) as second:
        assert daemon_of(second.ask(call(1))) == pid
    assert len(fake_daemon.births(home)) == 1


def test_twenty_shims_at_once_start_one_daemon(home: Path) -> None:
    (home / "slow").write_text("0.5")
    shims = [shim(home) for _ in range(20)]
    try:
        for one in shims:
            one.send(call(1))
        assert len({daemon_of(one.read(20)) for one in shims}) == 1
        assert len(fake_daemon.births(home)) == 1
    finally:
        for one in shims:
            one.__exit__(None, None, None)


def test_a_killed_daemon_is_replaced_once_and_the_calls_go_on(home: Path) -> None:
    with shim(home) as first, shim(home) as second:
        old = daemon_of(first.ask(call(1)))
        assert daemon_of(second.ask(call(1))) == old
        os.kill(old, signal.SIGKILL)
        new = daemon_of(first.ask(call(2)))
        assert new != old
        assert daemon_of(second.ask(call(2))) == new
        assert [born["pid"] for born in fake_daemon.births(home)] == [old, new]


def test_a_daemon_that_dies_while_it_starts_is_replaced_for_the_same_call(home: Path) -> None:
    (home / "slow").write_text("30")
    with shim(home) as one:
        one.send(call(1))
        until(lambda: fake_daemon.births(home))
        (home / "slow").unlink()
        fake_daemon.end_all(home)
        assert daemon_of(one.read()) == fake_daemon.births(home)[-1]["pid"]


def test_a_shim_that_dies_while_it_starts_a_daemon_does_not_bar_the_others(home: Path) -> None:
    (home / "slow").write_text("30")
    with shim(home) as first:
        until(lambda: fake_daemon.births(home))
        first.process.kill()
        first.process.wait()
        fake_daemon.end_all(home)
    (home / "slow").unlink()
    with shim(home) as second:
        assert daemon_of(second.ask(call(1))) == fake_daemon.births(home)[-1]["pid"]


def test_a_daemon_that_is_stopped_by_a_signal_is_not_replaced(home: Path) -> None:
    with shim(home) as first:
        pid = daemon_of(first.ask(call(1)))
        os.kill(pid, signal.SIGSTOP)
        inode = os.stat(place({"PURSERSD_HOME": str(home)}).socket).st_ino
        try:
            with shim(home) as second:
                begun = time.monotonic()
                assert second.ask(INITIALIZE)["id"] == 0
                assert time.monotonic() - begun < 9.5  # and not after the 10 s that a call waits
                second.send(call(1))
                first.send(call(2))
                os.kill(pid, signal.SIGCONT)
                assert daemon_of(second.read()) == daemon_of(first.read()) == pid
        finally:
            os.kill(pid, signal.SIGCONT)
        assert os.stat(place({"PURSERSD_HOME": str(home)}).socket).st_ino == inode
        assert len(fake_daemon.births(home)) == 1


def test_after_pursersctl_stop_nothing_is_started(home: Path) -> None:
    where = place({"PURSERSD_HOME": str(home)})
    os.mkdir(where.folder, 0o700)
    Path(where.stopped).touch()
    with shim(home) as one:
        answered = one.ask(call(1))
        assert "pursersctl start" in str(answered)
    assert fake_daemon.births(home) == []


def test_a_daemon_that_fails_to_start_is_started_again_for_the_same_call(home: Path) -> None:
    (home / "broken").write_text("ModuleNotFoundError: No module named 'mcp'")
    with shim(home) as one:
        one.send(call(1))
        until(lambda: len(fake_daemon.births(home)) == 2)
        (home / "broken").unlink()
        assert daemon_of(one.read()) == fake_daemon.births(home)[-1]["pid"]


def test_the_working_directory_of_the_host_may_be_gone(home: Path) -> None:
    gone = home / "gone"
    gone.mkdir()
    before = os.getcwd()
    os.chdir(gone)
    try:
        one = shim(home)
    finally:
        os.chdir(before)
    gone.rmdir()
    with one:
        assert daemon_of(one.ask(call(1))) > 0
