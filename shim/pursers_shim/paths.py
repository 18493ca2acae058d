"""Where the daemon of this user is found: the same place in every environment of the same user.

PURSERSD_HOME=/dir makes a private instance whose files all lie below /dir. Without it the socket lies in
/tmp/pursersd-UID: a path that depends on nothing but the user, because a host may start us with any environment, and
that is always short enough for a socket. The folder is 0700 and ours, or it is refused (see `check_folder`).

Imported by the shim at start-up: standard library only, and cheap.
"""

import errno
import os
import stat
from collections.abc import Mapping

__all__ = [
    "HOME_VARIABLE",
    "SOCKET_LIMIT",
    "PathError",
    "Place",
    "check_folder",
    "check_socket_path",
    "place",
    "remedy",
    "unlockable",
]

HOME_VARIABLE = "PURSERSD_HOME"

SOCKET_LIMIT = 103
"""Bytes of a socket path that every platform takes: macOS has room for 104 with the closing zero, Linux for 108."""


class PathError(Exception):
    """A path that we refuse to use; the text says why and what to do."""


class Place:
    """The runtime folder of one daemon and the files in it."""

    __slots__ = ("ask_log", "folder", "home", "lock", "socket", "start_lock", "start_log", "starts", "stopped")

    def __init__(self, folder: str, home: str | None) -> None:
        self.folder = folder
        self.home = home
        """The private instance's folder, or None for the user's one daemon."""
        self.socket = folder + "/pursersd.sock"
        self.lock = folder + "/pursersd.lock"
        """Held (fcntl) by the daemon for as long as it lives."""
        self.start_lock = folder + "/start.lock"
        """Held by whoever is starting a daemon."""
        self.start_log = folder + "/start.log"
        """What the last automatically started daemon printed before its own log was open."""
        self.ask_log = folder + "/ask.log"
        """What the service manager printed when it was last asked to start one."""
        self.starts = folder + "/starts"
        """How the last automatic starts went; see `starts`."""
        self.stopped = folder + "/stopped"
        """Exists after `pursersctl stop`: nobody starts a daemon automatically."""


def place(environ: Mapping[str, str]) -> Place:
    """The Place for this user and environment. Raises PathError for a PURSERSD_HOME that cannot work."""
    home = environ.get(HOME_VARIABLE)
    if not home:
        return Place(f"/tmp/pursersd-{os.getuid()}", None)
    if not os.path.isabs(home):
        raise PathError(f"{HOME_VARIABLE} must be an absolute path, not {home!r}. Set it to a full path or unset it.")
    try:
        os.fsencode(home).decode()
    except UnicodeDecodeError as error:
        # Daemon, shims and pursersctl tell each other paths, and a host's file holds this one.
        raise PathError(f"{HOME_VARIABLE} is not UTF-8. Set it to another path or unset it.") from error
    found = Place(os.path.normpath(home) + "/run", os.path.normpath(home))
    check_socket_path(found.socket)
    return found


def check_socket_path(path: str) -> None:
    """Raise PathError if `path` is too long to be a socket."""
    size = len(os.fsencode(path))
    if size > SOCKET_LIMIT:
        raise PathError(
            f"The socket path {path} has {size} bytes; the limit is {SOCKET_LIMIT}. "
            f"Set {HOME_VARIABLE} to a shorter path."
        )


def unlockable(path: str, wrong: OSError) -> PathError:
    """The error for a lock file that can be neither locked nor asked about."""
    return PathError(f"Cannot lock {path}: {wrong.strerror}. {remedy(wrong)}")


def remedy(wrong: OSError) -> str:
    """What to do where a lock or a socket cannot be had."""
    if wrong.errno in (errno.EACCES, errno.ENOSPC, errno.EROFS):
        return f"Make its folder writable for you, or set {HOME_VARIABLE} to another one."
    return f"Its file system may have no locks or sockets: set {HOME_VARIABLE} to a folder on a local one."


def check_folder(folder: str, create: bool = False) -> bool:
    """Make sure that `folder` is a real directory, ours alone (0700); raise PathError otherwise.

    Returns False if it does not exist and `create` is false. Nobody else can then put a socket in our place.
    """
    if create:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        try:  # noqa: SIM105 - contextlib would cost every shim memory
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
    try:
        found = os.lstat(folder)
    except FileNotFoundError:
        return False
    if stat.S_ISLNK(found.st_mode):
        raise PathError(f"{folder} is a symbolic link. Remove it: the daemon makes this folder itself.")
    if not stat.S_ISDIR(found.st_mode):
        raise PathError(f"{folder} is not a folder. Move it away: the daemon makes this folder itself.")
    if found.st_uid != os.getuid():
        raise PathError(
            f"{folder} belongs to user {found.st_uid}, not to you ({os.getuid()}). Ask its owner to remove it, "
            f"or set {HOME_VARIABLE} to a folder of yours."
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise PathError(
            f"{folder} is open to other users (mode {stat.S_IMODE(found.st_mode):04o}). Run: chmod 700 {folder}"
        )
    return True
