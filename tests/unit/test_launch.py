"""Locks that can be looked at without being taken, and processes that belong to nobody."""

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fake_daemon
from pursers_shim.launch import daemon_environment, lock_holder, spawn_detached, take_lock
from scripted_daemon import short_home, until

HOLD = (
    "import fcntl,sys; f=open(sys.argv[1],'a'); fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB); "
    "print('held',flush=True); sys.stdin.read()"
)


@pytest.fixture
def root() -> Iterator[Path]:
    with short_home() as folder:
        yield folder
        fake_daemon.end_all(folder)


@contextmanager
def held(path: Path) -> Iterator[int]:
    """Another process that holds the lock on `path`."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield holder.pid
        holder.kill()


def test_the_holder_of_a_lock_is_named_and_keeps_it(root: Path) -> None:
    path = root / "lock"
    assert lock_holder(str(path)) is None
    assert not path.exists()
    with held(path) as pid:
        for _ in range(3):
            assert lock_holder(str(path)) == pid
        assert take_lock(str(path)) is None
    until(lambda: lock_holder(str(path)) is None)


def test_a_file_without_a_lock_has_no_holder(root: Path) -> None:
    (root / "lock").touch()
    assert lock_holder(str(root / "lock")) is None


def test_a_taken_lock_lasts_until_it_is_closed(root: Path) -> None:
    path = root / "lock"
    fd = take_lock(str(path))
    assert fd is not None
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert not os.get_inheritable(fd)
    look = [sys.executable, "-c", "import sys; from pursers_shim.launch import *; print(lock_holder(sys.argv[1]))"]
    assert subprocess.check_output([*look, str(path)]).split() == [str(os.getpid()).encode()]
    os.close(fd)
    assert subprocess.check_output([*look, str(path)]).split() == [b"None"]


def test_a_lock_is_not_taken_through_a_symbolic_link(root: Path) -> None:
    (root / "real").touch()
    (root / "lock").symlink_to(root / "real")
    with pytest.raises(OSError, match="symbolic links"):
        take_lock(str(root / "lock"))


def test_the_daemon_inherits_no_credential_and_nothing_of_the_host() -> None:
    environ = {
        "HOME": "/h",
        "PATH": "/bin",
        "LC_ALL": "C",
        "XDG_STATE_HOME": "/s",
        "PURSERSD_HOME": "/p",
        "ONBOARD_CENTRAL_TOKEN": "secret",
        "PURSERS_ROLE": "worker",
        "CLAUDE_CODE_SESSION_ID": "x",
        "HTTP_PROXY": "http://p",
        "PYTHONPATH": "/evil",
        "LD_PRELOAD": "/evil",
    }
    assert set(daemon_environment(environ)) == {"HOME", "PATH", "LC_ALL", "XDG_STATE_HOME", "PURSERSD_HOME"}


def test_a_detached_process_has_nothing_of_ours(root: Path) -> None:
    leaked = os.open(root, os.O_RDONLY)
    os.set_inheritable(leaked, True)
    log = root / "start.log"
    log.write_text("from an earlier start")
    environment = {"PATH": os.environ["PATH"], "PURSERSD_HOME": str(root)}
    (root / "broken").write_text("some words")
    try:
        spawn_detached([fake_daemon.stand_in(root), "-I"], environment, str(log))
        until(lambda: fake_daemon.births(root))
    finally:
        os.close(leaked)
    [born] = fake_daemon.births(root)
    assert born["argv"] == ["-I"]
    assert born["cwd"] == "/"
    assert born["descriptors"] == {"0": "/dev/null", "1": "/dev/null", "2": str(log)}
    assert born["others"] == []
    assert born["blocked"] == []
    assert born["session"] not in (os.getsid(0), born["pid"])  # its own session, which it cannot give a terminal
    assert born["ppid"] != os.getpid()
    assert isinstance(born["environment"], dict)
    assert born["environment"]["PURSERSD_HOME"] == str(root)
    assert set(born["environment"]) <= {"PATH", "PURSERSD_HOME", "PWD", "SHLVL", "_", "LC_CTYPE"}
    until(lambda: "some words" in log.read_text())
    assert "earlier" not in log.read_text()
    assert os.stat(log).st_mode & 0o077 == 0


def test_a_detached_process_holds_the_lock_on_its_log_while_it_lives(root: Path) -> None:
    log = root / "start.log"
    (root / "slow").write_text("30")
    environment = {"PATH": os.environ["PATH"], "PURSERSD_HOME": str(root)}
    spawn_detached([fake_daemon.stand_in(root)], environment, str(log))
    pid = lock_holder(str(log))  # at once
    assert pid is not None
    until(lambda: fake_daemon.births(root))
    assert fake_daemon.births(root)[0]["pid"] == pid
    fake_daemon.end_all(root)
    assert lock_holder(str(log)) is None


def test_what_cannot_be_started_says_so_in_the_log(root: Path) -> None:
    log = root / "start.log"
    spawn_detached([str(root / "nothing")], {}, str(log))
    assert "cannot start" in log.read_text()
    assert lock_holder(str(log)) is None


@pytest.mark.parametrize("which", ["first", "second"])
def test_a_system_that_gives_no_process_is_told_and_nothing_stays_open(
    root: Path, which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, before = os.fork, len(os.listdir("/dev/fd"))
    forks = iter([fork] if which == "second" else [])

    def no_more() -> int:
        following = next(forks, None)
        if following is None:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return following()

    monkeypatch.setattr(os, "fork", no_more)
    with pytest.raises(OSError, match=os.strerror(errno.EAGAIN)):
        spawn_detached([fake_daemon.stand_in(root)], {}, str(root / "start.log"))
    assert len(os.listdir("/dev/fd")) == before
    assert fake_daemon.births(root) == []


def test_a_log_that_cannot_be_made_is_told(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        spawn_detached([fake_daemon.stand_in(root)], {}, str(root / "gone" / "start.log"))


def test_a_lock_survives_the_start_of_another_process(root: Path) -> None:
    path = root / "lock"
    fd = take_lock(str(path))
    assert fd is not None
    spawn_detached([str(root / "nothing")], {}, str(root / "log"))
    probe = os.open(path, os.O_RDWR)
    taken = subprocess.run(
        [sys.executable, "-c", f"import fcntl; fcntl.lockf({probe}, fcntl.LOCK_EX | fcntl.LOCK_NB)"],
        pass_fds=[probe],
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert taken.returncode != 0
    fcntl.lockf(fd, fcntl.LOCK_UN)
    os.close(probe)
    os.close(fd)
