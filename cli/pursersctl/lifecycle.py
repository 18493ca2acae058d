"""`pursersctl start`, `stop` and `restart`: the life of the daemon."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pursers_shim import dial, service
from pursers_shim.paths import HOME_VARIABLE, PathError, Place, check_folder
from pursersctl import client, output, service_managers
from pursersctl.errors import Busy, Failed, NotRunning, Refused

START_TIMEOUT = 20.0  # seconds until a started daemon must answer
STOP_TIMEOUT = 20.0  # seconds until a daemon that was told to stop must be gone
DRAIN_TIMEOUT = 75.0  # the same, when calls in progress may end first: the longest that can be configured, and some
SIGNAL_TIMEOUT = 5.0  # seconds that each signal of --force has for its effect
POLL_INTERVAL = 0.02  # seconds between two looks at the lock
LAST_WORDS = 2000  # characters of a failed daemon's output that are shown


def start(place: Place, environ: Mapping[str, str]) -> None:
    """Allow a daemon again and see to it that one runs and answers."""
    _own_folder(place)
    _remove(place.stopped)
    pid = dial.daemon_pid(place)
    if pid is not None:
        client.ask(place, "ping")
        output.say(f"pursersd is already running (pid {pid}).")
        return
    output.say(f"pursersd started (pid {launch(place, environ)}).")


def stop(place: Place, *, drain: bool, force: bool) -> None:
    """End the daemon and keep shims from starting another one, until `start`."""
    _own_folder(place)
    _forbid_start(place)
    pid = _living(place)
    service_managers.hold(place, os.environ, force=force)
    pid = pid or dial.daemon_pid(place)
    if pid is None:
        raise client.not_running(place)
    if force:
        _force(place, pid)
    else:
        _leave(place, pid, drain=drain, reason="stop")
    _forbid_start(place)  # again: a daemon that was just starting has allowed it
    successor = dial.daemon_pid(place)
    if successor is not None:
        raise Failed(
            f"pursersd (pid {pid}) ended, but another one (pid {successor}) has taken its place. "
            f"If a service manager that pursersctl does not know restarts it, stop it there."
        )
    output.say(f"pursersd (pid {pid}) stopped. No shim starts it again until: pursersctl start")


def restart(place: Place, environ: Mapping[str, str]) -> None:
    """Replace the daemon by a new one; the shims hold their calls meanwhile and hand them to it."""
    with replaced(place) as before:
        if before is None:
            output.note("pursersd was not running.")
        _remove(place.stopped)
        output.say(f"pursersd started (pid {launch(place, environ)}).")


@contextmanager
def replaced(place: Place) -> Iterator[int | None]:
    """Let the daemon that lives leave, so that the block can start another one; gives its pid, None if there is none."""
    _own_folder(place)
    pid = _living(place)
    # Shims that lose the daemon want to start one themselves: the lock makes them leave it to us.
    with _starting_alone(place):
        if pid is not None:
            _leave(place, pid, drain=True, reason="restart")
        yield pid


def ensure(place: Place, environ: Mapping[str, str]) -> None:
    """See to it that a daemon answers, starting one as a shim would: it leaves by itself when nobody needs it.

    Raises NotRunning where no shim may start one: after `stop`, and with PURSERSD_AUTOSTART=0.
    """
    _own_folder(place)
    if dial.daemon_pid(place) is not None:
        return
    if os.path.lexists(place.stopped) or environ.get(dial.AUTOSTART_VARIABLE) == "0":
        raise client.not_running(place)
    launch(place, environ, "auto")


def launch(place: Place, environ: Mapping[str, str], started_by: str = "user") -> int:
    """Start a daemon, unless somebody else is doing so, and return its pid when it answers. A service starts its own."""
    service_managers.unblock(place, environ)
    began = time.monotonic()
    held: int | None = None
    try:
        while True:
            waited = time.monotonic() - began
            pid = dial.daemon_pid(place)
            if pid is not None:
                if _answers(place, START_TIMEOUT - waited):
                    return pid
            elif waited > (START_TIMEOUT if held is None else dial.START_LIMIT):
                raise Failed(f"pursersd did not start.{_last_words(place)}")
            elif held is None:
                with _system_errors("start pursersd"):
                    held = dial.start(place, environ, started_by, patient=False)
            time.sleep(POLL_INTERVAL)
    finally:
        if held is not None:
            os.close(held)


def _answers(place: Place, timeout: float) -> bool:
    """Does it answer? False if it ended meanwhile. Raises Busy at the time-out."""
    try:
        client.ask(place, "ping", timeout=timeout)
    except NotRunning:
        return False
    return True


def _living(place: Place) -> int | None:
    """The pid of the daemon, also of one that somebody is starting at this moment; None if there is none."""
    deadline = time.monotonic() + dial.START_LIMIT
    while (pid := dial.daemon_pid(place)) is None:
        if not dial.is_starting(place) or time.monotonic() > deadline:
            return dial.daemon_pid(place)
        time.sleep(POLL_INTERVAL)
    return pid


def _leave(place: Place, pid: int, *, drain: bool, reason: str) -> None:
    """Ask the daemon to leave and wait until it is gone."""
    timeout = DRAIN_TIMEOUT if drain else STOP_TIMEOUT
    try:
        client.ask(place, "stop", {"drain": drain, "reason": reason})
    except NotRunning:
        return  # it was on its way out already
    except (Refused, Failed) as error:
        if error.code not in (client.SKEW, "unknown_verb"):
            raise
        # No common language but this one, which every version obeys.
        output.note(
            f"pursersd (pid {pid}) is a version that pursersctl cannot talk to: it is told to leave with SIGTERM."
        )
        _signal(place, pid, signal.SIGTERM)
    if not _gone(place, pid, timeout):
        raise Busy(
            f"pursersd (pid {pid}) was told to stop but has not ended within {timeout:.0f} s. "
            f"See what it is doing with: pursersctl logs\nEnd it with: pursersctl stop --force"
        )


def _force(place: Place, pid: int) -> None:
    """End exactly the process that holds the lock: SIGTERM first, SIGKILL if that is not enough."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal(place, pid, number)
        if _gone(place, pid, SIGNAL_TIMEOUT):
            return
    raise Failed(f"pursersd (pid {pid}) survived SIGKILL: the system is busy with it. Look at it with: ps -p {pid}")


