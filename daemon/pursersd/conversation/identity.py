"""Processes named for ever: a pid with its start time (design: "Parent is 1" proves nothing, a bare pid neither)."""

import os
import signal
import sys
from dataclasses import dataclass

import psutil

from pursers_shim.wire import process_start

WRAPPERS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "env", "timeout", "nice", "setsid", "uv", "uvx"})
"""Programs that stand between a host and its server and are nobody's host."""

DEPTH = 8
"""How many of them may stand one above the other."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process. `started` is in the kernel's own terms: clock ticks since boot on Linux, else seconds since 1970."""

    pid: int
    started: float

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return started_at(self.pid) == self.started

    def send(self, number: int) -> bool:
        """Send this very process a signal, never one that got its pid; whether it was sent."""
        try:
            pin = os.pidfd_open(self.pid) if sys.platform == "linux" else None
        except OSError:
            return False
        try:
            if not self.is_alive:
                return False
            if pin is None or sys.platform != "linux":
                os.kill(self.pid, number)
            else:
                signal.pidfd_send_signal(pin, number)
        except OSError:
            return False
        finally:
            if pin is not None:
                os.close(pin)
        return True

    @property
    def name(self) -> str:
        """The program's name, for people; empty when the process is gone."""
        try:
            return psutil.Process(self.pid).name()
        except psutil.Error:
            return ""


def started_at(pid: int) -> float | None:
    """When the process that has this pid now was started; None when there is none, or only a zombie."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        ticks = process_start(pid)
        return float(ticks) if ticks is not None else process.create_time()
    except (psutil.Error, OSError):  # OSError: it ended while /proc was being read
        return None


def identify(pid: object, started: object) -> ProcessIdentity | None:
    """The identity that a shim told, completed where its platform could not say the start time.

    None for a process that is not there (any more) or that cannot be a host: init adopts orphans and hosts nobody.
    """
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 1:
        return None
    now = started_at(pid)
    if now is None:
        return None
    if isinstance(started, (int, float)) and not isinstance(started, bool) and float(started) != now:
        return None
    return ProcessIdentity(pid, now)


def by_kernel(peer: int, told: int) -> ProcessIdentity | None:
    """The process at the other end of a link, by the pid that the kernel gives, where its own word says nothing.

    It lives in a pid namespace of its own, where it has another pid; or it is the first process of ours, in a container that
    runs nothing else. None for every other process, and where there are no such namespaces.
    """
    try:
        theirs, ours = (os.stat(f"/proc/{which}/ns/pid").st_ino for which in (peer, "self"))
    except OSError:
        return None
    started = started_at(peer) if theirs != ours or peer == told == 1 else None
    return ProcessIdentity(peer, started) if started is not None else None


def parent_of(process: ProcessIdentity) -> ProcessIdentity | None:
    """The parent of a process; None when there is none that could be a host."""
    return _parent(process)


def behind(pid: object, started: object) -> tuple[ProcessIdentity | None, tuple[ProcessIdentity, ...]]:
    """The host of a shim that told its parent, and the wrappers between the two.

    A parent that has ended before we could look is the host all the same: it had started the shim and is gone. Hosts
    signal only their direct child, and a wrapper that lives on keeps the pipes open, so the first process above the
    wrappers counts as the host. None where nobody can be named.
    """
    parent = identify(pid, started)
    if parent is None:
        return _departed(pid, started), ()
    wrappers: list[ProcessIdentity] = []
    while is_wrapper(parent.name) and len(wrappers) < DEPTH:
        above = _parent(parent)
        if above is None:
            break
        wrappers.append(parent)
        parent = above
    return parent, tuple(wrappers)


def is_wrapper(name: str) -> bool:
    """Whether a program of this name stands between a host and its server."""
    return name in WRAPPERS or name.startswith("npm ")  # as npx calls itself


def _departed(pid: object, started: object) -> ProcessIdentity | None:
    """The identity of a process that was told with its start time and is not there any more."""
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 1:
        return None
    if not isinstance(started, (int, float)) or isinstance(started, bool):
        return None
    return ProcessIdentity(pid, float(started))


def _parent(process: ProcessIdentity) -> ProcessIdentity | None:
    try:
        above = psutil.Process(process.pid).ppid()
    except psutil.Error:
        return None
    return identify(above, None)
