"""ownership: exactly one daemon, at a place that only this user can reach."""

import errno
import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pursers_shim import paths
from pursers_shim.dial import peer_uid
from pursers_shim.launch import lock_holder
from pursersd.errors import OwnershipError
from pursersd.ownership import Ownership, take
from pursersd.rules.fencing import Lock
from scripted_daemon import short_home


@pytest.fixture
def place() -> Iterator[paths.Place]:
    with short_home() as folder:
        yield paths.place({"PURSERSD_HOME": str(folder)})


@pytest.fixture
def folder(place: paths.Place) -> Path:
    """The runtime folder, made as the daemon makes it."""
    made = Path(place.folder)
    made.mkdir(0o700)
    return made


def refused(place: paths.Place) -> str:
    """Why this process may not be the daemon. It must not have left anything open or locked."""
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OwnershipError) as caught:
        take(place)
    assert len(os.listdir("/dev/fd")) == before
    return str(caught.value)


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def test_the_daemon_listens_behind_closed_doors(place: paths.Place) -> None:
    before = os.umask(0)
    try:
        ownership = take(place)
    finally:
        os.umask(before)
    try:
        assert [mode(path) for path in (place.folder, place.socket, place.lock)] == [0o700, 0o600, 0o600]
        assert not ownership.listener.getblocking()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(place.socket)
            server, _ = ownership.listener.accept()
            with server:
                assert peer_uid(server) == peer_uid(client) == os.getuid()
    finally:
        ownership.release()
    assert os.listdir(place.folder) == ["pursersd.lock"]


def test_a_stop_marker_is_lifted_by_the_next_daemon(place: paths.Place, folder: Path) -> None:
    Path(place.stopped).touch()
    take(place).release()
    assert not Path(place.stopped).exists()


