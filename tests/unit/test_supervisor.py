"""What a service manager hands over and hears (sd_listen_fds(3), sd_notify(3)), without a daemon."""

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from pursersd.supervisor import STATUS_EVERY, Supervisor, handed, supervisor
from scripted_daemon import short_home

PID = os.getpid()


@pytest.fixture
def root() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


@pytest.fixture(params=["path", "abstract"])
def ear(request: pytest.FixtureRequest, root: Path) -> Iterator[tuple[str, socket.socket]]:
    """An address as NOTIFY_SOCKET names it, and who listens there."""
    name = str(root / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
        if request.param == "path":
            ear.bind(name)
        else:
            ear.bind("\0" + name)
            name = "@" + name
        ear.settimeout(30)
        yield name, ear


def test_the_words_are_those_of_the_protocol(ear: tuple[str, socket.socket]) -> None:
    name, listener = ear
    environ = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(PID), "OTHER": "1"}
    above = supervisor(environ, PID)
    assert environ == {"OTHER": "1"}  # nobody inherits them
    assert (above.is_listening, above.every_s) == (True, 1.5)
    for say in (above.ready, lambda: above.beat("two\nlines"), above.reloading, lambda: above.stopping("restart")):
        say()
    assert listener.recv(999) == b"READY=1"
    assert listener.recv(999) == b"WATCHDOG=1\nSTATUS=two lines"
    first, second = listener.recv(999).split(b"\n")
    assert (first, second.partition(b"=")[0]) == (b"RELOADING=1", b"MONOTONIC_USEC")
    assert listener.recv(999) == b"STOPPING=1\nSTATUS=leaving: restart"


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": "relative"}, {"NOTIFY_SOCKET": ""}])
def test_without_an_address_nothing_is_said(environ: dict[str, str]) -> None:
    above = supervisor(environ, PID)
    above.ready()
    assert not above.is_listening


def test_a_watchdog_for_another_process_is_not_ours(root: Path) -> None:
    environ = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(PID + 1)}
    assert supervisor(environ, PID).every_s == STATUS_EVERY


def test_a_manager_that_is_gone_is_noted_once_and_harms_nothing(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    above = Supervisor(str(root / "nobody"))
    with caplog.at_level(logging.WARNING):
        above.ready()
        above.beat("x")
    assert caplog.text.count("the service manager does not hear us") == 1


def test_sockets_are_taken_only_by_the_process_they_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    environ = {"LISTEN_FDS": "1", "LISTEN_PID": str(PID + 1), "LISTEN_FDNAMES": "x"}
    with socket.socket(socket.AF_UNIX) as found:
        monkeypatch.setattr("pursersd.supervisor.FIRST_DESCRIPTOR", found.fileno())
        assert handed(environ, PID) == []
    assert environ == {}
    assert handed({"LISTEN_FDS": "many", "LISTEN_PID": str(PID)}, PID) == []
    assert handed({}, PID) == []


def test_handed_descriptors_are_not_inherited_and_what_is_no_socket_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    first = 900
    os.dup2(ours.fileno(), first, inheritable=True)
    os.dup2(read, first + 1, inheritable=True)
    monkeypatch.setattr("pursersd.supervisor.FIRST_DESCRIPTOR", first)
    with ours, theirs:
        (found,) = handed({"LISTEN_FDS": "3", "LISTEN_PID": str(PID)}, PID)
        assert found.fileno() == first
        assert not found.get_inheritable()
        found.close()
    for fd in (read, write, first + 1):
        os.close(fd)