def _signal(place: Place, pid: int, number: signal.Signals) -> None:
    """Send a signal if `pid` still holds the lock; where it can be, the process is pinned before we look."""
    if pid == 0:
        raise Failed("pursersd runs in another pid namespace (a container?) or on another machine. Stop it there.")
    pin = _pin(pid)
    try:
        if dial.daemon_pid(place) != pid:
            return
        if pin is None or sys.platform != "linux":
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(pin, number)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise Failed(f"May not signal pursersd (pid {pid}): {error.strerror}.") from error
    finally:
        if pin is not None:
            os.close(pin)


def _pin(pid: int) -> int | None:
    """A descriptor that means this one process even if its pid is used again; None where there is no such thing."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None  # an old kernel, or the process has just ended


def _gone(place: Place, pid: int, timeout: float) -> bool:
    """Wait until `pid` holds the lock no more; False if it still does at the time-out."""
    deadline = time.monotonic() + timeout
    while dial.daemon_pid(place) == pid:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_INTERVAL)
    return True


@contextmanager
def _starting_alone(place: Place) -> Iterator[None]:
    """Keep others from starting a daemon, unless somebody is doing so at this moment."""
    with _system_errors(f"lock {place.start_lock}"):
        held = dial.reserve_start(place)
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def _forbid_start(place: Place) -> None:
    with _system_errors(f"write {place.stopped}"):
        os.close(os.open(place.stopped, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))


def _own_folder(place: Place) -> None:
    try:
        with _system_errors(f"make {place.folder}", _elsewhere(place)):
            check_folder(place.folder, create=True)
    except PathError as error:
        raise Refused(str(error), code="unsafe_folder") from error


def _remove(path: str) -> None:
    with _system_errors(f"remove {path}"):
        try:
            os.unlink(path)
        except FileNotFoundError:
            return


def _elsewhere(place: Place) -> str:
    """What to do where the folder of socket and lock cannot be made."""
    if place.home is None:
        return f" See: ls -lad {os.path.dirname(place.folder)}"
    return f" Set {HOME_VARIABLE} to a folder that you can write in, or unset it."


@contextmanager
def _system_errors(action: str, advice: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Failed(f"Cannot {action}: {error.strerror or error}.{advice}") from error


def _last_words(place: Place) -> str:
    """What the daemon that failed printed, as a paragraph; where to look if it printed nothing."""
    logs = [place.start_log]
    if service.installed(place, os.environ) is not None:
        logs.append(place.ask_log)
    text = "\n".join(filter(None, (_read(log) for log in logs)))
    return f" It said:\n{text}" if text else " It said nothing. See: pursersctl logs"


def _read(log: str) -> str:
    try:
        with open(log, encoding="utf-8", errors="replace") as file:
            return file.read()[-LAST_WORDS:].strip()
    except OSError:
        return ""
