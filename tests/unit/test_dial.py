"""Finding the daemon: what is there, who it is, when one is started and when not."""

import errno
import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import fake_daemon
from pursers_shim import dial
from pursers_shim import starts as record
from pursers_shim.dial import Absent, Busy, Dialer, WrongPeer, connect, daemon_pid, start
from pursers_shim.launch import lock_holder
from pursers_shim.paths import PathError, Place, place
from pursersctl import client, output
from pursersctl.errors import Exit, Refused
from scripted_daemon import short_home, until

HOLD = (
    "import fcntl,sys; f=open(sys.argv[1],'a'); fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB); "
    "print('held',flush=True); sys.stdin.read()"
)

PYTHON = sys.executable
"""The real one; tests put a stand-in into its place."""


@pytest.fixture
def root() -> Iterator[Path]:
    with short_home() as folder:
        yield folder
        fake_daemon.end_all(folder)


@pytest.fixture
def where(root: Path) -> Place:
    found = place({"PURSERSD_HOME": str(root)})
    os.mkdir(found.folder, 0o700)
    return found


@contextmanager
def listening(where: Place, backlog: int = 8) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(where.socket)
        listener.listen(backlog)
        yield listener


@contextmanager
def lock_held(path: str) -> Iterator[int]:
    """Another process that holds the lock on `path`."""
    holder = subprocess.Popen([PYTHON, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield holder.pid
        holder.kill()


# --- connect ---


def test_a_listener_of_ours_is_reached(where: Place) -> None:
    with listening(where) as listener, connect(where) as link:
        assert not link.getblocking()
        link.send(b"x")
        with listener.accept()[0] as other:
            assert other.recv(1) == b"x"


def test_nobody_is_there(root: Path) -> None:
    where = place({"PURSERSD_HOME": str(root)})
    with pytest.raises(Absent):
        connect(where)
    assert not os.path.lexists(where.folder)
    os.mkdir(where.folder, 0o700)
    with pytest.raises(Absent):
        connect(where)


def test_a_stale_socket_means_nobody(where: Place) -> None:
    with listening(where):
        pass
    assert os.path.exists(where.socket)
    with pytest.raises(Absent):
        connect(where)


def test_a_full_queue_is_busy_and_not_absent(where: Place) -> None:
    with listening(where, backlog=0):
        links = [connect(where)]  # fills the queue
        with links[0], pytest.raises(Busy):
            connect(where)


@pytest.mark.parametrize(("kind", "words"), [("file", "a file"), ("folder", "a folder"), ("link", "a symbolic link")])
def test_what_is_not_a_socket_is_left_alone(where: Place, kind: str, words: str) -> None:
    path = Path(where.socket)
    {"file": path.touch, "folder": path.mkdir, "link": lambda: path.symlink_to("/nonexistent")}[kind]()
    before = os.lstat(path)
    with pytest.raises(PathError, match=words):
        connect(where)
    assert os.lstat(path).st_ino == before.st_ino


def test_an_open_folder_is_refused_before_anything_is_sent(where: Place) -> None:
    with listening(where) as listener:
        os.chmod(where.folder, 0o755)
        with pytest.raises(PathError, match="chmod 700"):
            connect(where)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_listener_of_another_user_gets_no_byte(where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(where) as listener:
        monkeypatch.setattr(dial, "peer_uid", lambda link: os.getuid() + 1)
        with pytest.raises(WrongPeer, match="not by you"):
            connect(where)
        with listener.accept()[0] as other:
            assert other.recv(1) == b""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_kernel_says_who_listens(where: Place) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(where.socket)
    child = os.fork()
    if child == 0:
        # The kernel notes the credentials at listen().
        os.setuid(65534)
        listener.listen(1)
        os._exit(0)
    os.waitpid(child, 0)
    with listener, pytest.raises(WrongPeer, match="user 65534"):
        connect(where)


# --- daemon_pid, start ---


class Starts:
    """What `start` and a Dialer do in a home where a stand-in is started instead of the daemon."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.where = place({"PURSERSD_HOME": str(root)})
        self.environ = {
            "PURSERSD_HOME": str(root),
            "PATH": os.environ["PATH"],
            "ONBOARD_CENTRAL_TOKEN": "secret",
        }
        monkeypatch.setattr(sys, "executable", fake_daemon.stand_in(root))

    def count(self) -> int:
        return len(fake_daemon.births(self.root))

    def up(self) -> None:
        until(lambda: daemon_pid(self.where) is not None)


@pytest.fixture
def starts(root: Path, monkeypatch: pytest.MonkeyPatch) -> Starts:
    return Starts(root, monkeypatch)


def test_the_daemon_is_known_by_its_lock(where: Place) -> None:
    assert daemon_pid(where) is None
    with lock_held(where.lock) as pid:
        assert daemon_pid(where) == pid


def test_start_starts_a_daemon_without_our_secrets(starts: Starts) -> None:
    held = start(starts.where, starts.environ)
    assert held is not None
    starts.up()
    os.close(held)
    [born] = fake_daemon.births(starts.root)
    assert born["argv"] == ["-I", "-m", "pursersd", "--started-by", "auto"]
    assert "secret" not in str(born["environment"])
    assert daemon_pid(starts.where) == born["pid"]


def test_nothing_is_started_while_a_daemon_lives(starts: Starts) -> None:
    os.makedirs(starts.where.folder, 0o700)
    with lock_held(starts.where.lock):
        assert start(starts.where, starts.environ, patient=False) is None
    assert starts.count() == 0


def test_nothing_is_started_while_another_one_starts(starts: Starts) -> None:
    os.makedirs(starts.where.folder, 0o700)
    with lock_held(starts.where.start_lock):
        assert start(starts.where, starts.environ, patient=False) is None
    assert starts.count() == 0


class Clock:
    """Wall time that a test moves; tries to start at each step of it."""

    def __init__(self, starts: Starts, now: float) -> None:
        self.now = now
        self._starts = starts

    def is_started(self, *, patient: bool = True) -> bool:
        held = start(self._starts.where, self._starts.environ, patient=patient, clock=lambda: self.now)
        if held is not None:
            os.close(held)
            until(lambda: lock_holder(self._starts.where.start_log) is None)  # it has failed
        return held is not None

    def until_started(self) -> float:
        began = self.now
        while not self.is_started():
            self.now += 0.0625
        return self.now - began


def test_a_daemon_that_does_not_come_up_is_started_ever_more_slowly(starts: Starts) -> None:
    (starts.root / "broken").write_text("no")
    clock = Clock(starts, 1_000_000.0)
    gaps = [clock.until_started() for _ in range(12)]
    assert gaps[:7] == pytest.approx([0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4], abs=0.0635)
    assert gaps[-2:] == pytest.approx([record.RESTART_LAST_FAILED] * 2, abs=0.0635)
    # A person who asks is not put off, and begins anew.
    assert clock.is_started(patient=False)
    assert clock.until_started() == 0
    assert clock.until_started() > 0
    # What lies long ago is forgotten.
    clock.now += record.RESTART_MEMORY + 1
    assert clock.until_started() == 0


def test_a_daemon_that_came_up_before_it_ended_is_started_again_sooner(starts: Starts) -> None:
    (starts.root / "broken").write_text("no")
    clock = Clock(starts, time.time() - 26.5)
    for _ in range(7):
        clock.until_started()
    (starts.root / "broken").unlink()
    attempt_until_linked(Dialer(starts.environ)).close()  # the eighth, in real time: 12.8 seconds have passed
    fake_daemon.end_all(starts.root)
    (starts.root / "broken").write_text("no")
    clock.now = time.time()
    # Had it not come up, 25.6 seconds would have to pass.
    assert 4 < clock.until_started() <= record.RESTART_LAST + 0.0625


def test_a_crash_loop_is_told_with_the_last_words_and_when_the_next_start_comes(
    starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    (starts.root / "broken").write_text("pursersd: the epoch is damaged\n")
    clock = Clock(starts, time.time() - 0.6)  # of which the first pauses take all
    for _ in range(record.LOOP):
        clock.until_started()
    monkeypatch.setattr(record, "RESTART_FIRST", record.RESTART_LAST_FAILED)  # the next one does not come while we ask
    dialer = Dialer(starts.environ)
    assert dialer.attempt() is None
    trouble = dialer.trouble()
    assert "started 3 times in a row" in trouble.text
    assert "the epoch is damaged" in trouble.text
    assert "next start is in" in trouble.text
    assert trouble.is_hopeless
    assert starts.count() == record.LOOP  # and none for the question
    record.note_success(starts.where)  # the last one had come up, so the next one will soon
    again = dialer.trouble()
    assert "started 3 times in a row" in again.text
    assert not again.is_hopeless


def test_the_words_of_the_one_before_are_kept_while_the_next_one_says_nothing(starts: Starts) -> None:
    (starts.root / "broken").write_text("pursersd: first\n")
    clock = Clock(starts, 1_000_000.0)
    clock.until_started()
    (starts.root / "broken").write_text("")
    clock.until_started()
    found = record.read(starts.where)
    assert found is not None
    assert (found.count, found.came_up, found.words) == (2, False, "pursersd: first")
    assert record.last_words(starts.where.start_log) == ""
    record.forget(starts.where)
    record.forget(starts.where)
    assert record.read(starts.where) is None


@pytest.mark.parametrize("content", [b"", b"1 2", b"1 2 3 4\n", b"x y z\n", b"9" * 5000, b"\xff\xff \xff 1\n"])
def test_a_record_that_is_none_counts_for_nothing(where: Place, content: bytes) -> None:
    Path(where.starts).write_bytes(content)
    assert record.read(where) is None
    record.note_success(where)
    assert Path(where.starts).read_bytes() == content


def test_start_refuses_an_unsafe_folder(starts: Starts) -> None:
    Path(starts.where.folder).symlink_to(starts.root)
    with pytest.raises(PathError, match="symbolic link"):
        start(starts.where, starts.environ)
    assert starts.count() == 0


# --- Dialer ---


def attempt_until_linked(dialer: Dialer) -> socket.socket:
    links: list[socket.socket] = []

    def is_linked() -> bool:
        link = dialer.attempt()
        links.extend([] if link is None else [link])
        return bool(links)

    until(is_linked)
    return links[0]


def test_the_dialer_starts_one_daemon_and_reaches_it(starts: Starts) -> None:
    dialer = Dialer(starts.environ)
    assert dialer.attempt() is None
    assert "starting" in dialer.trouble().text
    attempt_until_linked(dialer).close()
    assert starts.count() == 1
    # The start lock is free again.
    held = start(starts.where, starts.environ, patient=False)
    assert held is None
    with lock_held(starts.where.start_lock):
        pass


def test_a_system_that_gives_no_process_is_told_and_asked_again(
    starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialer = Dialer(starts.environ)
    with monkeypatch.context() as busy:

        def no_more() -> int:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

        busy.setattr(os, "fork", no_more)
        assert dialer.attempt() is None
        assert "cannot be started" in dialer.trouble().text
        assert os.strerror(errno.EAGAIN) in dialer.trouble().text
        assert not dialer.trouble().is_hopeless
    attempt_until_linked(dialer).close()
    assert starts.count() == 1


def test_two_dialers_start_one_daemon(starts: Starts) -> None:
    (starts.root / "slow").write_text("0.3")
    # Record locks belong to a process, so the second one is another process.
    code = (
        "import os,sys,time; from pursers_shim.dial import Dialer; sys.executable=os.environ['FAKE']\n"
        "d=Dialer(os.environ); end=time.monotonic()+8\n"
        "while d.attempt() is None and time.monotonic()<end: time.sleep(0.01)\n"
    )
    environ = starts.environ | {"FAKE": sys.executable}
    others = [subprocess.Popen([PYTHON, "-c", code], env=environ) for _ in range(3)]
    for other in others:
        assert other.wait(60) == 0
    assert starts.count() == 1


def test_without_autostart_nothing_is_started(starts: Starts) -> None:
    dialer = Dialer(starts.environ | {"PURSERSD_AUTOSTART": "0"})
    assert dialer.attempt() is None
    trouble = dialer.trouble()
    assert starts.where.socket in trouble.text
    assert "PURSERSD_AUTOSTART=0" in trouble.text
    assert trouble.action == "Start it with: pursersctl start"
    assert not trouble.is_hopeless
    assert not os.path.exists(starts.where.folder)


def test_a_daemon_that_was_stopped_stays_stopped(starts: Starts) -> None:
    os.makedirs(starts.where.folder, 0o700)
    Path(starts.where.stopped).touch()
    dialer = Dialer(starts.environ)
    assert dialer.attempt() is None
    assert "pursersctl stop" in dialer.trouble().text
    assert "pursersctl start" in dialer.trouble().action
    assert dialer.trouble().is_hopeless
    assert starts.count() == 0


def test_a_daemon_that_lives_but_does_not_listen_is_not_replaced(starts: Starts) -> None:
    os.makedirs(starts.where.folder, 0o700)
    dialer = Dialer(starts.environ)
    with lock_held(starts.where.lock) as pid:
        for _ in range(5):
            assert dialer.attempt() is None
        assert f"process {pid}" in dialer.trouble().text
    assert starts.count() == 0


def test_a_daemon_without_room_is_not_replaced(starts: Starts) -> None:
    os.makedirs(starts.where.folder, 0o700)
    dialer = Dialer(starts.environ)
    links: list[socket.socket] = []
    with listening(starts.where, backlog=0):
        while (link := dialer.attempt()) is not None:
            links.append(link)
        assert "does not answer" in dialer.trouble().text
    for link in links:
        link.close()
    assert starts.count() == 0


def test_what_a_failed_daemon_printed_is_told(starts: Starts) -> None:
    (starts.root / "broken").write_text("first line\nModuleNotFoundError: no module named mcp\n")
    dialer = Dialer(starts.environ)
    assert dialer.attempt() is None
    until(lambda: "mcp" in dialer.trouble().text)
    assert "first line" not in dialer.trouble().text
    assert starts.where.start_log in dialer.trouble().action


def test_a_start_that_fails_is_repeated(starts: Starts) -> None:
    (starts.root / "broken").write_text("no")
    dialer = Dialer(starts.environ)
    assert dialer.attempt() is None
    until(lambda: starts.count() == 1)
    (starts.root / "broken").unlink()
    attempt_until_linked(dialer).close()
    assert starts.count() == 2


def test_a_start_that_takes_too_long_may_be_repeated(starts: Starts) -> None:
    (starts.root / "slow").write_text("30")
    now = [100.0]
    dialer = Dialer(starts.environ, clock=lambda: now[0])
    assert dialer.attempt() is None
    until(lambda: starts.count() == 1)
    begun = time.monotonic()
    while time.monotonic() < begun + 0.5:  # longer than the pause before a second start
        assert dialer.attempt() is None
    assert starts.count() == 1
    now[0] += dial.START_LIMIT + 0.1

    def is_second() -> bool:
        assert dialer.attempt() is None
        return starts.count() == 2

    until(is_second)


@pytest.mark.parametrize("home", ["relative", "/" + "x" * 200])
def test_a_home_that_cannot_work_is_told(home: str) -> None:
    dialer = Dialer({"PURSERSD_HOME": home})
    assert dialer.attempt() is None
    assert "PURSERSD_HOME" in dialer.trouble().text
    assert dialer.trouble().is_hopeless


def test_an_unsafe_folder_is_told_with_the_cure(where: Place, root: Path) -> None:
    os.chmod(where.folder, 0o777)
    dialer = Dialer({"PURSERSD_HOME": str(root)})
    assert dialer.attempt() is None
    assert f"chmod 700 {where.folder}" in dialer.trouble().text
    assert dialer.trouble().is_hopeless
    os.chmod(where.folder, 0o700)
    with listening(where):
        link = dialer.attempt()
        assert link is not None
        link.close()


def test_the_pauses_grow_and_shrink(where: Place, root: Path) -> None:
    now = [100.0]
    dialer = Dialer({"PURSERSD_HOME": str(root), "PURSERSD_AUTOSTART": "0"}, clock=lambda: now[0])
    assert dialer.next_at == 100.0

    def pause() -> float:
        assert dialer.attempt() is None
        return dialer.next_at - now[0]

    # While a daemon may be starting the pauses stay short.
    assert all(0.03 < pause() <= dial.STARTING_DELAY * 1.25 for _ in range(10))
    now[0] += dial.START_LIMIT
    assert all(dial.LAST_DELAY * 0.75 <= pause() <= dial.LAST_DELAY * 1.25 for _ in range(5))
    dialer.hurry()
    assert dialer.next_at - now[0] <= dial.FIRST_DELAY
    with listening(where):
        link = dialer.attempt()
        assert link is not None
        link.close()
    dialer.welcomed()
    dialer.lost()
    assert dialer.next_at == now[0]
    # A link that was of no use is not renewed at once.
    dialer.lost()
    assert dialer.next_at > now[0]


def test_a_refusal_is_remembered_until_something_else_is_known(where: Place, root: Path) -> None:
    dialer = Dialer({"PURSERSD_HOME": str(root), "PURSERSD_AUTOSTART": "0"})
    with listening(where):
        dialer.lost(dial.Trouble("Too many conversations.", "Wait."))
        link = dialer.attempt()
        assert link is not None
        link.close()
        assert dialer.trouble().text == "Too many conversations."
    assert dialer.attempt() is None
    assert "No daemon listens" in dialer.trouble().text


def test_a_lock_that_nobody_can_ask_about_is_trouble_and_no_end(where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system without locks, or with a lock file that is not ours to open."""
    Path(where.lock).touch()
    ask = fcntl.fcntl

    def no_locks(fd: int, command: int, *given: bytes) -> object:
        if command == fcntl.F_GETLK:
            raise OSError(errno.ENOLCK, "No locks available")
        return ask(fd, command, *given)

    monkeypatch.setattr(fcntl, "fcntl", no_locks)
    dialer = Dialer({"PURSERSD_HOME": str(where.home)})
    assert dialer.attempt() is None
    words = f"Cannot lock {where.lock}: No locks available. Its file system may have no locks or sockets"
    assert words in dialer.trouble().text
    assert "new conversations" in dialer.trouble().action
    with pytest.raises(Refused, match="Cannot lock"):
        client.ask(where, "ping", timeout=1)
    with pytest.raises(SystemExit) as ended, output.reporting():
        daemon_pid(where)
    assert ended.value.code == Exit.REFUSED
    with listening(where):
        link = dialer.attempt()
        assert link is not None  # who listens is reached all the same
        link.close()
    assert words in dialer.trouble().text


def test_a_start_that_the_system_refuses_is_no_crash(where: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told as what it is, to whoever looks, tried again soon, and counts for nothing later."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    record.note_start(where, 1, time.time() - 30)
    Path(where.start_log).write_text("words of long ago\n")
    monkeypatch.setattr(dial, "spawn_detached", refuse)
    dialer = Dialer({"PURSERSD_HOME": str(where.home)})
    for _ in range(3):  # the second one comes within the pause, and asks nobody
        assert dialer.attempt() is None
        words = f"The daemon cannot be started: {os.strerror(errno.EAGAIN)}. It is tried again"
        assert dialer.trouble().text.startswith(words)
        assert not dialer.trouble().is_hopeless
    found = record.read(where)
    assert found is not None
    assert (found.count, found.refused, found.delay) == (1, True, record.REFUSED_PAUSE)
    assert f"\nThe last start failed: {os.strerror(errno.EAGAIN)}" in str(client.not_running(where))
    monkeypatch.setattr(dial, "spawn_detached", lambda *_: None)
    held = start(where, {}, clock=lambda: time.time() + record.REFUSED_PAUSE)
    assert held is not None
    os.close(held)
    found = record.read(where)
    assert found is not None
    assert (found.count, found.refused) == (2, False)
