"""Be the one daemon of this user: a lock held for life and a socket that only this user can reach."""

import errno
import fcntl
import os
import socket
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from pursers_shim.launch import lock_holder
from pursers_shim.paths import PathError, Place, check_folder, remedy, unlockable
from pursersd.errors import OwnershipError
from pursersd.rules.fencing import Lock

BACKLOG = 256
"""Connections that wait while we are busy: fifty hosts may start at once."""


class Taken(OwnershipError):
    """Another process holds the lock."""


class Ownership:
    """The lock and the listening socket of a running daemon; `release` gives both back."""

    def __init__(self, place: Place, lock: int, listener: socket.socket, *, is_handed: bool = False) -> None:
        self.place = place
        self.listener = listener
        self.is_handed = is_handed
        """The socket belongs to a service manager, which goes on listening when we have left."""
        self._lock = lock
        self._lock_file = _identity(os.fstat(lock))
        self._socket_file = _found(place.socket)

    @property
    def is_held(self) -> bool:
        """Whether the file at the lock's path is the one that we hold: nobody else can lock it."""
        return _found(self.place.lock) == self._lock_file

    @property
    def has_socket(self) -> bool:
        """Whether the socket at its path is the one that we listen on."""
        return _found(self.place.socket) == self._socket_file

    def regain(self) -> Lock:
        """Lock the file that is at the lock's path now, a new one in a new folder if there is none."""
        try:
            check_folder(self.place.folder, create=True)
            lock = _lock(self.place)
        except Taken:
            return Lock.TAKEN
        except (OwnershipError, PathError, OSError):
            return Lock.BLOCKED
        found = _identity(os.fstat(lock))
        if found != self._lock_file:  # else it is back, and closing this second descriptor would free the lock
            os.close(self._lock)
            self._lock, self._lock_file = lock, found
        return Lock.HELD

    def release(self) -> None:
        """Remove the socket file, if it is still ours, and let the next daemon in."""
        self.listener.close()
        if self.is_held and self.has_socket and not self.is_handed:
            Path(self.place.socket).unlink(missing_ok=True)
        os.close(self._lock)


def take(place: Place, sockets: Sequence[socket.socket] = ()) -> Ownership:
    """Become the daemon, or raise OwnershipError saying who is or what is unsafe.

    The lock decides, never the socket file: a socket on disk says nothing about a listener. `sockets` were handed to us by a
    service manager: the one that is reached at our path is used; when we are the daemon, all others are closed.
    """
    try:
        check_folder(place.folder, create=True)
    except (PathError, OSError) as error:
        raise OwnershipError(str(error)) from error
    ours = next((found for found in sockets if _is_reached(found, place.socket)), None)
    if ours is None and _is_free(place.lock):
        _spare_the_served(place.socket)  # before we lock anything: he who listens there wants the lock back
    lock = _lock(place)
    try:
        for other in sockets:
            if other is not ours:
                other.close()
        listener = ours or _listen(place.socket)
        listener.setblocking(False)
    except BaseException:
        os.close(lock)
        raise
    Path(place.stopped).unlink(missing_ok=True)
    return Ownership(place, lock, listener, is_handed=ours is not None)


def _lock(place: Place) -> int:
    try:
        lock = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise OwnershipError(f"Cannot open {place.lock}: {error.strerror}. Move it away and start again.") from error
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(lock)
        if error.errno in (errno.EACCES, errno.EAGAIN):
            raise Taken(
                f"Another pursersd of this user is running (it holds {place.lock}). See it with: pursersctl status"
            ) from error
        raise OwnershipError(str(unlockable(place.lock, error))) from error
    return lock


Identity = tuple[int, int] | None
"""Device and number of a file; None if there is none."""


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino


def _found(path: str) -> Identity:
    try:
        return _identity(os.lstat(path))
    except OSError:
        return None


def _is_free(lock: str) -> bool:
    try:
        return lock_holder(lock) is None
    except OSError:
        return False  # taking it will say what is wrong


def _spare_the_served(path: str) -> None:
    """Raise OwnershipError if a daemon listens here although nobody holds the lock: its file was removed or replaced."""
    if _is_served(path):
        raise OwnershipError(
            f"Another pursersd listens at {path}, whose lock was removed, and notices that within seconds; or a service "
            "manager does, and starts one. Look again with: pursersctl status"
        )


def _is_served(path: str) -> bool:
    """Whether somebody listens at this socket, be he stopped or busy: the kernel takes the connection, or has no room."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except OSError as error:
            return error.errno in (errno.EAGAIN, errno.EINPROGRESS)
    return True


def _is_reached(handed: socket.socket, path: str) -> bool:
    """Whether who connects to `path` reaches this socket: one whose file was removed or replaced is of no use to anybody."""
    try:
        if handed.family != socket.AF_UNIX or handed.type != socket.SOCK_STREAM or handed.getsockname() != path:
            return False
        if not handed.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return False
    except OSError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except OSError as error:
            return error.errno in (errno.EAGAIN, errno.EINPROGRESS)  # its queue is full: somebody is there
        return _who_listens(probe) == _who_listens(handed)


def _who_listens(end: socket.socket) -> bytes:
    """The process that called listen(), as the kernel remembers it, for the socket itself and for everybody who connects."""
    if sys.platform != "linux":
        return b""
    return end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)


def _listen(path: str) -> socket.socket:
    """Bind the socket in the place of a stale one; anything else at that path is somebody's file and stays."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        pass
    else:
        if not stat.S_ISSOCK(found.st_mode):
            raise OwnershipError(f"{path} is not a socket but something else lies there. Move it away and start again.")
        _spare_the_served(path)
        Path(path).unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        before = os.umask(0o177)
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise OwnershipError(f"Cannot listen on {path}: {error.strerror or error}. {remedy(error)}") from error
    return listener
