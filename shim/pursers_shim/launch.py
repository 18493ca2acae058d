"""Locks that say who is the daemon, and a process that belongs to nobody: no pipe, terminal, session, parent of ours.

The locks are POSIX record locks (fcntl): the kernel frees them when their process ends, and one can ask who holds one
without taking it. A process loses such a lock as soon as it closes any descriptor of that file: never call
`lock_holder` in the process that holds the lock.
"""

import fcntl
import os
import signal
import struct
import sys
from collections.abc import Mapping

__all__ = ["daemon_environment", "lock_holder", "spawn_detached", "take_lock"]

KEPT = ("HOME", "PATH", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR")
KEPT_PREFIXES = ("LC_", "XDG_", "PURSERSD_")

HIGHEST_DESCRIPTOR = 65536
"""Descriptors up to this one are closed in the daemon-to-be; the system's own limit may be a million."""

# struct flock: l_type, l_whence, l_start, l_len, l_pid; macOS has the two shorts at the end.
_FLOCK = "@qqihh" if sys.platform == "darwin" else "@hhqqi"
_FLOCK_SIZE = 64


def lock_holder(path: str) -> int | None:
    """The pid of the process that holds a lock on `path`, None if nobody does. Takes nothing and creates nothing.

    0 stands for a holder that cannot be named, because it lives in another pid namespace.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, _pack(fcntl.F_WRLCK))
    finally:
        os.close(fd)
    kind, pid = _unpack(answer)
    return None if kind == fcntl.F_UNLCK else max(pid, 0)


def take_lock(path: str) -> int | None:
    """A descriptor that holds the lock on `path` until it is closed, or None if another process has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(fd)
        return None
    return fd


def daemon_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the daemon may inherit: nothing of the host that happens to start it, and no credential."""
    return {k: v for k, v in environ.items() if k in KEPT or k.startswith(KEPT_PREFIXES)}


def spawn_detached(argv: list[str], environ: Mapping[str, str], log: str) -> None:
    """Start `argv` as its own session, two forks away, with stderr in the new file `log` and nothing else inherited.

    Returns when it runs, after a few milliseconds. Raises OSError when the system gives no process for it, or its log
    cannot be made; what goes wrong later stands in `log`. It holds the lock on `log` for as long as it lives with that stderr:
    it is nobody's child, so this is how its early death shows. Some hosts end every descendant of theirs (opencode), so
    the process must not have one for a parent.
    """
    running, becoming = os.pipe()
    try:
        child = os.fork()
    except OSError:
        os.close(running)
        os.close(becoming)
        raise
    if child:
        os.close(becoming)
        os.waitpid(child, 0)
        failure = os.read(running, 8)  # ends when the last copy of `becoming` is closed: by exec, or by its failure
        os.close(running)
        if failure:
            raise OSError(int(failure), os.strerror(int(failure)))
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        _become(argv, environ, log, becoming)
    except OSError as wrong:
        _tell(wrong, becoming, argv[0])
    finally:
        os._exit(127)


def _tell(wrong: OSError, becoming: int, program: str) -> None:
    """Say why there will be no daemon: to the one who waits, or, once he has been let go of, in the log."""
    try:
        os.write(becoming, b"%d" % (wrong.errno or 0))
    except OSError:
        os.write(2, f"cannot start {program}: {wrong}\n".encode())


def _become(argv: list[str], environ: Mapping[str, str], log: str, becoming: int) -> None:
    os.chdir("/")
    os.umask(0o077)
    null = os.open(os.devnull, os.O_RDWR)
    errors = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    os.fchmod(errors, 0o600)
    # Lift them above the standard three first: with stdin closed, `null` could be any of these.
    null, errors, becoming = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (null, errors, becoming))
    for source, target in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(source, target)
    os.closerange(3, becoming)
    os.closerange(becoming + 1, max(min(os.sysconf("SC_OPEN_MAX"), HIGHEST_DESCRIPTOR), becoming + 1))
    _lock_stderr()
    # exec resets what we catch, but not what we or the host ignore.
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.execve(argv[0], argv, dict(environ))


def _lock_stderr() -> None:
    # Last of all: closing any other descriptor of the file would free it again.
    try:
        fcntl.lockf(2, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # An earlier daemon is on its way out. Ours seems to live until that one is gone: a delay and nothing worse.
        return


def _pack(kind: int) -> bytes:
    fields = (0, 0, 0, kind, os.SEEK_SET) if sys.platform == "darwin" else (kind, os.SEEK_SET, 0, 0, 0)
    return struct.pack(_FLOCK, *fields).ljust(_FLOCK_SIZE, b"\0")


def _unpack(answer: bytes) -> tuple[int, int]:
    """(l_type, l_pid) of a struct flock."""
    fields = struct.unpack_from(_FLOCK, answer)
    return (fields[3], fields[2]) if sys.platform == "darwin" else (fields[0], fields[4])
