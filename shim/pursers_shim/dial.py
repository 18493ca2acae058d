"""Finding the daemon of this user, and starting exactly one when there is none.

`connect`, `daemon_pid` and `start` each do one thing at once and never wait; the shim's `Dialer` and pursersctl build
their patience on them. A daemon that is busy, stopped or still starting holds its lock: it is never taken for a dead one.
"""

import errno
import os
import socket
import stat
import sys
import time
from collections.abc import Callable, Mapping

from pursers_shim import service, starts
from pursers_shim.launch import daemon_environment, lock_holder, spawn_detached, take_lock
from pursers_shim.paths import HOME_VARIABLE, PathError, Place, check_folder, place, unlockable

__all__ = [
    "AUTOSTART_VARIABLE",
    "Absent",
    "Busy",
    "DialError",
    "Dialer",
    "Trouble",
    "WrongPeer",
    "connect",
    "daemon_pid",
    "is_starting",
    "peer_uid",
    "reserve_start",
    "start",
]

AUTOSTART_VARIABLE = "PURSERSD_AUTOSTART"
"""Set to 0, no daemon is started automatically."""

START_LIMIT = 10.0
"""Seconds that a started daemon may take until it holds its lock; then somebody else may start one."""

FIRST_DELAY, LAST_DELAY = 0.05, 2.0
"""Seconds between two attempts: doubles from the first to the last, plus or minus a quarter."""

STARTING_DELAY = 0.1
"""Longest pause in the first START_LIMIT seconds: a daemon starts in about one second, and somebody waits for it."""


class DialError(Exception):
    """The daemon cannot be reached; the text says why."""


class Absent(DialError):
    """Nobody listens."""


class Busy(DialError):
    """Somebody listens but has no room for one more at this moment."""


class WrongPeer(DialError):
    """The one who listens is not us. Nothing was sent."""


class Trouble:
    """Why there is no link: for the model and the person behind it."""

    __slots__ = ("action", "is_hopeless", "text")

    def __init__(self, text: str, action: str, is_hopeless: bool = False) -> None:
        self.text = text
        self.action = action
        """What to do about it, as a sentence."""
        self.is_hopeless = is_hopeless
        """Waiting does not help: a person must do something."""

    def __repr__(self) -> str:
        return f"<Trouble {self.text} {self.action}>"


def connect(where: Place) -> socket.socket:
    """A non-blocking connection to a daemon that belongs to this user; the caller closes it.

    Raises Absent, Busy, WrongPeer, or PathError if the folder or the socket file is not one that we may use.
    """
    try:
        if not check_folder(where.folder):
            raise Absent(f"{where.folder} does not exist")
        _check_socket(where.socket)
        return _connected(where.socket)
    except OSError as wrong:
        raise _translated(wrong, where.socket) from wrong


def _connected(path: str) -> socket.socket:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.setblocking(False)
        link.connect(path)
        uid = peer_uid(link)
        if uid != os.getuid():
            raise WrongPeer(f"{path} is served by user {uid}, not by you ({os.getuid()})")
    except (OSError, WrongPeer):
        link.close()
        raise
    return link


def daemon_pid(where: Place) -> int | None:
    """The pid of the living daemon, listening or not; None if there is none; 0 if it cannot be named.

    Raises PathError where nobody can know. Never call it in the daemon itself (see pursers_shim.launch).
    """
    try:
        return lock_holder(where.lock)
    except OSError as wrong:
        raise unlockable(where.lock, wrong) from wrong


def start(
    where: Place,
    environ: Mapping[str, str],
    started_by: str = "auto",
    *,
    patient: bool = True,
    clock: Callable[[], float] = time.time,
) -> int | None:
    """Start one daemon, detached from us, and return a descriptor that keeps others from starting a second one.

    Close it when the daemon accepts connections or holds its lock, or after START_LIMIT. None: nothing was started, since
    a daemon lives, another process is starting one, or (if `patient`) the last start was a moment ago. Where a service is
    installed its manager is asked instead, and the daemon that it starts counts its starts itself.
    Raises PathError for a folder that is not safe, OSError if the system refuses.
    """
    check_folder(where.folder, create=True)
    held = take_lock(where.start_lock)
    if held is None:
        return None
    now = clock()
    before = (starts.read(where) or starts.Starts()).recent(now)
    try:
        if daemon_pid(where) is not None or (patient and now < before.last + before.delay):
            os.close(held)
            return None
        variables = daemon_environment(environ)
        ask = service.start_command(where, environ)
        if ask is not None:
            spawn_detached(ask, {**variables, **service.manager_environment(environ)}, where.ask_log)
        else:
            starts.note_start(where, before.count + 1 if patient else 0, now)
            argv = [sys.executable, "-I", "-m", "pursersd", "--started-by", started_by]
            spawn_detached(argv, variables, where.start_log)
    except OSError as wrong:
        starts.note_refusal(where, before, now, wrong.strerror or str(wrong))
        os.close(held)
        raise
    return held


