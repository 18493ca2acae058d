"""pursersctl ps --watch and top on a terminal: drawn anew, over a restart of the daemon, and the terminal is as it was."""

import os
import signal
from collections.abc import Iterator

import msgspec
import psutil
import pytest

from pursersd import api
from rig.daemon import Home
from rig.wait import until
from unit.ctl_daemon import ScriptedDaemon
from unit.ctl_samples import SEATS, STATUS
from unit.ctl_terminal import PATIENCE, Terminal

OK = {
    "ps": {"result": msgspec.to_builtins(api.Ps(seats=SEATS))},
    "status": {"result": msgspec.to_builtins(STATUS)},
}
TOP = ("top", "--every", "0.2")


@pytest.fixture
def home() -> Iterator[Home]:
    with Home() as home:
        yield home


@pytest.mark.parametrize(("keys", "code"), [(b"q", 0), (b"\x03", 0), (b"\x1b", 0)], ids=["q", "ctrl-C", "escape"])
def test_it_leaves_the_terminal_as_it_was(home: Home, keys: bytes, code: int) -> None:
    with ScriptedDaemon(home.folder, answers=OK), Terminal(home, *TOP) as terminal:
        terminal.shows("bench-r1")
        terminal.shows("http://127.0.0.1:8765")
        terminal.type(keys)
        assert terminal.ends() == code
        terminal.assert_as_before()


def test_also_when_it_is_told_to_end(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK), Terminal(home, "ps", "--watch") as terminal:
        terminal.shows("bench-r1")
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.ends() == 128 + signal.SIGTERM
        terminal.assert_as_before()


def test_also_while_it_is_stopped(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK), Terminal(home, *TOP) as terminal:
        terminal.shows("bench-r1")
        us = psutil.Process(terminal.process.pid)
        us.send_signal(signal.SIGTSTP)
        until(lambda: us.status() == psutil.STATUS_STOPPED, PATIENCE, "it stops")
        terminal.assert_as_before()
        drawn = len(terminal.output)
        us.send_signal(signal.SIGCONT)
        until(lambda: terminal.page and len(terminal.output) > drawn + 500, PATIENCE, "it draws again")
        terminal.type(b"q")
        assert terminal.ends() == 0
        terminal.assert_as_before()


@pytest.mark.parametrize("command", [TOP, ("ps", "--watch", "--every", "0.2")], ids=["top", "ps"])
def test_it_survives_the_daemon_and_starts_none(home: Home, command: tuple[str, ...]) -> None:
    with Terminal(home, *command) as early:
        assert early.ends() == 3
        assert b"pursersctl start" in early.output
    with ScriptedDaemon(home.folder, answers=OK) as daemon:
        with Terminal(home, *command) as terminal:
            terminal.shows("bench-r1")
            daemon.process.kill()
            terminal.shows("pursersd is not running. Start it with: pursersctl start")
            assert home.daemons() == []
            with ScriptedDaemon(home.folder, answers=OK):
                terminal.shows("bench-r1")
                terminal.type(b"q")
                assert terminal.ends() == 0
            terminal.assert_as_before()


def test_a_terminal_that_is_too_small_is_told_so_until_it_grows(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK), Terminal(home, "top", "--every", "60", size=(30, 10)) as terminal:
        terminal.shows("Too small: 30×10. Needed: 40×6.")
        terminal.resize(120, 40)
        terminal.shows("http://127.0.0.1:8765 k-4f2a ready")
        terminal.resize(80, 3)
        terminal.shows("Too small: 80×3.")
        terminal.type(b"q")
        assert terminal.ends() == 0


@pytest.mark.parametrize("command", [["top"], ["ps", "--watch"]], ids=" ".join)
def test_without_a_terminal_it_says_what_to_do(home: Home, command: list[str]) -> None:
    with ScriptedDaemon(home.folder, answers=OK):
        done = home.ctl(*command)
        assert (done.returncode, done.stdout) == (1, "")
        assert "needs a terminal" in done.stderr
        assert "pursersctl events" in done.stderr or "pursersctl status --json" in done.stderr
        for kind in ("dumb", ""):
            with Terminal(home, *command, TERM=kind) as terminal:
                assert terminal.ends() == 1
                assert b"needs a terminal" in terminal.output


def test_the_filters_hold_while_it_watches(home: Home) -> None:
    with ScriptedDaemon(home.folder, answers=OK):
        with Terminal(home, "ps", "--watch", "--state", "working", NO_COLOR="1") as terminal:
            terminal.shows("bench-r1")
            assert "bench-w1" not in terminal.page
            terminal.type(b"q")
            assert terminal.ends() == 0


def test_watching_is_for_people(home: Home) -> None:
    assert home.ctl("ps", "--watch", "--json").returncode == 2
    assert os.listdir(home.folder) == []