def test_a_second_daemon_is_refused_and_harms_nothing(place: paths.Place) -> None:
    """In another process: a record lock does not stop the process that holds it."""
    ownership = take(place)
    try:
        Path(place.stopped).touch()
        second = subprocess.run(
            [sys.executable, "-m", "pursersd"],
            env={"PURSERSD_HOME": str(place.home), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert second.returncode == 1
        assert "Another pursersd of this user is running" in second.stderr
        assert "pursersctl status" in second.stderr
        assert "Traceback" not in second.stderr
        assert Path(place.socket).exists()
        assert Path(place.stopped).exists()
    finally:
        ownership.release()


HOLDER = """
import sys
from pursers_shim import paths
from pursersd.ownership import take
ownership = take(paths.place({"PURSERSD_HOME": sys.argv[1]}))
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_killed_daemon_leaves_a_stale_socket_that_the_next_one_replaces(place: paths.Place) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place.home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"ready\n"
            assert lock_holder(place.lock) == holder.pid
            assert "Another pursersd" in refused(place)
        finally:
            holder.kill()
    assert stat.S_ISSOCK(os.lstat(place.socket).st_mode)
    ownership = take(place)
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(place.socket)
    finally:
        ownership.release()


def test_the_lock_is_free_after_release(place: paths.Place) -> None:
    for _ in range(2):
        take(place).release()
        assert not lock_holder(place.lock)


@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_something_else_in_the_sockets_place_stays(place: paths.Place, folder: Path, kind: str) -> None:
    there = Path(place.socket)
    match kind:
        case "file":
            there.write_text("mine")
        case "folder":
            there.mkdir()
        case "link":
            (folder / "other").write_text("mine")
            there.symlink_to(folder / "other")
        case "pipe":
            os.mkfifo(there)
    assert "is not a socket but something else lies there. Move it away" in refused(place)
    assert os.path.lexists(there)
    assert not lock_holder(place.lock)


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_something_else_in_the_locks_place(place: paths.Place, folder: Path, kind: str) -> None:
    target = folder / "target"
    if kind == "link":
        Path(place.lock).symlink_to(target)
    else:
        Path(place.lock).mkdir()
    text = refused(place)
    assert text.startswith(f"Cannot open {place.lock}")
    assert "Move it away" in text
    assert not target.exists()


def test_a_lock_that_cannot_be_had_says_why(place: paths.Place, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(fd: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    assert refused(place) == (
        f"Cannot lock {place.lock}: No locks available. Its file system may have no locks or sockets: "
        "set PURSERSD_HOME to a folder on a local one."
    )


def test_a_folder_that_is_a_link_is_refused(place: paths.Place) -> None:
    elsewhere = Path(str(place.home), "elsewhere")
    elsewhere.mkdir(0o700)
    Path(place.folder).symlink_to(elsewhere)
    assert "is a symbolic link. Remove it" in refused(place)
    assert not os.listdir(elsewhere)


def test_a_file_in_the_folders_place_is_refused(place: paths.Place) -> None:
    Path(place.folder).write_text("mine")
    assert "is not a folder. Move it away" in refused(place)


@pytest.mark.parametrize("bits", [0o770, 0o720, 0o701, 0o777])
def test_a_folder_that_others_may_enter_is_refused(place: paths.Place, folder: Path, bits: int) -> None:
    folder.chmod(bits)
    assert f"chmod 700 {folder}" in refused(place)
    assert not os.listdir(folder)


def test_somebody_elses_folder_is_refused(place: paths.Place, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    text = refused(place)
    assert f"belongs to user {owner}, not to you ({owner + 1})" in text
    assert "PURSERSD_HOME" in text
    assert not os.listdir(folder)


def test_a_home_that_cannot_be_made_is_refused(place: paths.Place) -> None:
    nowhere = paths.place({"PURSERSD_HOME": f"{place.home}/file/below"})
    Path(str(place.home), "file").write_text("in the way")
    assert "Not a directory" in refused(nowhere)


def test_a_socket_that_cannot_be_bound_gives_the_lock_back(place: paths.Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "socket", place.folder + "/" + "x" * 200)
    assert refused(place).startswith("Cannot listen on")
    assert not lock_holder(place.lock)


@pytest.mark.parametrize(
    ("number", "advice"),
    [(errno.EOPNOTSUPP, "may have no locks or sockets: set"), (errno.EPERM, "may have no"), (errno.EACCES, "writable")],
)
def test_a_file_system_without_sockets_is_named_with_what_to_do(
    place: paths.Place, monkeypatch: pytest.MonkeyPatch, number: int, advice: str
) -> None:
    class Unbindable(socket.socket):
        def bind(self, address: object) -> None:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(socket, "socket", Unbindable)
    text = refused(place)
    assert text.startswith(f"Cannot listen on {place.socket}: {os.strerror(number)}. ")
    assert advice in text
    assert "PURSERSD_HOME" in text


def test_release_leaves_no_descriptor(place: paths.Place) -> None:
    before = len(os.listdir("/dev/fd"))
    ownership: Ownership = take(place)
    ownership.release()
    assert len(os.listdir("/dev/fd")) == before


def test_a_lock_whose_file_was_removed_is_taken_again(place: paths.Place) -> None:
    ownership = take(place)
    try:
        assert (ownership.is_held, ownership.has_socket) == (True, True)
        Path(place.lock).unlink()
        assert not ownership.is_held
        assert ownership.regain() is Lock.HELD
        assert (ownership.is_held, ownership.has_socket) == (True, True)
        # Another process agrees, and asking again harms nothing.
        assert ownership.regain() is Lock.HELD
        assert holder_of(place.lock) == os.getpid()
    finally:
        ownership.release()
    assert os.listdir(place.folder) == ["pursersd.lock"]


def test_a_lock_that_another_daemon_made_anew_is_lost_and_its_socket_stays(place: paths.Place) -> None:
    ownership = take(place)
    shutil.rmtree(place.folder)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place.home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"ready\n"
            assert ownership.regain() is Lock.TAKEN
            assert (ownership.is_held, ownership.has_socket) == (False, False)
            ownership.release()
            assert Path(place.socket).exists()
        finally:
            holder.kill()


def test_a_daemon_whose_lock_was_removed_is_not_replaced_as_long_as_it_listens(place: paths.Place) -> None:
    """Also when it is stopped: the kernel takes the connection in its name."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(place.home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"ready\n"
            Path(place.lock).unlink()
            holder.send_signal(signal.SIGSTOP)
            before = os.lstat(place.socket).st_ino
            assert "whose lock was removed" in refused(place)
            assert os.lstat(place.socket).st_ino == before
            assert not Path(place.lock).exists()  # left for the one whose it is
        finally:
            holder.kill()


def test_a_lock_is_blocked_by_what_lies_in_its_place(place: paths.Place) -> None:
    ownership = take(place)
    try:
        aside = Path(place.folder).rename(str(place.home) + "/aside")
        Path(place.folder).touch()
        assert ownership.regain() is Lock.BLOCKED
        Path(place.folder).unlink()
        aside.rename(place.folder)
        assert (ownership.is_held, ownership.has_socket) == (True, True)
        shutil.rmtree(place.folder)
        assert ownership.regain() is Lock.HELD
        assert mode(place.folder) == 0o700
        assert not ownership.has_socket
    finally:
        ownership.release()


def holder_of(lock: str) -> int:
    """Who holds a lock, asked in another process: a look of ours would free it."""
    code = "import sys; from pursers_shim.launch import lock_holder; print(lock_holder(sys.argv[1]) or 0)"
    return int(subprocess.run([sys.executable, "-c", code, lock], capture_output=True, check=True).stdout)


# --- a socket that a service manager hands over ---


@contextmanager
def handed(place: paths.Place, path: str | None = None) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path or place.socket)
        listener.listen(8)
        yield listener


@pytest.mark.usefixtures("folder")
def test_a_handed_socket_is_used_and_never_unlinked(place: paths.Place) -> None:
    with handed(place) as listener, socket.socket(socket.AF_UNIX) as other:
        before = os.lstat(place.socket).st_ino
        ownership = take(place, [other, listener])
        assert ownership.is_handed
        assert ownership.has_socket
        assert ownership.listener is listener
        assert other.fileno() == -1
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(place.socket)
        ownership.release()
        assert os.lstat(place.socket).st_ino == before
        assert lock_holder(place.lock) is None


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("fate", ["removed", "replaced"])
def test_a_handed_socket_that_nobody_reaches_is_closed_and_one_of_our_own_made(place: paths.Place, fate: str) -> None:
    with handed(place) as listener:
        os.unlink(place.socket)
        if fate == "replaced":
            with handed(place):
                pass  # a stale one of somebody who has ended
        ownership = take(place, [listener])
        assert not ownership.is_handed
        assert listener.fileno() == -1
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(place.socket)
        ownership.release()
        assert not os.path.lexists(place.socket)


@pytest.mark.usefixtures("folder")
def test_a_handed_socket_does_not_let_us_push_a_living_listener_aside(place: paths.Place) -> None:
    """Its file was replaced by that of another process, which listens."""
    script = (
        "import socket,sys; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); "
        "print('listens',flush=True); sys.stdin.read()"
    )
    with handed(place) as listener:
        os.unlink(place.socket)
        with subprocess.Popen(
            [sys.executable, "-c", script, place.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == b"listens\n"
            with pytest.raises(OwnershipError, match="Another pursersd listens"):
                take(place, [listener])
            other.kill()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("kind", ["datagram", "elsewhere"])
def test_what_is_not_a_listener_at_our_path_is_not_used(place: paths.Place, kind: str) -> None:
    if kind == "datagram":
        wrong = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        wrong.bind(place.folder + "/d")
    else:
        wrong = socket.socket(socket.AF_UNIX)
        wrong.bind(place.folder + "/elsewhere.sock")
        wrong.listen()
    with wrong:
        ownership = take(place, [wrong])
        assert not ownership.is_handed
        ownership.release()


@pytest.mark.usefixtures("folder")
def test_a_connection_is_not_taken_for_the_socket_that_it_came_in_by(place: paths.Place) -> None:
    """That is what a unit with Accept=yes hands over."""
    with handed(place) as listener, socket.socket(socket.AF_UNIX) as client:
        client.connect(place.socket)
        with listener.accept()[0] as connection:
            assert connection.getsockname() == place.socket
            with pytest.raises(OwnershipError, match="Another pursersd listens"):
                take(place, [connection])