def is_starting(where: Place) -> bool:
    """Is another process starting a daemon at this moment?"""
    return lock_holder(where.start_lock) is not None


def reserve_start(where: Place) -> int | None:
    """A descriptor that keeps other processes from starting a daemon until it is closed; None if one is doing so."""
    return take_lock(where.start_lock)


class Dialer:
    """Repeats `connect`, and `start` where allowed, without ever waiting: call `attempt` when `next_at` has come."""

    def __init__(self, environ: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self.next_at = clock()
        """When the next attempt is due (monotonic)."""
        self._environ = environ
        self._clock = clock
        self._failures = 0
        self._eager_until = self.next_at + START_LIMIT
        self._started_at = 0.0
        self._start_lock: int | None = None
        self._by_service = False
        """A service manager was asked, whose daemon is none of those that we start."""
        self._trouble: Trouble | None = None
        """Why the last attempt failed; None while a daemon is starting."""
        self._refusal: Trouble | None = None
        """What the daemon said when it last sent us away."""
        self._place: Place | None = None
        try:
            self._place = place(environ)
        except PathError as wrong:
            self._trouble = _path_trouble(wrong)

    def attempt(self) -> socket.socket | None:
        """Connect; if nobody listens, see to it that somebody will. None: not yet, `trouble` says why."""
        if self._place is None:
            self.next_at = self._clock() + LAST_DELAY
            return None
        link: socket.socket | None = None
        try:
            link = self._connect(self._place)
        except PathError as wrong:
            self._trouble = _path_trouble(wrong)
        if link is None:
            self._refusal = None
            self._back_off(STARTING_DELAY if self._clock() < self._eager_until else LAST_DELAY)
        else:
            self._release(came_up=True)
            self._trouble = self._refusal or _busy(self._place)  # until it says `welcome`
        return link

    def trouble(self) -> Trouble:
        """Why there is no link at this moment."""
        if self._trouble is not None and (self._trouble.is_hopeless or self._refusal is not None):
            return self._trouble
        return _crash_loop(self._place) or self._trouble or _starting(self._place, self._by_service)

    def welcomed(self) -> None:
        """The daemon has taken us in: after the next loss try at once."""
        self._failures = 0
        self._refusal = None

    def lost(self, why: Trouble | None = None) -> None:
        """The connection ended, for the reason `why` if it is known: try again, at once if it had been of use."""
        self._refusal = why
        self._trouble = why or Trouble("The daemon ended or closed the connection.", "See why with: pursersctl logs")
        self._eager_until = self._clock() + START_LIMIT
        if self._failures or why is not None:
            self._back_off(LAST_DELAY)
        else:
            self._failures = 1
            self.next_at = self._clock()

    def hurry(self) -> None:
        """Somebody waits now: do not sleep out a long pause."""
        self.next_at = min(self.next_at, self._clock() + FIRST_DELAY)

    def _back_off(self, longest: float) -> None:
        pause = min(FIRST_DELAY * 2**self._failures, longest)
        self._failures = min(self._failures + 1, 16)
        self.next_at = self._clock() + pause * (0.75 + os.urandom(1)[0] / 512)

    def _connect(self, where: Place) -> socket.socket | None:
        try:
            return connect(where)
        except Absent:
            self._trouble = self._nobody(where)
        except Busy:
            self._trouble = _busy(where)
        except WrongPeer as wrong:
            action = f"Ask its owner to end it, or set {HOME_VARIABLE} to a folder of yours."
            self._trouble = Trouble(f"{wrong}.", action, is_hopeless=True)
        return None

    def _nobody(self, where: Place) -> Trouble | None:
        """Nobody listens: see whether a daemon lives all the same, and start one if not. None while one is starting."""
        pid = daemon_pid(where)
        if pid is not None:
            self._release(came_up=True)
            return Trouble(f"The daemon{_named(pid)} runs but does not listen yet.", _LOOK)
        if os.path.lexists(where.stopped):
            self._release()
            text = "The daemon was stopped with `pursersctl stop`, so nobody starts it automatically."
            return Trouble(text, _START, is_hopeless=True)
        if self._environ.get(AUTOSTART_VARIABLE) == "0":
            text = f"No daemon listens at {where.socket}, and automatic start is off ({AUTOSTART_VARIABLE}=0)."
            return Trouble(text, _START)
        return self._begin(where)

    def _begin(self, where: Place) -> Trouble | None:
        if self._start_lock is not None:
            is_under_way = self._by_service or _is_held(where.start_log)
            if self._clock() < self._started_at + START_LIMIT and is_under_way:
                return None
            self._release()  # it has ended, or it takes too long
        try:
            self._start_lock = start(where, self._environ)
            self._by_service = service.start_command(where, self._environ) is not None
        except PathError as wrong:
            return _path_trouble(wrong)
        except OSError as wrong:
            return _refused_by_system(wrong.strerror or str(wrong))
        self._started_at = self._clock()
        return None

    def _release(self, *, came_up: bool = False) -> None:
        if self._start_lock is not None:
            if came_up and not self._by_service and self._place is not None:
                starts.note_success(self._place)
            os.close(self._start_lock)
            self._start_lock = None


_START = "Start it with: pursersctl start"
_LOOK = "Look at it with: pursersctl status"
_SERVICE = "Look at it with: pursersctl service status"


def _named(pid: int | None) -> str:
    return f" (process {pid})" if pid else ""


def _busy(where: Place) -> Trouble:
    try:
        pid = daemon_pid(where)
    except PathError as wrong:
        return _path_trouble(wrong)
    if pid is None:
        text = (
            f"Who listens at {where.socket} does not answer yet: a service manager that starts the daemon, as a rule."
        )
        return Trouble(text, _SERVICE)
    return Trouble(f"The daemon{_named(pid)} runs but does not answer.", _LOOK)


def _starting(where: Place | None, by_service: bool) -> Trouble:
    """A daemon was started and is not there yet; what it printed, if anything, says why."""
    if where is None:
        return Trouble("The daemon is starting.", _LOOK)
    words = (by_service and starts.last_words(where.ask_log)) or starts.last_words(where.start_log)
    text = f"The daemon was started but is not ready. It printed: {words}" if words else "The daemon is still starting."
    return Trouble(text, _again(where))


def _crash_loop(where: Place | None) -> Trouble | None:
    """That every daemon that was started lately has ended, if so; hopeless unless one is on its way at this moment, or
    the last one came up: the next one does soon."""
    before = starts.read(where) if where is not None else None
    if where is None or before is None:
        return None
    if before.refused and before.recent(time.time()) is before:
        return _refused_by_system(before.words)
    if before.recent(time.time()).count < 2:
        return None
    words = starts.said(where, before)
    if not words and before.count < starts.LOOP:
        return None
    said = f"printed: {words}" if words else "printed nothing."
    if _is_held(where.start_log) or _is_held(where.lock):
        text = f"The daemon is starting, number {before.count} in a row. The one before {said}"
        return Trouble(text, _again(where))
    pause = max(before.last + before.delay - time.time(), 0)
    text = f"The daemon was started {before.count} times in a row and ended each time. The last one {said}"
    is_loop = before.count >= starts.LOOP and not before.came_up
    return Trouble(f"{text} The next start is in {pause:.0f} s.", _again(where), is_loop)


def _refused_by_system(why: str) -> Trouble:
    return Trouble(f"The daemon cannot be started: {why}. It is tried again all the time.", _START)


def _again(where: Place) -> str:
    return f"Try again; if that does not help, read {where.start_log} or run: pursersctl start"


def _is_held(path: str) -> bool:
    try:
        return lock_holder(path) is not None
    except OSError:
        return False


def _path_trouble(wrong: PathError) -> Trouble:
    action = "After that, call again; no restart of this program is needed."
    if HOME_VARIABLE in str(wrong):
        action = f"After that, call again; another {HOME_VARIABLE} counts in new conversations."
    return Trouble(str(wrong), action, is_hopeless=True)


def _check_socket(path: str) -> None:
    """Raise PathError if something else than a socket lies at `path`."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "a symbolic link" if stat.S_ISLNK(mode) else "a file"
        raise PathError(f"{path} is {kind}, not a socket. Move it away: the daemon makes its socket there.")


def _translated(wrong: OSError, path: str) -> DialError | PathError:
    if wrong.errno in (errno.ENOENT, errno.ECONNREFUSED, errno.ENOTCONN, errno.ECONNRESET):
        return Absent(f"nobody listens at {path}")
    if wrong.errno in (errno.EAGAIN, errno.EINPROGRESS, errno.EMFILE, errno.ENFILE, errno.ENOBUFS):
        return Busy(f"{path}: {wrong.strerror}")
    return PathError(f"Cannot connect to {path}: {wrong.strerror}. Look at it with: ls -la {path}")


def peer_uid(link: socket.socket) -> int:
    """The user who serves the other end, from the kernel."""
    if sys.platform == "darwin":
        credentials = link.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: struct xucred, version and uid first
    else:
        credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)  # struct ucred: pid, uid, gid
    return int.from_bytes(credentials[4:8], sys.byteorder)
