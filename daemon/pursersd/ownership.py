"""Be the one daemon of this user: a lock held for life and a socket that only this user can reach."""

import errno
import fcntl
import os
import socket
import stat
from pathlib import Path

from pursers_shim.paths import PathError, Place, check_folder
from pursersd.errors import OwnershipError

BACKLOG = 256
"""Connections that wait while we are busy: fifty hosts may start at once."""


class Ownership:
    """The lock and the listening socket of a running daemon; `release` gives both back."""

    def __init__(self, place: Place, lock: int, listener: socket.socket, *, bound: bool) -> None:
        self.place = place
        self.listener = listener
        self._lock = lock
        self._bound = bound

    def release(self) -> None:
        """Remove the socket file, if it is ours, and let the next daemon in."""
        self.listener.close()
        if self._bound:
            Path(self.place.socket).unlink(missing_ok=True)
        os.close(self._lock)


def take(place: Place) -> Ownership:
    """Become the daemon, or raise OwnershipError saying who is or what is unsafe.

    The lock decides, never the socket file: a socket on disk says nothing about a listener.
    """
    try:
        check_folder(place.folder, create=True)
    except (PathError, OSError) as error:
        raise OwnershipError(str(error)) from error
    lock = _lock(place)
    try:
        listener = _listen(place.socket)
    except BaseException:
        os.close(lock)
        raise
    Path(place.stopped).unlink(missing_ok=True)
    return Ownership(place, lock, listener, bound=True)


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
            raise OwnershipError(
                f"Another pursersd of this user is running (it holds {place.lock}). See it with: pursersctl status"
            ) from error
        raise OwnershipError(f"Cannot lock {place.lock}: {error.strerror}") from error
    return lock


def _listen(path: str) -> socket.socket:
    """Bind the socket in the place of a stale one; anything else at that path is somebody's file and stays."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        pass
    else:
        if not stat.S_ISSOCK(found.st_mode):
            raise OwnershipError(f"{path} is not a socket but something else lies there. Move it away and start again.")
        Path(path).unlink()  # we hold the lock, so nobody can be listening to it
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
        raise OwnershipError(f"Cannot listen on {path}: {error.strerror or error}") from error
    return listener
